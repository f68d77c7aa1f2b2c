import { closeSync, openSync } from 'node:fs'
import type { ApiKey, NewApiKey } from '../../api-key.ts'
import { StoreUnavailable } from '../../errors.ts'
import type { NewPet } from '../../pet.ts'
import type { Creation, IdempotencyKey, KeyUse, StoreActivity } from '../../store.ts'
import { withTimeout } from '../../timeout.ts'
import { type BatchResult, CommitQueue } from '../commit-queue.ts'
import { DamageGuard, errorOf, type Failure } from './errors.ts'
import { identityOf } from './schema.ts'

/** A change to the file. The most frequent one is flat: nested values cost more to copy between threads. */
export type Write =
  | ({ readonly type: 'createPet' } & NewPet)
  | { readonly type: 'createPetOnce'; readonly pet: NewPet; readonly key: IdempotencyKey }
  | { readonly type: 'deleteExpiredIdempotencyKeys'; readonly expiredMs: number; readonly max: number }
  | { readonly type: 'createKey' | 'createFirstKey'; readonly key: NewApiKey }
  | { readonly type: 'revokeKey'; readonly id: bigint; readonly at: Date }
  | { readonly type: 'recordKeyUses'; readonly uses: readonly KeyUse[] }

interface WriteResults {
  createPet: bigint
  createPetOnce: Creation
  deleteExpiredIdempotencyKeys: number
  createKey: ApiKey
  createFirstKey: ApiKey | undefined
  revokeKey: boolean
  recordKeyUses: undefined
}

export type WriteResult = WriteResults[Write['type']]

/** To the writer thread: the file, then batches of writes, then `close`. */
export type ThreadRequest =
  | { readonly type: 'open'; readonly file: string; readonly identity: string | undefined }
  | { readonly type: 'commit'; readonly batch: readonly Write[] }
  | { readonly type: 'close' }

/** From the writer thread: one reply to each request, in the same order. */
export type ThreadReply =
  | { readonly type: 'opened' }
  | { readonly type: 'closed' }
  | ({ readonly type: 'committed' } & CommittedBatch)

export interface CommittedBatch {
  readonly values: readonly (WriteResult | undefined)[]
  /** The writes that failed, by their index. */
  readonly failures?: ReadonlyMap<number, Failure>
}

/** A thread that ended by itself starts again after this time. */
const restartMs = 500
/** A write waits at most this long for a writer thread that starts again. */
const startMsMax = 1_000
/** A thread opens fewer files than this when it starts. */
const filesToStart = 24

type BatchReply = PromiseWithResolvers<BatchResult<WriteResult | undefined>>

/** Sends writes to the writer thread, which it starts when it is needed, and again if it ends by itself. */
export class Writer {
  readonly #file: string
  readonly #identity: string | undefined
  readonly #guard: DamageGuard
  readonly #onEnd: (message: string) => void
  readonly #module: URL
  readonly #queue = new CommitQueue<Write, WriteResult | undefined>(batch => this.#commit(batch), { overlap: true })
  #worker: Worker | undefined
  #restart: ReturnType<typeof setTimeout> | undefined
  #batches: BatchReply[] = []
  #isStarted = false
  readonly #opened = Promise.withResolvers<void>()
  #restarted = Promise.withResolvers<void>()
  #closing: PromiseWithResolvers<void> | undefined
  #commits = 0

  /** `onEnd` is called when the thread has ended by itself. The message says why, if that is known. */
  constructor(
    file: string,
    {
      guard = new DamageGuard(),
      onEnd = (_message: string) => {},
      module = new URL('./writer-thread.ts', import.meta.url),
    } = {},
  ) {
    this.#file = file
    this.#identity = identityOf(file)
    this.#guard = guard
    this.#onEnd = onEnd
    this.#module = module
  }

  /** How many batches were committed. It grows before their writes resolve. */
  get commits(): number {
    return this.#commits
  }

  activity(): StoreActivity {
    return this.#queue.activity()
  }

  /** Resolves when the file is open or the thread has ended: the first write reports a failure. */
  start(): Promise<void> {
    if (!this.#isStarted) this.#startThread()
    return this.#opened.promise
  }

  /** Resolves when the write is on disk. If the thread ends during the commit, it rejects and the write may be stored. */
  write<W extends Write>(write: W): Promise<WriteResults[W['type']]> {
    const { damage } = this.#guard
    if (damage) return Promise.reject(damage)
    return this.#queue.add(write) as Promise<WriteResults[W['type']]>
  }

  /** Refuses further writes, and resolves when the waiting ones are committed. */
  drain(): Promise<void> {
    return this.#queue.close()
  }

  /** Drains, and ends the thread after it has closed the file. */
  async close(): Promise<void> {
    await this.drain()
    clearTimeout(this.#restart)
    if (!this.#worker) return
    this.#closing ??= Promise.withResolvers()
    this.#post({ type: 'close' })
    await this.#closing.promise
    clearTimeout(this.#restart)
    const worker = this.#worker
    this.#worker = undefined
    worker?.terminate()
  }

  #startThread(): void {
    this.#isStarted = true
    // A small heap that is collected often saves 13 MB and costs no measurable time.
    const worker = new Worker(this.#module, { smol: true })
    let failure = ''
    worker.onmessage = ({ data }: MessageEvent<ThreadReply>) => this.#receive(data)
    worker.onerror = ({ message }) => {
      failure = ` (${firstErrorLine(message)})`
    }
    worker.addEventListener('close', () => {
      if (this.#worker === worker) this.#onThreadEnd(failure)
    })
    this.#worker = worker
    this.#post({ type: 'open', file: this.#file, identity: this.#identity })
    this.#restarted.resolve()
    this.#restarted = Promise.withResolvers()
  }

  #restartLater(): void {
    const restart = () => (canOpenFiles() ? this.#startThread() : this.#restartLater())
    this.#restart = setTimeout(restart, restartMs).unref()
  }

  #post(request: ThreadRequest): void {
    this.#worker?.postMessage(request)
  }

  async #commit(batch: readonly Write[]): Promise<BatchResult<WriteResult | undefined>> {
    void this.start()
    if (!this.#worker) {
      await withTimeout(this.#restarted.promise, startMsMax, () => {
        throw new StoreUnavailable('the writer thread has not started')
      })
    }
    const reply: BatchReply = Promise.withResolvers()
    this.#batches.push(reply)
    this.#post({ type: 'commit', batch })
    return reply.promise
  }

  #receive(reply: ThreadReply): void {
    if (reply.type === 'opened') this.#opened.resolve()
    else if (reply.type === 'closed') this.#closing?.resolve()
    else this.#onCommitted(reply)
  }

  #onCommitted({ values, failures }: CommittedBatch): void {
    this.#commits++
    const errors = new Map<number, Error>()
    for (const [index, failure] of failures ?? []) errors.set(index, this.#guard.note(errorOf(failure)))
    const batch = this.#batches.shift()
    // If a read has found damage meanwhile, the writes may be lost.
    const { damage } = this.#guard
    if (damage) batch?.reject(damage)
    else batch?.resolve({ values, errors })
  }

  #onThreadEnd(failure: string): void {
    this.#worker = undefined
    const batches = this.#batches
    this.#batches = []
    for (const { reject } of batches) reject(new StoreUnavailable('the writer thread ended'))
    this.#opened.resolve()
    this.#closing?.resolve()
    this.#restartLater()
    this.#onEnd(`The writer thread ended${failure}; restarting`)
  }
}

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
