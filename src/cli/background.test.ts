import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { advance, eventually, settle, standingClock } from '../../test/support/clock.ts'
import { temporaryFolder } from '../../test/support/process.ts'
import { StoreError, StoreUnavailable, StoreUnreachable } from '../errors.ts'
import type { Log } from '../log.ts'
import { openStores } from '../store/open.ts'
import { retryUnreachable, startSweep } from './background.ts'

const logged: string[] = []
const log: Log = {
  isOn: () => true,
  write: (_level, message, fields) => void logged.push(`${message}: ${fields?.['cause']}`),
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
    await advance(60_000)
    expect(logged).toEqual(['Background work failed: StoreUnavailable: away'])
    expect([sweep.keysDeleted, sweep.completedAtMs]).toEqual([0, first])
    isAway = false
    await advance(60_000)
    for (const deleted of [500, 1_000]) {
      await eventually('a batch', () => sweep.keysDeleted === deleted || undefined)
      await advance(10)
    }
    await eventually('a complete sweep', () => sweep.completedAtMs > first || undefined)
    expect(sweep.keysDeleted).toBe(1_001)
  }
  expect(await keep('valid', new Date())).toMatchObject({ outcome: 'replayed' })
  await stores.close()
})

const unreachable = new StoreUnreachable('no-answer', 'It does not answer')

test('an unreachable store is opened again until it answers, and reported once', async () => {
  using _ = standingClock()
  logged.length = 0
  let isAway = true
  const opening = retryUnreachable(log, 60_000, async () => {
    if (isAway) throw unreachable
    return 'opened'
  })
  for (let i = 0; i < 3; i++) await advance(5_000)
  isAway = false
  await advance(5_000)
  expect(await opening).toBe('opened')
  expect(logged).toHaveLength(1)
})

test.each([
  ['unreachable, with no time to wait', unreachable, 0, 0],
  ['unreachable for too long', unreachable, 10_000, 10_000],
  ['locked', new StoreError('locked', 'It is locked'), 60_000, 0],
])('a store that is %s is refused', async (_, error, waitMs, refusedAfterMs) => {
  using _clock = standingClock()
  let outcome: unknown
  void retryUnreachable(log, waitMs, () => Promise.reject(error)).catch(refusal => {
    outcome = refusal
  })
  await settle()
  if (refusedAfterMs > 0) {
    await advance(refusedAfterMs - 1)
    expect(outcome).toBeUndefined()
    await advance(1)
  }
  expect(outcome).toBe(error)
})
