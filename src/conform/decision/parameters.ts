import { int64Max } from '../../int64.ts'
import { type Check, rules } from '../check.ts'
import { errorIn, expectNamed } from '../expectation.ts'

const listing = rules('decision', 'docs/interface.md, listPets')
const fetching = rules('decision', 'docs/interface.md, getPet')

/** Parameters that are refused by name; every query of a row is sent by itself. */
const refused: readonly (readonly [what: string, name: string, queries: readonly string[]])[] = [
  ['a limit below 1', 'limit', ['limit=0', 'limit=-1']],
  ['a limit above 100', 'limit', ['limit=101', 'limit=9223372036854775808']],
  ['a limit that is no whole number', 'limit', ['limit=abc', 'limit=1.5', 'limit=0x10']],
  ['an empty limit', 'limit', ['limit=']],
  ['a limit that is given twice', 'limit', ['limit=1&limit=1']],
  ['a status that is none of the three', 'status', ['status=lost', 'status=Sold']],
  ['an empty status', 'status', ['status=']],
  ['a status that is given twice', 'status', ['status=sold&status=sold']],
]

export const parameterDecisions: readonly Check[] = [
  ...refused.map(([what, name, queries]) =>
    listing.reads(`${what} is 400, and named`, async probe => {
      for (const query of queries) expectNamed(await probe.send(`/pets?${query}`), 400, name)
    }),
  ),
  listing.reads('a refused list names every problem', async probe => {
    expectNamed(await probe.send('/pets?limit=0&status=lost'), 400, 'limit', 'status')
  }),
  fetching.reads('a petId that is no int64 is 404', async probe => {
    for (const petId of ['abc', '1.5', String(int64Max + 1n)])
      errorIn(await probe.send(`/pets/${petId}`), 404)
  }),
]
