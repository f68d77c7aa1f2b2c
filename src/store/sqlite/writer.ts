import { StoreUnavailable } from '../../errors.ts'
import { CommitQueue, type Outcome, type Take, WriteHealth } from '../commit-queue.ts'
import { type DamageGuard, toError } from './errors.ts'
import { identify } from './schema.ts'
import { Thread, type WritesByName } from './thread.ts'
import type { CommitReply, Committed, ThreadReply, ThreadRequest, Write, Writes } from './writer-thread.ts'

/** Writes of other things than animals. */
const others: (keyof Writes)[] = ['deleteExpiredKeys', 'createKey', 'createFirstKey', 'revokeKey', 'recordKeyUses']

/** Sends writes to the writer thread, which starts with the first one. */
export class Writer implements WritesByName<Writes> {
  readonly #health = new WriteHealth()
  readonly #queue = new CommitQueue<Write, unknown>({
    commit: take => this.#commit(take),
    kindOf: ([name]) => (others.includes(name) ? 'others' : 'pets'),
    health: this.#health,
  })
  readonly #file: string
  readonly #identity: string | undefined
  readonly #guard: DamageGuard
  readonly #onEnd: ((cause: string) => void) | undefined
  #started: ReturnType<typeof startThread> | undefined
  #commits = 0

  /** `onEnd` is called if the thread ends by itself. It should not; no write is possible then. */
  constructor(file: string, guard: DamageGuard, onEnd?: (cause: string) => void) {
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
    await this.#start().opened
  }

  /** Resolves when the write is on disk. Rejects if the thread ends during the commit: the write may be stored. */
  async write<N extends keyof Writes>(name: N, ...args: Parameters<Writes[N]>): Promise<ReturnType<Writes[N]>> {
    if (this.#guard.damage) throw this.#guard.damage
    // The thread has called the function of this name.
    return (await this.#queue.add([name, ...args])) as ReturnType<Writes[N]>
  }

  /** Refuses further writes, and resolves when the others are committed or have failed. */
  finish(): Promise<void> {
    return this.#queue.close()
  }

  /** Ends the thread, when it has committed the last write and closed the file. */
  async close(): Promise<void> {
    await this.finish()
    if (!this.#started) return
    const { thread } = this.#started
    await thread.send({ type: 'close' }).catch(() => {})
    thread.terminate()
  }

  #start(): ReturnType<typeof startThread> {
    this.#started ??= startThread(this.#file, this.#identity, this.#onEnd)
    return this.#started
  }

  async #commit(take: Take<Write>): Promise<readonly Outcome<unknown>[]> {
    let whyUnsent: StoreUnavailable | undefined
    for (;;) {
      const writes = take(whyUnsent)
      if (writes.length === 0) return []
      const reply = await this.#send(writes)
      if (reply !== 'locked') return this.#readOutcomes(writes, reply)
      whyUnsent = new StoreUnavailable('another process has locked the file')
    }
  }

  async #send(writes: readonly Write[]): Promise<CommitReply> {
    try {
      return (await this.#start().thread.send({ type: 'commit', writes })) as CommitReply
    } catch (cause) {
      throw new StoreUnavailable('the writer thread ended', { cause })
    }
  }

  #readOutcomes(writes: readonly Write[], { results, failures = new Map(), changed }: Committed) {
    this.#commits++
    const errors = new Map([...failures].map(([index, failure]) => [index, this.#guard.note(toError(failure))]))
    // If a read has found damage meanwhile, the writes may be lost.
    const { damage } = this.#guard
    return writes.map((_, index): Outcome<unknown> => {
      const error = damage ?? errors.get(index)
      return error ? { error } : { result: results[index], changed }
    })
  }
}

function startThread(file: string, identity: string | undefined, onEnd?: (cause: string) => void) {
  const thread = new Thread<ThreadRequest, ThreadReply>(new URL('./writer-thread.ts', import.meta.url), onEnd)
  return { thread, opened: thread.send({ type: 'open', file, identity }).catch(() => undefined) }
}
