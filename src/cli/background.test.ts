import { describe, expect, jest, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder, until } from '../../test/support/process.ts'
import { StoreError, StoreUnavailable, StoreUnreachable } from '../errors.ts'
import type { Log } from '../log.ts'
import { openStores } from '../store/open.ts'
import { repeat, retryUnreachable, startSweep } from './background.ts'

const logged: string[] = []
const log: Log = {
  isOn: () => true,
  write: (_level, message, fields) => void logged.push(`${message}: ${fields?.['cause']}`),
  request: () => {},
}

test('a sweep deletes all expired idempotency keys, counts them, and reports when none was left', async () => {
  using folder = temporaryFolder()
  const stores = await openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true })
  const keep = (key: string, at: Date) =>
    stores.pets.createOnce({ name: 'Rex', categoryId: 7n }, { scope: 'a', key, at })
  await Promise.all(Array.from({ length: 1_001 }, (_, index) => keep(`${index}`, new Date(index))))
  await keep('valid', new Date())
  let isAway = true
  const pets: typeof stores.pets = {
    ...stores.pets,
    async deleteExpiredIdempotencyKeys(now, max) {
      if (isAway) throw new StoreUnavailable('away')
      return stores.pets.deleteExpiredIdempotencyKeys(now, max)
    },
  }
  const startedMs = Date.now()
  using sweep = startSweep(pets, log, 20)
  const first = sweep.completedAtMs
  expect(first).toBeGreaterThanOrEqual(startedMs)
  await until('two failures', () => logged.length >= 2 || undefined)
  expect([sweep.keysDeleted, sweep.completedAtMs]).toEqual([0, first])
  expect(new Set(logged)).toEqual(new Set(['Background work failed: StoreUnavailable: away']))
  isAway = false
  await until('a complete sweep', () => sweep.completedAtMs > first || undefined)
  expect(sweep.keysDeleted).toBe(1_001)
  expect(await keep('valid', new Date())).toMatchObject({ outcome: 'replayed' })
  sweep[Symbol.dispose]()
  await stores.close()
})

/** The timers of this process, which only `pass` moves on. */
function driveTimers() {
  jest.useFakeTimers()
  return {
    /** Lets the time pass, and everything happen that does not wait for a timer. */
    async pass(ms: number) {
      jest.advanceTimersByTime(ms)
      for (let i = 0; i < 10; i++) await Promise.resolve()
    },
    [Symbol.dispose]: () => void jest.useRealTimers(),
  }
}

describe('repeated work', () => {
  test('never runs twice at once, and not after its end', async () => {
    using timers = driveTimers()
    const running = Promise.withResolvers<undefined>()
    let runs = 0
    const repeated = repeat(log, 1, () => {
      runs += 1
      return running.promise
    })
    for (let i = 0; i < 5; i++) await timers.pass(1)
    expect(runs).toBe(1)
    repeated[Symbol.dispose]()
    running.resolve(undefined)
    for (let i = 0; i < 5; i++) await timers.pass(1)
    expect(runs).toBe(1)
  })

  test('waits for the time that it returns, or the usual one', async () => {
    using timers = driveTimers()
    const times = [2, undefined, 60_000, 5]
    using _ = repeat(log, 10, async () => times.shift())
    for (const ms of [10, 2, 10, 60_000]) {
      const left = times.length
      await timers.pass(ms - 1)
      expect([ms, times.length]).toEqual([ms, left])
      await timers.pass(1)
      expect([ms, times.length]).toEqual([ms, left - 1])
    }
  })
})

describe('a store that cannot be opened', () => {
  const unreachable = new StoreUnreachable('no-answer', 'It does not answer')

  /** With a clock on which every attempt takes `attemptMs`. Gives when each began. */
  async function opening(waitMs: number, attemptMs: number, error: Error, successAt = Number.POSITIVE_INFINITY) {
    let nowMs = 0
    const begunMs: number[] = []
    const open = async () => {
      // Without an end, no time limit of the test could interrupt this.
      if (begunMs.push(nowMs) > 100) throw new Error('It does not stop')
      if (nowMs >= successAt) return 'opened'
      nowMs += attemptMs
      throw error
    }
    const sleep = async (ms: number) => {
      nowMs += ms
    }
    logged.length = 0
    const outcome = await retryUnreachable(log, waitMs, open, { nowMs: () => nowMs, sleep }).catch(error => error)
    return { outcome, begunMs, logged: logged.length }
  }

  test.each<[waitMs: number, attemptMs: number, begunMs: number[]]>([
    [0, 3_000, [0]],
    [1_000, 0, [0, 500, 1_000]],
    [1_200, 100, [0, 600, 1_200]],
    [1_000, 3_000, [0]],
  ])('is tried again for %d ms if it is unreachable after %d ms', async (waitMs, attemptMs, begunMs) => {
    const tried = await opening(waitMs, attemptMs, unreachable)
    expect(tried).toEqual({ outcome: unreachable, begunMs, logged: begunMs.length > 1 ? 1 : 0 })
  })

  test('is opened once it can be reached, and not tried again for another reason', async () => {
    expect(await opening(60_000, 3_000, unreachable, 7_000)).toEqual({
      outcome: 'opened',
      begunMs: [0, 3_500, 7_000],
      logged: 1,
    })
    const locked = new StoreError('locked', 'It is locked')
    expect(await opening(60_000, 0, locked)).toEqual({ outcome: locked, begunMs: [0], logged: 0 })
  })
})
