import { closeSync, openSync } from 'node:fs'
import type { ApiKey, NewApiKey } from '../../api-key.ts'
import { StoreUnavailable } from '../../errors.ts'
import type { NewPet } from '../../pet.ts'
import type { Creation, IdempotencyKey, KeyUse } from '../../store.ts'
import { withTimeout } from '../../timeout.ts'
import { CommitQueue, type QueuedWrite, WriteHealth } from '../commit-queue.ts'
import { DamageGuard, errorOf, type Failure } from './errors.ts'
import { identityOf } from './schema.ts'

export interface PetWrites {
  /** One statement: the writer thread relies on that. */
  createPet(pet: NewPet): bigint
  createPetOnce(creation: { readonly pet: NewPet; readonly key: IdempotencyKey }): Creation
  deleteExpiredIdempotencyKeys(expired: { readonly expiredUntilMs: number; readonly max: number }): number
}

export interface KeyWrites {
  createKey(creation: { readonly key: NewApiKey }): ApiKey
  createFirstKey(creation: { readonly key: NewApiKey }): ApiKey | undefined
  revokeKey(revocation: { readonly id: bigint; readonly at: Date }): boolean
  recordKeyUses(report: { readonly uses: readonly KeyUse[] }): void
}

/** Each runs inside a transaction of the writer thread. */
export type Writes = PetWrites & KeyWrites
/** The most frequent one, `createPet`, is flat: nested values cost more to copy between threads. */
export type Write = { [T in keyof Writes]: { readonly type: T } & Parameters<Writes[T]>[0] }[keyof Writes]
export type WriteResult = ReturnType<Writes[keyof Writes]>

/** To the writer thread: the file, then batches of writes, then `close`. */
export type ThreadRequest =
  | { readonly type: 'open'; readonly file: string; readonly identity: string | undefined }
  | { readonly type: 'commit'; readonly batch: readonly Write[] }
  | { readonly type: 'close' }

/** From the writer thread: one reply to each request, in the same order; undefined unless it was a commit. */
export type ThreadReply = CommittedBatch | undefined

export interface CommittedBatch {
  readonly values: readonly WriteResult[]
  /** The writes that failed, by their index. */
  readonly failures?: ReadonlyMap<number, Failure>
  /** Whether the file has changed. */
  readonly changed: boolean
}

/** A thread that ended by itself starts again after this time. */
const restartMs = 500
/** A write waits at most this long for a writer thread that starts again. */
const startMsMax = 1_000
/** A thread opens fewer files than this when it starts. */
const filesToStart = 24
const threadModule = new URL('./writer-thread.ts', import.meta.url)

/** Sends writes to the writer thread, which it starts when it is needed, and again if it ends by itself. */
export class Writer {
  readonly queue = new CommitQueue<Write, WriteResult>(batch => this.#commit(batch))
  readonly #health = new WriteHealth()
  readonly #file: string
  readonly #identity: string | undefined
  readonly #guard: DamageGuard
  readonly #onEnd: (message: string) => void
  readonly #module: URL
  #worker: Worker | undefined
  #restartTimer: ReturnType<typeof setTimeout> | undefined
  #unanswered: PromiseWithResolvers<ThreadReply>[] = []
  #opened: Promise<void> | undefined
  #closed: Promise<unknown> | undefined
  #threadStarted = Promise.withResolvers<void>()
  #commits = 0

  /** `onEnd` is called when the thread has ended by itself. The message says why, if that is known. */
  constructor(
    file: string,
    { guard = new DamageGuard(), onEnd = (_message: string) => {}, module = threadModule } = {},
  ) {
    this.#file = file
    this.#identity = identityOf(file)
    this.#guard = guard
    this.#onEnd = onEnd
    this.#module = module
  }

  /** How many batches the thread has answered, before their writes resolve: the file may have changed with each. */
  get commits(): number {
    return this.#commits
  }

  get isWritable(): boolean {
    return this.#health.isGood && identityOf(this.#file) === this.#identity
  }

  /** Resolves when the file is open or the thread has ended: the first write reports a failure. */
  start(): Promise<void> {
    this.#opened ??= this.#startThread()
    return this.#opened
  }

  /** Resolves when the write is on disk. Rejects if the thread ends during the commit: the write may be stored. */
  write<W extends Write>(write: W): Promise<ReturnType<Writes[W['type']]>> {
    const { damage } = this.#guard
    if (damage) return Promise.reject(damage)
    return this.queue.add(write) as Promise<ReturnType<Writes[W['type']]>>
  }

  /** Waits until the queue is closed, and ends the thread after it has closed the file. */
  async close(): Promise<void> {
    await this.queue.close()
    clearTimeout(this.#restartTimer)
    if (!this.#worker) return
    this.#closed ??= this.#send({ type: 'close' }).catch(() => {})
    await this.#closed
    clearTimeout(this.#restartTimer)
    const worker = this.#worker
    this.#worker = undefined
    worker?.terminate()
  }

  #startThread(): Promise<void> {
    // A small heap that is collected often saves 13 MB and costs no measurable time.
    const worker = new Worker(this.#module, { smol: true })
    let failure = ''
    worker.onmessage = ({ data }: MessageEvent<ThreadReply>) => this.#unanswered.shift()?.resolve(data)
    worker.onerror = ({ message }) => {
      failure = ` (${firstErrorLine(message)})`
    }
    worker.addEventListener('close', () => {
      if (this.#worker === worker) this.#onThreadEnd(failure)
    })
    this.#worker = worker
    this.#threadStarted.resolve()
    this.#threadStarted = Promise.withResolvers()
    return this.#send({ type: 'open', file: this.#file, identity: this.#identity }).then(
      () => {},
      () => {},
    )
  }

  #restartLater(): void {
    const restart = () => (canOpenFiles() ? this.#startThread() : this.#restartLater())
    this.#restartTimer = setTimeout(restart, restartMs).unref()
  }

  #send(request: ThreadRequest): Promise<ThreadReply> {
    const reply = Promise.withResolvers<ThreadReply>()
    this.#unanswered.push(reply)
    this.#worker?.postMessage(request)
    return reply.promise
  }

  async #commit(batch: readonly QueuedWrite<Write, WriteResult>[]): Promise<number> {
    void this.start()
    if (!this.#worker) {
      await withTimeout(this.#threadStarted.promise, startMsMax, () => {
        this.#health.noteFailure('others')
        throw new StoreUnavailable('the writer thread has not started')
      })
    }
    const request = { type: 'commit', batch: batch.map(({ write }) => write) } as const
    const { values = [], failures = new Map<number, Failure>(), changed } = (await this.#send(request)) ?? {}
    this.#commits++
    for (const [index, failure] of failures) {
      this.#health.noteFailure(kindOf(batch[index]?.write))
      batch[index]?.reject(this.#guard.note(errorOf(failure)))
    }
    // If a read has found damage meanwhile, the writes may be lost.
    if (this.#guard.damage) throw this.#guard.damage
    for (const [index, { write, resolve }] of batch.entries()) {
      if (failures.has(index)) continue
      if (changed) this.#health.noteChange(kindOf(write))
      resolve(values[index])
    }
    return batch.length - failures.size
  }

  #onThreadEnd(failure: string): void {
    this.#worker = undefined
    const unanswered = this.#unanswered
    this.#unanswered = []
    if (unanswered.length > 0) this.#health.noteFailure('others')
    for (const { reject } of unanswered) reject(new StoreUnavailable('the writer thread ended'))
    this.#restartLater()
    this.#onEnd(`The writer thread ended${failure}; restarting`)
  }
}

const kindOf = (write?: Write) => (write?.type.startsWith('createPet') ? 'pets' : 'others')

/** Bun ends the whole process if a new thread cannot open its files. */
function canOpenFiles(): boolean {
  const files: number[] = []
  try {
    while (files.length < filesToStart) files.push(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  } finally {
    for (const file of files) closeSync(file)
  }
}

/** Bun formats an error with the lines of code around it. */
function firstErrorLine(formatted: string): string {
  return /^(?:\w*error|[A-Z]\w*): .*$/im.exec(formatted)?.[0] ?? formatted
}
