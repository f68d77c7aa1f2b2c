import { StoreUnavailable } from '../errors.ts'
import { Histogram } from '../histogram.ts'
import type { StoreActivity } from '../store.ts'

/** Writes that wait or are being committed, at most: about a tenth of a second of work. */
export const writesWaitingMax = 1_024
/** Bounds the time of one commit. */
const batchMax = 512
/** A failed write counts for this long, unless a later one succeeds. */
const failureMsMax = 120_000

/** Creations, and all other writes. */
type WriteKind = 'pets' | 'others'

/** Whether writing works, judged by the last attempt. */
export class WriteHealth {
  /** The times of the failures that still count, on the monotonic clock. */
  readonly #failedMs = { pets: Number.NEGATIVE_INFINITY, others: Number.NEGATIVE_INFINITY }

  get isGood(): boolean {
    const { pets, others } = this.#failedMs
    return performance.now() >= Math.max(pets, others) + failureMsMax
  }

  noteFailure(kind: WriteKind): void {
    this.#failedMs[kind] = performance.now()
  }

  /** Call it only if data changed: a commit without changes succeeds even on a full disk. */
  noteChange(kind: WriteKind): void {
    this.#failedMs.others = Number.NEGATIVE_INFINITY
    // Uses of keys can be stored while every creation fails.
    if (kind === 'pets') this.#failedMs.pets = Number.NEGATIVE_INFINITY
  }
}

/** A write, and the promise of its caller. */
export interface QueuedWrite<Write, Result> extends PromiseWithResolvers<Result> {
  readonly write: Write
}

/** Resolves or rejects each write of the batch, and returns how many were committed. If it throws, all have failed. */
type Commit<Write, Result> = (batch: readonly QueuedWrite<Write, Result>[]) => Promise<number>

/** Commits the writes that arrive during one commit together in the next one. */
export class CommitQueue<Write, Result> {
  readonly #commitSizes = new Histogram([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
  readonly #commit: Commit<Write, Result>
  #queue: QueuedWrite<Write, Result>[] = []
  #committing = 0
  #nextTick: NodeJS.Immediate | undefined
  #idle: PromiseWithResolvers<void> | undefined

  constructor(commit: Commit<Write, Result>) {
    this.#commit = commit
  }

  activity(): Pick<StoreActivity, 'writesWaiting' | 'commitSizes'> {
    return { writesWaiting: this.#waiting, commitSizes: this.#commitSizes }
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
    let committed = 0
    try {
      committed = await this.#commit(batch)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    if (committed > 0) this.#commitSizes.observe(committed)
    this.#committing = 0
    void this.#commitNext()
    if (this.#waiting === 0) this.#idle?.resolve()
  }
}
