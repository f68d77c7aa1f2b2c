import { absentId, animal, wrongCredential } from '../animals.ts'
import { type Check, fail, rules } from '../check.ts'
import { errorIn, petsIn } from '../expectation.ts'
import type { Probe } from '../probe.ts'

const versioning = rules('contract', 'interface part 9, versioning')
const authentication = rules('contract', 'interface part 5, authentication')

/** The credentials that are none, by what a report calls them. */
const credentials = [
  ['without a key', () => null],
  ['with a wrong key', wrongCredential],
] as const

export const credentialChecks: readonly Check[] = [
  versioning.reads('the base address ends in /v1', async ({ baseUrl }) => {
    if (!baseUrl.endsWith('/v1')) fail('a base address that ends in /v1', baseUrl)
  }),
  ...credentials.flatMap(([what, authorization]) => [
    authentication.reads(`GET /pets ${what} is 401`, async probe => {
      errorIn(await probe.send('/pets', { authorization: authorization() }), 401)
    }),
    authentication.writes(`POST /pets ${what} is 401`, async probe => {
      errorIn(await probe.post(animal(), { authorization: authorization() }), 401)
    }),
    authentication.reads(`GET /pets/{petId} ${what} is 401`, async probe => {
      errorIn(await probe.send(`/pets/${await anyId(probe)}`, { authorization: authorization() }), 401)
    }),
  ]),
]

/** Of an animal if there is one, so that a 404 cannot come first. */
async function anyId(probe: Probe): Promise<bigint> {
  const [first] = petsIn(await probe.send('/pets?limit=1'))
  return first?.id ?? absentId()
}
