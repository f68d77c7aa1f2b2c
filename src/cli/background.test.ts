import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder, until } from '../../test/support/process.ts'
import { StoreUnavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import { openStores } from '../store/open.ts'
import { repeat, startSweep } from './background.ts'

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

describe('repeated work', () => {
  test('never runs twice at once, and not after its end', async () => {
    const running = Promise.withResolvers<undefined>()
    let runs = 0
    const repeated = repeat(log, 1, () => {
      runs += 1
      return running.promise
    })
    await Bun.sleep(50)
    expect(runs).toBe(1)
    repeated[Symbol.dispose]()
    running.resolve(undefined)
    await Bun.sleep(50)
    expect(runs).toBe(1)
  })

  test('waits for the time that it returns, or the usual one', async () => {
    const times = [1, undefined, 60_000]
    using _ = repeat(log, 10, async () => times.shift())
    await Bun.sleep(200)
    expect(times).toEqual([])
    times.push(1)
    await Bun.sleep(50)
    expect(times).toEqual([1])
  })
})
