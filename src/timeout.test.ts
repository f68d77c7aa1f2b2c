import { describe, expect, spyOn, test } from 'bun:test'
import { withTimeout } from './timeout.ts'

const never = new Promise<never>(() => {})

describe('a promise with a time-out', () => {
  test('gives its outcome if it settles in time', async () => {
    expect(await withTimeout(Promise.resolve(1), 60_000, () => 2)).toBe(1)
    await expect(withTimeout(Promise.reject(new Error('failed')), 60_000, () => 2)).rejects.toThrow('failed')
  })

  test('gives the outcome of the late function after that time', async () => {
    using timer = spyOn(globalThis, 'setTimeout')
    expect(await withTimeout(never, 5, () => 2)).toBe(2)
    expect(timer.mock.calls.map(([, ms]) => ms)).toEqual([5])
    const late = () => {
      throw new Error('too late')
    }
    await expect(withTimeout(never, 1, late)).rejects.toThrow('too late')
  })

  test('leaves no timer behind, so that a program can end', async () => {
    using set = spyOn(globalThis, 'setTimeout')
    using cleared = spyOn(globalThis, 'clearTimeout')
    await withTimeout(Promise.resolve(), 30_000, () => {})
    expect(set).toHaveBeenCalledTimes(1)
    expect(cleared).toHaveBeenCalledWith(set.mock.results[0]?.value)
  })
})
