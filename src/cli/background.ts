// What a server does beside its requests: it retries the opening of its store, and deletes what has expired.

import { StoreDamaged, StoreUnavailable, StoreUnreachable } from '../errors.ts'
import type { SweepActivity } from '../http/metrics.ts'
import type { Log } from '../log.ts'
import type { PetStore } from '../store-contract.ts'
import { withAdvice } from './advice.ts'

/** Logs a failure. The store itself reports damage. */
export async function inBackground<T>(log: Log, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    const cause = error instanceof StoreUnavailable ? `${error.name}: ${withAdvice(error)}` : String(error)
    if (!(error instanceof StoreDamaged)) log.write('error', 'Background work failed', { cause })
    return undefined
  }
}

/** Runs the work every `ms`, never twice at once. The work may return another pause in ms. Dispose to stop. */
export function repeat(log: Log, ms: number, work: () => Promise<unknown>): Disposable {
  let ended = false
  const run = async () => {
    const next = await inBackground(log, work)
    if (!ended) timer = setTimeout(run, typeof next === 'number' ? next : ms)
  }
  let timer = setTimeout(run, ms)
  return {
    [Symbol.dispose]() {
      ended = true
      clearTimeout(timer)
    },
  }
}

const retryMs = 500

/** Opens a store. If it is unreachable, retries for `waitMs`, and then throws the last error. */
export async function retryUnreachable<T>(log: Log, waitMs: number, open: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + waitMs
  for (let attempt = 0; ; attempt++) {
    try {
      return await open()
    } catch (error) {
      const leftMs = endMs - performance.now()
      if (!(error instanceof StoreUnreachable) || leftMs <= 0) throw error
      if (attempt === 0) log.write('error', `${withAdvice(error)}; retrying for ${waitMs / 1_000} s`)
      await Bun.sleep(Math.min(retryMs, leftMs))
    }
  }
}

const sweepEveryMs = 60_000
/** Small, so that no write waits long. With the pause, this allows 50,000 keys a second. */
const batchKeys = 500
const batchPauseMs = 10

/** Deletes expired idempotency keys, until it is disposed of. */
export function startSweep(pets: Pick<PetStore, 'deleteExpiredIdempotencyKeys'>, log: Log): SweepActivity & Disposable {
  const activity = { keysDeleted: 0, completedAtMs: Date.now() }
  const deleteBatch = async () => {
    const deleted = await pets.deleteExpiredIdempotencyKeys(new Date(), batchKeys)
    activity.keysDeleted += deleted
    if (deleted < batchKeys) activity.completedAtMs = Date.now()
    return deleted < batchKeys ? sweepEveryMs : batchPauseMs
  }
  return Object.assign(activity, repeat(log, sweepEveryMs, deleteBatch))
}
