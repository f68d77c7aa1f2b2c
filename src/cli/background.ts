import { StoreDamaged } from '../errors.ts'
import type { SweepActivity } from '../http/metrics.ts'
import type { Log } from '../log.ts'
import type { Awaitable, PetStore } from '../store.ts'
import { repeat } from '../timeout.ts'

/** Logs a failure. The store itself reports damage. */
export async function inBackground<T>(log: Log, work: () => Awaitable<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (cause) {
    if (!(cause instanceof StoreDamaged)) log.write('error', 'Background work failed', { cause: String(cause) })
    return undefined
  }
}

const sweepEveryMs = 60_000
/** Small, so that no write waits long. With the pause, this allows 50,000 keys a second. */
const batchKeys = 500
const batchPauseMs = 10

/** Deletes expired idempotency keys, until it is disposed of. */
export class Sweep implements SweepActivity, Disposable {
  readonly #pets: PetStore
  readonly #log: Log
  readonly #repeating: Disposable
  readonly #everyMs: number
  keysDeleted = 0
  completedAtMs = Date.now()

  constructor(pets: PetStore, log: Log, everyMs = sweepEveryMs) {
    this.#pets = pets
    this.#log = log
    this.#everyMs = everyMs
    this.#repeating = repeat(everyMs, () => this.#deleteBatch())
  }

  [Symbol.dispose](): void {
    this.#repeating[Symbol.dispose]()
  }

  /** Returns the pause until the next batch. */
  async #deleteBatch(): Promise<number> {
    const now = new Date()
    const deleted = await inBackground(this.#log, () => this.#pets.deleteExpiredIdempotencyKeys(now, batchKeys))
    if (deleted === undefined) return this.#everyMs
    this.keysDeleted += deleted
    if (deleted === batchKeys) return batchPauseMs
    this.completedAtMs = Date.now()
    return this.#everyMs
  }
}
