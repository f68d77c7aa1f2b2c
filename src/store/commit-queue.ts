import { StoreUnavailable } from '../errors.ts'
import { Histogram, type StoreActivity } from '../store.ts'
import { withTimeout } from '../timeout.ts'

/** Writes that wait or are being committed, at most: about a tenth of a second of work. */
export const writesWaitingMax = 1_024
/** Bounds the time of one commit. */
const batchMax = 512
/** Without further writes, a failed one means for this time that the store takes none. */
const failureMsMax = 120_000

/** The results of a batch, in its order. `errors` holds the writes that failed, by their index. */
export interface BatchResult<Result> {
  readonly values: readonly Result[]
  readonly errors?: ReadonlyMap<number, unknown>
}

export interface CommitQueueOptions {
  /** Rejects a write that is not committed in time, and does not start it later. */
  readonly timeoutMs?: number
  /** Whether one write may be the cause of a batch's error: then each is committed alone, so that the others succeed. */
  readonly retrySingly?: (error: unknown) => boolean
}

interface WaitingWrite<Write, Result> extends PromiseWithResolvers<Result> {
  readonly write: Write
  timedOut: boolean
}

/** Commits the writes that arrive during one commit together in the next one. */
export class CommitQueue<Write, Result> {
  readonly #commitSizes = new Histogram([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
  readonly #commit: (batch: readonly Write[]) => Promise<BatchResult<Result>>
  readonly #options: CommitQueueOptions
  #queue: WaitingWrite<Write, Result>[] = []
  #committing = 0
  #nextTick: NodeJS.Immediate | undefined
  #idle: PromiseWithResolvers<void> | undefined
  #failedAtMs: number | undefined

  constructor(commit: (batch: readonly Write[]) => Promise<BatchResult<Result>>, options: CommitQueueOptions = {}) {
    this.#commit = commit
    this.#options = options
  }

  activity(): StoreActivity {
    const isWritable = this.failedAtMs === undefined
    return { writesWaiting: this.#waiting, commitSizes: this.#commitSizes, isWritable }
  }

  /** On the monotonic clock; undefined if the last write succeeded, or failed too long ago to say anything about now. */
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
    const { timeoutMs } = this.#options
    const waiting: WaitingWrite<Write, Result> = { ...Promise.withResolvers<Result>(), write, timedOut: false }
    this.#queue.push(waiting)
    // Writes of one event-loop tick go together.
    this.#nextTick ??= setImmediate(() => {
      this.#nextTick = undefined
      void this.#startBatch()
    })
    if (timeoutMs === undefined) return waiting.promise
    return withTimeout(waiting.promise, timeoutMs, () => {
      waiting.timedOut = true
      this.#failedAtMs = performance.now()
      throw new StoreUnavailable(`not committed within ${timeoutMs} ms`)
    })
  }

  /** Refuses further writes, and resolves when the waiting ones are committed. */
  close(): Promise<void> {
    this.#idle ??= Promise.withResolvers()
    if (this.#waiting === 0) this.#idle.resolve()
    return this.#idle.promise
  }

  async #startBatch(): Promise<void> {
    if (this.#queue.length === 0 || this.#committing > 0) return
    const batch = this.#queue.splice(0, batchMax)
    this.#committing = batch.length
    await this.#commitBatch(batch)
    this.#committing = 0
    void this.#startBatch()
    if (this.#waiting === 0) this.#idle?.resolve()
  }

  async #commitBatch(waiting: readonly WaitingWrite<Write, Result>[]): Promise<void> {
    const batch = waiting.filter(({ timedOut }) => !timedOut)
    if (batch.length === 0) return
    try {
      const { values, errors } = await this.#commit(batch.map(({ write }) => write))
      const failed = errors?.size ?? 0
      this.#failedAtMs = failed === batch.length ? performance.now() : undefined
      if (failed < batch.length) this.#commitSizes.observe(batch.length - failed)
      for (const [index, { resolve, reject }] of batch.entries()) {
        if (errors?.has(index)) reject(errors.get(index))
        else resolve(values[index] as Result)
      }
    } catch (error) {
      if (batch.length > 1 && this.#options.retrySingly?.(error)) {
        for (const single of batch) await this.#commitBatch([single])
        return
      }
      this.#failedAtMs = performance.now()
      for (const { reject } of batch) reject(error)
    }
  }
}
