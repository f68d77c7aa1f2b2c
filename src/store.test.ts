import { expect, test } from 'bun:test'
import { int64Max } from './int64.ts'
import { keptIdProblem } from './store.ts'

const highest = int64Max - 1_000_000_000n

test.each<[bigint | undefined, bigint, string | undefined]>([
  [1n, 0n, undefined],
  [highest, highest - 1n, undefined],
  [undefined, 0n, 'id is missing: to keep ids, every animal needs one'],
  [0n, 0n, `id is 0: expected an integer from 1 to ${highest}`],
  [highest + 1n, 0n, `id is ${highest + 1n}: expected an integer from 1 to ${highest}`],
  [6n, 6n, 'id is 6 after 6: expected ascending ids'],
])('importing id %p after %p has the problem %p', (id, previous, problem) => {
  expect(keptIdProblem(id, previous)).toBe(problem)
})
