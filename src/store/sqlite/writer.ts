import { StoreUnavailable } from '../../errors.ts'
import { CommitQueue, type Outcome, type Take, WriteHealth } from '../commit-queue.ts'
import { type DamageGuard, toError } from './errors.ts'
import { identify } from './schema.ts'
import type { Committed, Numbered, ThreadReply, ThreadRequest, Write, Writes } from './writer-thread.ts'

/** Sends writes to the writer thread, which starts with the first one. */
export class Writer {
  readonly #health = new WriteHealth()
  readonly #queue = new CommitQueue<Write, unknown>({
    commit: take => this.#commit(take),
    kindOf: ([name]) => (name.startsWith('createPet') ? 'pets' : 'others'),
    health: this.#health,
  })
  readonly #file: string
  readonly #identity: string | undefined
  readonly #guard: DamageGuard
  readonly #onEnd: (cause: string) => void
  #worker: Worker | undefined
  /** By the numbers of their requests. */
  readonly #unanswered = new Map<number, PromiseWithResolvers<ThreadReply>>()
  #requests = 0
  #opened: Promise<unknown> | undefined
  #closed: Promise<void> | undefined
  /** Set when the thread has ended by itself. */
  #end: StoreUnavailable | undefined
  #commits = 0

  /** `onEnd` is called if the thread ends by itself. It should not; no write is possible then. */
  constructor(file: string, guard: DamageGuard, onEnd: (cause: string) => void = () => {}) {
    this.#file = file
    this.#identity = identify(file)
    this.#guard = guard
    this.#onEnd = onEnd
  }

  get writesWaiting(): number {
    return this.#queue.writesWaiting
  }

  /** How many commits the thread has answered, before their writes resolve: the file may have changed with each. */
  get commits(): number {
    return this.#commits
  }

  get isWritable(): boolean {
    return this.#health.isGood && identify(this.#file) === this.#identity
  }

  /** Resolves when the thread has tried to open the file: the first write reports a failure. */
  async start(): Promise<void> {
    this.#opened ??= this.#startThread()
    await this.#opened.catch(() => {})
  }

  /** Resolves when the write is on disk. Rejects if the thread ends during the commit: the write may be stored. */
  async write<N extends keyof Writes>(name: N, ...args: Parameters<Writes[N]>): Promise<ReturnType<Writes[N]>> {
    if (this.#guard.damage) throw this.#guard.damage
    // The thread has called the function of this name.
    return (await this.#queue.add([name, ...args])) as ReturnType<Writes[N]>
  }

  /** Takes no more writes, and waits for the outcome of each. */
  finish(): Promise<void> {
    return this.#queue.close()
  }

  /** Ends the thread, when it has committed the last write and closed the file. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await this.finish()
    if (!this.#worker) return
    await this.#send({ type: 'close' }).catch(() => {})
    const worker = this.#worker
    this.#worker = undefined
    worker?.terminate()
  }

  #startThread(): Promise<unknown> {
    // A small heap that is collected often saves 13 MB and costs no measurable time.
    const worker = new Worker(new URL('./writer-thread.ts', import.meta.url), { smol: true })
    let cause = 'it gave no reason'
    worker.onmessage = ({ data: { number, content } }: MessageEvent<Numbered<ThreadReply>>) => {
      this.#unanswered.get(number)?.resolve(content)
      this.#unanswered.delete(number)
    }
    worker.onerror = ({ message }) => {
      cause = message
    }
    worker.addEventListener('close', () => {
      if (this.#worker === worker) this.#failAll(cause)
    })
    this.#worker = worker
    return this.#send({ type: 'open', file: this.#file, identity: this.#identity })
  }

  #send(content: ThreadRequest): Promise<ThreadReply> {
    if (this.#end) return Promise.reject(this.#end)
    const reply = Promise.withResolvers<ThreadReply>()
    const number = ++this.#requests
    this.#unanswered.set(number, reply)
    this.#worker?.postMessage({ number, content } satisfies Numbered<ThreadRequest>)
    return reply.promise
  }

  async #commit(take: Take<Write>): Promise<readonly Outcome<unknown>[]> {
    void this.start()
    let whyUnsent: StoreUnavailable | undefined
    for (;;) {
      const writes = take(whyUnsent)
      if (writes.length === 0) return []
      const reply = await this.#send({ type: 'commit', writes })
      if (reply === undefined) throw new Error('the writer thread did not reply to a commit')
      if (reply !== 'locked') return this.#outcomes(writes, reply)
      whyUnsent = new StoreUnavailable('another process has locked the file')
    }
  }

  #outcomes(writes: readonly Write[], { results, failures = new Map(), changed }: Committed) {
    this.#commits++
    const errors = new Map([...failures].map(([index, failure]) => [index, this.#guard.note(toError(failure))]))
    // If a read has found damage meanwhile, the writes may be lost.
    const { damage } = this.#guard
    return writes.map((_, index): Outcome<unknown> => {
      const error = damage ?? errors.get(index)
      return error ? { error } : { result: results[index], changed }
    })
  }

  #failAll(cause: string): void {
    this.#worker = undefined
    this.#end = new StoreUnavailable('the writer thread has ended')
    for (const { reject } of this.#unanswered.values()) reject(this.#end)
    this.#unanswered.clear()
    this.#onEnd(cause)
  }
}
