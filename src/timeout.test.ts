import { expect, spyOn, test } from 'bun:test'
import { withTimeout } from './timeout.ts'

test('a promise that settles in time leaves no timer behind, so that a program can end', async () => {
  using set = spyOn(globalThis, 'setTimeout')
  using cleared = spyOn(globalThis, 'clearTimeout')
  await withTimeout(Promise.resolve(), 30_000, () => {})
  expect(set).toHaveBeenCalledTimes(1)
  expect(cleared).toHaveBeenCalledWith(set.mock.results[0]?.value)
})
