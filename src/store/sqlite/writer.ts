import { StoreUnavailable } from '../../errors.ts'
import type { StoreActivity } from '../../store.ts'
import { type BatchResult, CommitQueue } from '../commit-queue.ts'
import { DamageGuard, errorOf, type WriteFailure } from './errors.ts'
import { identityOf } from './schema.ts'

/** A write as it is sent to the thread: flat, because nested values cost several times more to copy. */
export type Write = readonly [name: string, ...args: readonly unknown[]]

/** To the thread: first the file, then batches of writes, then `close`. */
export type WriterRequest =
  | { readonly file: string; readonly identity: string | undefined }
  | readonly Write[]
  | 'close'

/** From the thread: `ready` when the file is open, then the result of each batch in order, then `closed`. */
export type WriterReply = 'ready' | WrittenBatch | 'closed'

export interface WrittenBatch {
  readonly values: readonly unknown[]
  /** The writes that failed, by their index. */
  readonly failures?: ReadonlyMap<number, WriteFailure>
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
  readonly #parts
  readonly #queue = new CommitQueue<Write, unknown>(batch => this.#commit(batch), { overlap: true })
  #thread: WriterThread | undefined
  #commits = 0

  constructor(
    file: string,
    guard = new DamageGuard(),
    onError: (message: string) => void = () => {},
    threadModule = new URL('./writer-thread.ts', import.meta.url),
  ) {
    this.#parts = { file, identity: identityOf(file), guard, onError, threadModule }
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
    const { damage } = this.#parts.guard
    if (damage) return Promise.reject(damage)
    return this.#queue.add([name as string, ...args]) as Promise<ReturnType<Writes[Name]>>
  }

  /** Starts the thread, and resolves when its file is open or it has ended: the first write reports a failure. */
  start(): Promise<void> {
    this.#thread ??= this.#startThread()
    return this.#thread.ready.promise
  }

  /** Commits the waiting writes, then ends the thread. */
  async close(): Promise<void> {
    await this.#queue.close()
    this.#thread?.worker.postMessage('close' satisfies WriterRequest)
    await this.#thread?.closed.promise
  }

  #commit(batch: readonly Write[]): Promise<BatchResult<unknown>> {
    this.#thread ??= this.#startThread()
    const result = Promise.withResolvers<BatchResult<unknown>>()
    this.#thread.batches.push(result)
    this.#thread.worker.postMessage(batch satisfies WriterRequest)
    return result.promise
  }

  #startThread(): WriterThread {
    const { file, identity, threadModule, onError } = this.#parts
    const thread: WriterThread = {
      // A small heap that is collected often saves 13 MB and costs no measurable time.
      worker: new Worker(threadModule, { smol: true }),
      ready: Promise.withResolvers(),
      closed: Promise.withResolvers(),
      batches: [],
    }
    thread.worker.onmessage = ({ data }: MessageEvent<WriterReply>) => {
      if (data === 'ready') thread.ready.resolve()
      else if (data === 'closed') this.#ended(thread, 'closed')
      else this.#receive(thread, data)
    }
    thread.worker.onerror = ({ message }) => onError(`The writer thread failed: ${firstErrorLine(message)}`)
    thread.worker.addEventListener('close', () => this.#ended(thread, 'failed'))
    thread.worker.postMessage({ file, identity } satisfies WriterRequest)
    return thread
  }

  #receive(thread: WriterThread, { values, failures }: WrittenBatch): void {
    this.#commits++
    const { guard } = this.#parts
    const errors = new Map<number, Error>()
    for (const [index, failure] of failures ?? []) errors.set(index, guard.note(errorOf(failure)))
    const batch = thread.batches.shift()
    // If a read has found damage meanwhile, the writes may be lost.
    if (guard.damage) batch?.reject(guard.damage)
    else batch?.resolve({ values, errors })
  }

  #ended(thread: WriterThread, how: 'closed' | 'failed'): void {
    if (this.#thread !== thread) return
    this.#thread = undefined
    const lost = `The writer thread ended: ${this.#queue.committing} writes failed; the next write starts it again`
    if (how === 'closed') thread.worker.terminate()
    else this.#parts.onError(lost)
    for (const { reject } of thread.batches) reject(new StoreUnavailable('the writer thread ended'))
    thread.ready.resolve()
    thread.closed.resolve()
  }
}

/** Bun formats an error with the lines of code around it. */
function firstErrorLine(formatted: string): string {
  return /^\w*error: .*$/im.exec(formatted)?.[0] ?? formatted
}
