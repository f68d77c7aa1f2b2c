import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { advance, eventually, settle, standingClock } from '../../test/support/clock.ts'
import { temporaryFolder } from '../../test/support/process.ts'
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
  const pets: Parameters<typeof startSweep>[0] = {
    async deleteExpiredIdempotencyKeys(now, max) {
      if (isAway) throw new StoreUnavailable('away')
      return stores.pets.deleteExpiredIdempotencyKeys(now, max)
    },
  }
  {
    using _ = standingClock()
    using sweep = startSweep(pets, log)
    const first = sweep.completedAtMs
    expect(first).toBe(Date.now())
    for (let failures = 1; failures <= 2; failures++) {
      await advance(60_000)
      expect(logged).toEqual(Array(failures).fill('Background work failed: StoreUnavailable: away'))
    }
    expect([sweep.keysDeleted, sweep.completedAtMs]).toEqual([0, first])
    isAway = false
    await advance(60_000)
    for (const deleted of [500, 1_000]) {
      await eventually('a batch', () => sweep.keysDeleted === deleted || undefined)
      expect(sweep.completedAtMs).toBe(first)
      await advance(10)
    }
    await eventually('a complete sweep', () => sweep.completedAtMs > first || undefined)
    expect([sweep.keysDeleted, sweep.completedAtMs]).toEqual([1_001, Date.now()])
  }
  expect(await keep('valid', new Date())).toMatchObject({ outcome: 'replayed' })
  await stores.close()
})

describe('repeated work', () => {
  test('never runs twice at once, and not after its end', async () => {
    using _ = standingClock()
    const running = Promise.withResolvers<undefined>()
    let runs = 0
    const repeated = repeat(log, 1, () => {
      runs += 1
      return running.promise
    })
    for (let i = 0; i < 5; i++) await advance(1)
    expect(runs).toBe(1)
    repeated[Symbol.dispose]()
    running.resolve(undefined)
    for (let i = 0; i < 5; i++) await advance(1)
    expect(runs).toBe(1)
  })

  test('waits for the time that it returns, or the usual one', async () => {
    using _ = standingClock()
    const times = [2, undefined, 60_000, 5]
    using _repeated = repeat(log, 10, async () => times.shift())
    for (const ms of [10, 2, 10, 60_000]) {
      const left = times.length
      await advance(ms - 1)
      expect([ms, times.length]).toEqual([ms, left])
      await advance(1)
      expect([ms, times.length]).toEqual([ms, left - 1])
    }
  })
})

describe('a store that cannot be opened', () => {
  const unreachable = new StoreUnreachable('no-answer', 'It does not answer')

  /** Every attempt takes `attemptMs`. Gives when each began. */
  async function opening(waitMs: number, attemptMs: number, error: Error, successAt = Number.POSITIVE_INFINITY) {
    using _ = standingClock()
    logged.length = 0
    const startMs = performance.now()
    const begunMs: number[] = []
    const open = async () => {
      const nowMs = Math.round(performance.now() - startMs)
      begunMs.push(nowMs)
      if (nowMs >= successAt) return 'opened'
      if (attemptMs > 0) await Bun.sleep(attemptMs)
      throw error
    }
    let outcome: unknown
    void retryUnreachable(log, waitMs, open)
      .catch(error => error)
      .then(result => {
        outcome = result
      })
    await settle()
    for (let passedMs = 0; outcome === undefined && passedMs < 2 * waitMs + 10_000; passedMs += 100) await advance(100)
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
