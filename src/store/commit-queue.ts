import { StoreUnavailable } from '../errors.ts'

/** Writes that wait or are being committed, at most: about a tenth of a second of work. */
export const writesWaitingMax = 1_024
/** Bounds the time of one commit. */
const batchMax = 512
/** A write that was not sent this long after it was added is refused: it waited for a lock, a connection or others. */
export const writeMsMax = 5_000
/** A failed write counts for this long, unless a later one succeeds. */
const failureMsMax = 120_000

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

/**
 * What became of a write: it is committed, and has perhaps changed nothing, or it has failed. `mayRepeat`: nothing has
 * changed, and it is sent again while it has time.
 */
export type Outcome<Result> =
  | { readonly result: Result; readonly changed: boolean }
  | { readonly error: unknown; readonly mayRepeat?: true }

const noOutcome = { error: new Error('a commit has fewer outcomes than writes') }

interface QueueParts<Write, Result> {
  /**
   * Calls `take` as soon as it can send, and returns an outcome for each write that it took. If it rejects, these have
   * failed, or if it took none, all that wait.
   */
  commit(take: () => readonly Write[]): Promise<readonly Outcome<Result>[]>
  kindOf(write: Write): WriteKind
  readonly health: WriteHealth
}

interface QueuedWrite<Write, Result> extends PromiseWithResolvers<Result> {
  readonly write: Write
  readonly deadlineMs: number
}

/** Commits the writes that arrive during one commit together in the next one. */
export class CommitQueue<Write, Result> {
  readonly #parts: QueueParts<Write, Result>
  /** In the order of their deadlines. */
  readonly #waiting: QueuedWrite<Write, Result>[] = []
  #taken: readonly QueuedWrite<Write, Result>[] = []
  #isCommitting = false
  #deadlineTimer: NodeJS.Timeout | undefined
  #idle: PromiseWithResolvers<void> | undefined

  constructor(parts: QueueParts<Write, Result>) {
    this.#parts = parts
  }

  get writesWaiting(): number {
    return this.#waiting.length + this.#taken.length
  }

  add(write: Write): Promise<Result> {
    if (this.#idle) return Promise.reject(new StoreUnavailable('the store is closing'))
    if (this.writesWaiting >= writesWaitingMax) {
      return Promise.reject(new StoreUnavailable(`${writesWaitingMax} writes are waiting already`))
    }
    const queued = { ...Promise.withResolvers<Result>(), write, deadlineMs: performance.now() + writeMsMax }
    this.#waiting.push(queued)
    this.#deadlineTimer ??= setTimeout(() => this.#watchDeadlines(), writeMsMax).unref()
    if (!this.#isCommitting) {
      this.#isCommitting = true
      // Writes of one event-loop tick go together.
      setImmediate(() => this.#commitAll())
    }
    return queued.promise
  }

  /** Refuses further writes, and resolves when the others have an outcome. */
  close(): Promise<void> {
    this.#idle ??= Promise.withResolvers()
    if (!this.#isCommitting) this.#idle.resolve()
    return this.#idle.promise
  }

  async #commitAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const outcomes = await this.#parts.commit(() => this.#take()).catch(error => this.#failAll(error))
      const taken = this.#taken
      this.#taken = []
      const again: QueuedWrite<Write, Result>[] = []
      for (const [index, queued] of taken.entries()) {
        const outcome = outcomes[index] ?? noOutcome
        if ('mayRepeat' in outcome && performance.now() < queued.deadlineMs) again.push(queued)
        else this.#settle(queued, outcome)
      }
      this.#waiting.unshift(...again)
      if (again.length > 0 && !this.#deadlineTimer) this.#watchDeadlines()
    }
    this.#isCommitting = false
    this.#idle?.resolve()
  }

  #take(): readonly Write[] {
    this.#refuseLate()
    this.#taken = this.#waiting.splice(0, batchMax)
    return this.#taken.map(({ write }) => write)
  }

  #failAll(error: unknown): readonly Outcome<Result>[] {
    if (this.#taken.length === 0) this.#taken = this.#waiting.splice(0)
    return this.#taken.map(() => ({ error }))
  }

  #refuseLate(): void {
    const nowMs = performance.now()
    while (this.#waiting[0] && this.#waiting[0].deadlineMs <= nowMs) {
      this.#settle(this.#waiting[0], { error: new StoreUnavailable(`not sent within ${writeMsMax} ms`) })
      this.#waiting.shift()
    }
  }

  #watchDeadlines(): void {
    this.#refuseLate()
    const [next] = this.#waiting
    const ms = next && next.deadlineMs - performance.now()
    this.#deadlineTimer = ms === undefined ? undefined : setTimeout(() => this.#watchDeadlines(), ms).unref()
  }

  #settle({ write, resolve, reject }: QueuedWrite<Write, Result>, outcome: Outcome<Result>): void {
    const { health, kindOf } = this.#parts
    if ('error' in outcome) {
      health.noteFailure(kindOf(write))
      reject(outcome.error)
    } else {
      if (outcome.changed) health.noteChange(kindOf(write))
      resolve(outcome.result)
    }
  }
}
