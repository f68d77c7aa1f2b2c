import { StoreUnavailable } from '../../errors.ts'
import { CommitQueue, type Outcome, WriteHealth } from '../commit-queue.ts'
import { type DamageGuard, toError } from './errors.ts'
import { identify } from './schema.ts'
import { Thread, type WritesByName } from './thread.ts'
import type { CommitReply, CommitRequest, Write, Writes } from './writer-thread.ts'

/** Writes of other things than animals. */
const others: (keyof Writes)[] = ['deleteExpiredKeys', 'createKey', 'createFirstKey', 'revokeKey', 'recordKeyUses']

/** Sends writes to the writer thread, which starts with the first one. */
export class Writer implements WritesByName<Writes> {
  /** How many commits the thread has answered, before their writes resolve: the file may have changed with each. */
  commits = 0
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
  #thread: Thread<CommitRequest | 'close', CommitReply> | undefined

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

  get isWritable(): boolean {
    return this.#health.isGood && identify(this.#file) === this.#identity
  }

  /** Resolves when the thread has tried to open the file: the first write reports a failure. */
  async start(): Promise<void> {
    await this.#send([]).catch(() => {})
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
    await this.#thread?.send('close').catch(() => {})
    this.#thread?.terminate()
  }

  async #commit(take: () => readonly Write[]): Promise<readonly Outcome<unknown>[]> {
    const writes = take()
    const reply = await this.#send(writes).catch(cause => {
      throw new StoreUnavailable('the writer thread ended', { cause })
    })
    if (reply === 'locked') {
      const error = new StoreUnavailable('another process has locked the file')
      return writes.map(() => ({ error, mayRepeat: true }))
    }
    this.commits++
    const { results, failures = new Map(), changed } = reply
    const errors = new Map([...failures].map(([index, failure]) => [index, this.#guard.note(toError(failure))]))
    // If a read has found damage meanwhile, the writes may be lost.
    const { damage } = this.#guard
    return writes.map((_, index): Outcome<unknown> => {
      const error = damage ?? errors.get(index)
      return error ? { error } : { result: results[index], changed }
    })
  }

  #send(writes: readonly Write[]): Promise<CommitReply> {
    this.#thread ??= new Thread(new URL('./writer-thread.ts', import.meta.url), this.#onEnd)
    return this.#thread.send({ file: this.#file, identity: this.#identity, writes })
  }
}
