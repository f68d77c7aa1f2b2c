import { expect, test } from 'bun:test'
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

test('repeated work never runs twice at once, and not after its end', async () => {
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

const unreachable = new StoreUnreachable('no-answer', 'It does not answer')
const locked = new StoreError('locked', 'It is locked')

test.each([
  { waitMs: 0, attemptMs: 3_000, error: unreachable, begunMs: [0] },
  { waitMs: 1_000, attemptMs: 0, error: unreachable, begunMs: [0, 500, 1_000] },
  { waitMs: 1_000, attemptMs: 100, error: unreachable, begunMs: [0, 600, 1_000] },
  { waitMs: 1_000, attemptMs: 3_000, error: unreachable, begunMs: [0] },
  { waitMs: 60_000, attemptMs: 0, error: locked, begunMs: [0] },
  { waitMs: 60_000, attemptMs: 3_000, error: undefined, begunMs: [0, 3_500, 7_000] },
])('a store is opened again for $waitMs ms while it is unreachable: %o', async given => {
  using _ = standingClock()
  logged.length = 0
  const startMs = performance.now()
  const begunMs: number[] = []
  const open = async () => {
    const nowMs = Math.round(performance.now() - startMs)
    begunMs.push(nowMs)
    if (given.error === undefined && nowMs >= 7_000) return 'opened'
    if (given.attemptMs > 0) await Bun.sleep(given.attemptMs)
    throw given.error ?? unreachable
  }
  let outcome: unknown
  const opening = retryUnreachable(log, given.waitMs, open).catch(error => error)
  void opening.then(result => {
    outcome = result
  })
  await settle()
  for (let passed = 0; outcome === undefined && passed < 200; passed++) await advance(100)
  expect(outcome).toBe(given.error ?? 'opened')
  expect(begunMs).toEqual([...given.begunMs])
  expect(logged).toHaveLength(begunMs.length > 1 ? 1 : 0)
})
