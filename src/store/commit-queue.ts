import { StoreUnavailable } from '../errors.ts'
import { Histogram } from '../histogram.ts'
import type { StoreActivity } from '../store.ts'

/** Writes that wait or are being committed, at most: about a tenth of a second of work. */
export const writesWaitingMax = 1_024
/** Bounds the time of one commit. */
const batchMax = 512
/** Without further writes, a failed one means for this time that the store takes none. */
const failureMsMax = 120_000

/** A write, and the promise of its caller. */
export interface QueuedWrite<Write, Result> extends PromiseWithResolvers<Result> {
  readonly write: Write
}

/**
 * Resolves or rejects each write of the batch, and returns how many were committed; undefined if it tried none. If it
 * throws, all have failed.
 */
type Commit<Write, Result> = (batch: readonly QueuedWrite<Write, Result>[]) => Promise<number | undefined>

/** Commits the writes that arrive during one commit together in the next one. */
export class CommitQueue<Write, Result> {
  readonly #commitSizes = new Histogram([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
  readonly #commit: Commit<Write, Result>
  #queue: QueuedWrite<Write, Result>[] = []
  #committing = 0
  #nextTick: NodeJS.Immediate | undefined
  #idle: PromiseWithResolvers<void> | undefined
  #failedAtMs: number | undefined

  constructor(commit: Commit<Write, Result>) {
    this.#commit = commit
  }

  activity(): StoreActivity {
    const isWritable = this.failedAtMs === undefined
    return { writesWaiting: this.#waiting, commitSizes: this.#commitSizes, isWritable }
  }

  /** On the monotonic clock; undefined if the last write succeeded, or failed too long ago to matter now. */
  get failedAtMs(): number | undefined {
    const failedAtMs = this.#failedAtMs ?? Number.NEGATIVE_INFINITY
    return performance.now() < failedAtMs + failureMsMax ? failedAtMs : undefined
  }

  get #waiting(): number {
    return this.#queue.length + this.#committing
  }

  add(write: Write): Promise<Result> {
    if (this.#idle) return Promise.reject(new StoreUnavailable('the store is closing'))
    if (this.#waiting >= writesWaitingMax) {
      return Promise.reject(new StoreUnavailable(`${writesWaitingMax} writes are waiting already`))
    }
    const queued = { ...Promise.withResolvers<Result>(), write }
    this.#queue.push(queued)
    // Writes of one event-loop tick go together.
    this.#nextTick ??= setImmediate(() => {
      this.#nextTick = undefined
      void this.#commitNext()
    })
    return queued.promise
  }

  /** A write has failed, even if its commit goes on. */
  noteFailure(): void {
    this.#failedAtMs = performance.now()
  }

  /** Refuses further writes, and resolves when the waiting ones are committed. */
  close(): Promise<void> {
    this.#idle ??= Promise.withResolvers()
    if (this.#waiting === 0) this.#idle.resolve()
    return this.#idle.promise
  }

  async #commitNext(): Promise<void> {
    if (this.#queue.length === 0 || this.#committing > 0) return
    const batch = this.#queue.splice(0, batchMax)
    this.#committing = batch.length
    let committed: number | undefined = 0
    try {
      committed = await this.#commit(batch)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    if (committed) this.#commitSizes.observe(committed)
    if (committed) this.#failedAtMs = undefined
    else if (committed === 0) this.noteFailure()
    this.#committing = 0
    void this.#commitNext()
    if (this.#waiting === 0) this.#idle?.resolve()
  }
}
