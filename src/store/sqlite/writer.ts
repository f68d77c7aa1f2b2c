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

/** A write waits at most this long for a writer thread that starts again. */
const startMsMax = 1_000

/** Sends writes to the writer thread, which it starts when it is needed, and again if it ends by itself. */
export class Writer {
  readonly #guard: DamageGuard
  readonly #thread: RestartingThread<ThreadRequest, ThreadReply>
  readonly #queue = new CommitQueue<Write, WriteResult | undefined>(batch => this.#commit(batch), { overlap: true })
  /** Batches that await a reply, in order. */
  #batches: PromiseWithResolvers<BatchResult<WriteResult | undefined>>[] = []
  readonly #opened = Promise.withResolvers<void>()
  #closed = Promise.withResolvers<void>()
  #restarted = Promise.withResolvers<void>()
  #isStarted = false
  #commits = 0

  /** `onEnd` is called when the thread has ended by itself. The message says why and when the next one starts. */
  constructor(
    file: string,
    {
      guard = new DamageGuard(),
      onEnd = (_message: string) => {},
      module = new URL('./writer-thread.ts', import.meta.url),
    } = {},
  ) {
    this.#guard = guard
    const identity = identityOf(file)
    this.#thread = new RestartingThread({
      module,
      onStart: () => {
        this.#closed = Promise.withResolvers()
        this.#thread.post({ type: 'open', file, identity })
        this.#restarted.resolve()
        this.#restarted = Promise.withResolvers()
      },
      onMessage: reply => this.#receive(reply),
      onEnd: message => {
        this.#lose()
        onEnd(`The writer thread ${message}`)
      },
    })
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
    if (!this.#isStarted) {
      this.#isStarted = true
      this.#thread.start()
    }
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
    if (this.#thread.isRunning) {
      this.#thread.post({ type: 'close' })
      await this.#closed.promise
    }
    this.#thread.stop()
  }

  async #commit(batch: readonly Write[]): Promise<BatchResult<WriteResult | undefined>> {
    void this.start()
    if (!this.#thread.isRunning) await this.#restart()
    const result = Promise.withResolvers<BatchResult<WriteResult | undefined>>()
    this.#batches.push(result)
    this.#thread.post({ type: 'commit', batch })
    return result.promise
  }

  #restart(): Promise<void> {
    return withTimeout(this.#restarted.promise, startMsMax, () => {
      throw new StoreUnavailable('the writer thread has not started')
    })
  }

  #receive(reply: ThreadReply): void {
    if (reply.type === 'opened') this.#opened.resolve()
    else if (reply.type === 'closed') this.#closed.resolve()
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

  /** The writer thread has ended. */
  #lose(): void {
    const batches = this.#batches
    this.#batches = []
    for (const { reject } of batches) reject(new StoreUnavailable('the writer thread ended'))
    this.#opened.resolve()
    this.#closed.resolve()
  }
}

/** If a thread ends sooner than this, the next start is delayed. */
const shortLifeMs = 10_000
const firstPauseMs = 100
const pauseMsMax = 30_000
/** A thread opens fewer files than this when it starts. */
const filesToStart = 24
/** Between two checks whether these files can be opened. */
const filesPauseMs = 500

interface ThreadParts<Reply> {
  readonly module: URL
  /** The thread has just started: messages can be posted. */
  onStart(): void
  onMessage(message: Reply): void
  /** The thread has ended by itself. The message says why, if that is known, and when the next one starts. */
  onEnd(message: string): void
}

/** Runs a module in a thread, and starts it again whenever it ends by itself: at once, then with growing pauses. */
export class RestartingThread<Request, Reply> {
  readonly #parts: ThreadParts<Reply>
  #worker: Worker | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #startedMs = 0
  #pauseMs = 0
  #failure: string | undefined

  constructor(parts: ThreadParts<Reply>) {
    this.#parts = parts
  }

  get isRunning(): boolean {
    return this.#worker !== undefined
  }

  start(): void {
    const { module, onStart, onMessage } = this.#parts
    // A small heap that is collected often saves 13 MB and costs no measurable time.
    const worker = new Worker(module, { smol: true })
    worker.onmessage = ({ data }: MessageEvent<Reply>) => onMessage(data)
    worker.onerror = ({ message }) => {
      this.#failure = firstErrorLine(message)
    }
    worker.addEventListener('close', () => this.#ended(worker))
    this.#worker = worker
    this.#startedMs = performance.now()
    onStart()
  }

  /** Does nothing if the thread is not running. */
  post(message: Request): void {
    this.#worker?.postMessage(message)
  }

  /** Ends the thread for good. */
  stop(): void {
    clearTimeout(this.#timer)
    const worker = this.#worker
    this.#worker = undefined
    worker?.terminate()
  }

  #ended(worker: Worker): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    if (performance.now() - this.#startedMs >= shortLifeMs) this.#pauseMs = 0
    const pause = this.#pauseMs > 0 ? ` in ${this.#pauseMs} ms` : ''
    const cause = this.#failure === undefined ? '' : ` (${this.#failure})`
    this.#failure = undefined
    this.#restartAfter(this.#pauseMs)
    this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, firstPauseMs), pauseMsMax)
    this.#parts.onEnd(`ended${cause}; restarting${pause}`)
  }

  #restartAfter(pauseMs: number): void {
    const restart = () => (canOpenFiles() ? this.start() : this.#restartAfter(filesPauseMs))
    this.#timer = setTimeout(restart, pauseMs).unref()
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
