import type { Pet } from '../../pet.ts'
import { atLeast } from '../animals.ts'
import { type Check, fail, rules, skip } from '../check.ts'
import { errorIn, petsIn } from '../expectation.ts'
import { nextPage, queryOf } from '../pages.ts'
import type { Answer, Probe } from '../probe.ts'

const paging = rules('decision', 'docs/interface.md, Paging')

const walkLimit = 10
const walkPagesMax = 30

export const pagingDecisions: readonly Check[] = [
  paging.reads('the list is in ascending order of id', async probe => {
    await atLeast(probe, 2)
    const answer = await probe.send('/pets?limit=100')
    expectAscending(petsIn(answer), answer)
  }),
  paging.reads('while animals follow, Link has the next page', async probe => {
    await atLeast(probe, 2)
    const answer = await probe.send('/pets?limit=1')
    const following = await probe.send(expectNext(answer))
    expectAscending([...petsIn(answer), ...petsIn(following)], following)
  }),
  paging.reads('the next link has limit, status and a cursor', async probe => {
    await atLeast(probe, 2, 'sold')
    const next = expectNext(await probe.send('/pets?limit=1&status=sold'))
    const query = queryOf(next)
    const kept = query.get('limit') === '1' && query.get('status') === 'sold' && query.get('cursor')
    if (!kept) fail('limit=1, status=sold and a cursor', next)
  }),
  paging.reads('a walk by next links shows every animal once, and ends', async probe => {
    await atLeast(probe, walkLimit + 1)
    let path: string | undefined = `/pets?limit=${walkLimit}`
    const walked: Pet[] = []
    for (let pages = 0; path !== undefined; pages++) {
      if (pages === walkPagesMax) skip(`the catalogue is longer than ${walkPagesMax} pages of ${walkLimit}`)
      const answer = await probe.send(path)
      walked.push(...petsIn(answer))
      expectAscending(walked, answer)
      path = nextPage(answer)
    }
    if (walked.length <= walkLimit) fail(`more than ${walkLimit} animals in all`, `${walked.length}`)
  }),
  paging.reads('a cursor that the server did not make is 400', async probe => {
    errorIn(await probe.send('/pets?cursor=conform'), 400)
  }),
  paging.reads('a cursor that was changed is 400', async probe => {
    const cursor = await someCursor(probe)
    const changed = cursor.slice(0, -1) + (cursor.endsWith('A') ? 'B' : 'A')
    errorIn(await probe.send(`/pets?limit=1&cursor=${encodeURIComponent(changed)}`), 400)
  }),
  paging.reads('a cursor of another status is 400', async probe => {
    const cursor = await someCursor(probe)
    errorIn(await probe.send(`/pets?limit=1&status=sold&cursor=${encodeURIComponent(cursor)}`), 400)
  }),
]

function expectAscending(pets: readonly Pet[], { asked }: Answer): void {
  for (const [index, { id }] of pets.entries()) {
    const before = pets[index - 1]?.id
    if (before !== undefined && id <= before) fail('ascending ids', `${asked} lists ${id} after ${before}`)
  }
}

function expectNext(answer: Answer): string {
  const found = `${answer.asked} answered Link: ${answer.headers.get('link') ?? 'none'}`
  return nextPage(answer) ?? fail('a Link with rel="next"', found)
}

/** Of a list without a status. */
async function someCursor(probe: Probe): Promise<string> {
  await atLeast(probe, 2)
  const next = expectNext(await probe.send('/pets?limit=1'))
  return queryOf(next).get('cursor') || fail('a cursor in the next link', next)
}
