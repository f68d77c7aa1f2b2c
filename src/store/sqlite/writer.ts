import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../../errors.ts'
import type { StoreActivity } from '../../store.ts'
import { type BatchResult, CommitQueue } from '../commit-queue.ts'
import { DamageGuard } from './errors.ts'
import { identityOf } from './schema.ts'

/** A write as it is sent to the thread: flat, because nested values cost several times more to copy. */
export type Write = readonly [name: string, ...args: readonly unknown[]]

/** To the thread: first the file, then batches of writes, then `close`. */
export type WriterRequest =
  | { readonly file: string; readonly identity: string | undefined }
  | readonly Write[]
  | 'close'

/** From the thread: `ready` when the file is open, then the result of each batch in order, then `closed`. */
export type WriterReply = 'ready' | 'closed' | WrittenBatch

export interface WrittenBatch {
  readonly values: readonly unknown[]
  /** The writes that failed, by their index. */
  readonly failures?: ReadonlyMap<number, WriteFailure>
}

/** An error in a form that can be copied between threads. */
export interface WriteFailure {
  readonly kind: keyof typeof errorClasses
  readonly message: string
}

const errorClasses = {
  unavailable: StoreUnavailable,
  damaged: StoreDamaged,
  'ids exhausted': IdsExhausted,
  bug: Error,
}

interface WriterThread {
  readonly worker: Worker
  readonly ready: PromiseWithResolvers<void>
  readonly closed: PromiseWithResolvers<void>
  /** The batches sent to the thread, in order. */
  readonly batches: PromiseWithResolvers<BatchResult<unknown>>[]
}

/** Runs the functions of `Writes` in the writer thread, which it starts when needed, and again if it ends by itself. */
export class Writer<Writes extends Record<keyof Writes, (...args: never[]) => unknown>> {
  readonly #file: string
  readonly #identity: string | undefined
  readonly #guard: DamageGuard
  readonly #onError: (message: string) => void
  readonly #threadModule: URL
  readonly #queue = new CommitQueue<Write, unknown>(batch => this.#commit(batch), { overlap: true })
  #thread: WriterThread | undefined
  #commits = 0

  constructor(
    file: string,
    guard = new DamageGuard(),
    onError: (message: string) => void = () => {},
    threadModule = new URL('./writer-thread.ts', import.meta.url),
  ) {
    this.#file = file
    this.#identity = identityOf(file)
    this.#guard = guard
    this.#onError = onError
    this.#threadModule = threadModule
  }

  /** The number of batches committed. It grows before their writes resolve. */
  get commits(): number {
    return this.#commits
  }

  activity(): StoreActivity {
    return this.#queue.activity()
  }

  /** Resolves when the write is on disk. If the thread ends during the commit, it rejects and the write may be stored. */
  write<Name extends keyof Writes>(name: Name, ...args: Parameters<Writes[Name]>): Promise<ReturnType<Writes[Name]>> {
    if (this.#guard.damage) return Promise.reject(this.#guard.damage)
    return this.#queue.add([name as string, ...args]) as Promise<ReturnType<Writes[Name]>>
  }

  /** Starts the thread and opens its file before the first write, while file descriptors are available. */
  start(): Promise<void> {
    return this.#runningThread().ready.promise
  }

  /** Commits the waiting writes, then ends the thread. */
  async close(): Promise<void> {
    await this.#queue.close()
    const thread = this.#thread
    if (!thread) return
    send(thread, 'close')
    await thread.closed.promise
  }

  #commit(batch: readonly Write[]): Promise<BatchResult<unknown>> {
    const thread = this.#runningThread()
    const result = Promise.withResolvers<BatchResult<unknown>>()
    thread.batches.push(result)
    send(thread, batch)
    return result.promise
  }

  #runningThread(): WriterThread {
    this.#thread ??= this.#startThread()
    return this.#thread
  }

  #startThread(): WriterThread {
    const thread: WriterThread = {
      // A small heap that is collected often saves 13 MB and costs no measurable time.
      worker: new Worker(this.#threadModule, { smol: true }),
      ready: Promise.withResolvers(),
      closed: Promise.withResolvers(),
      batches: [],
    }
    thread.worker.onmessage = ({ data }: MessageEvent<WriterReply>) => {
      if (data === 'ready') thread.ready.resolve()
      else if (data === 'closed') this.#ended(thread, 'closed')
      else this.#receive(thread, data)
    }
    thread.worker.onerror = ({ message }) => this.#onError(`The writer thread failed: ${firstErrorLine(message)}`)
    thread.worker.addEventListener('close', () => this.#ended(thread, 'failed'))
    send(thread, { file: this.#file, identity: this.#identity })
    return thread
  }

  #receive(thread: WriterThread, { values, failures }: WrittenBatch): void {
    this.#commits++
    const errors = new Map<number, unknown>()
    for (const [index, { kind, message }] of failures ?? []) {
      errors.set(index, this.#guard.note(new errorClasses[kind](message)))
    }
    const batch = thread.batches.shift()
    // If a read has found damage meanwhile, the writes may be lost.
    if (this.#guard.damage) batch?.reject(this.#guard.damage)
    else batch?.resolve({ values, errors })
  }

  #ended(thread: WriterThread, how: 'closed' | 'failed'): void {
    if (this.#thread !== thread) return
    this.#thread = undefined
    if (how === 'closed') thread.worker.terminate()
    else
      this.#onError(`The writer thread ended: ${this.#queue.committing} writes failed; the next write starts it again`)
    for (const { reject } of thread.batches) reject(new StoreUnavailable('the writer thread ended'))
    thread.ready.resolve()
    thread.closed.resolve()
  }
}

function send({ worker }: WriterThread, request: WriterRequest): void {
  worker.postMessage(request)
}

/** Bun formats an error with the lines of code around it. */
function firstErrorLine(formatted: string): string {
  return /^\w*error: .*$/im.exec(formatted)?.[0] ?? formatted
}
