import { Worker } from 'node:worker_threads'
import { StoreUnavailable } from '../../fault.ts'
import type { WriterThreadData } from './writer-thread.ts'
import type { Write, WriteName, Writes, Written } from './writes.ts'

/** Hands writes to the one thread that makes them. While it commits, the next ones gather, and go together. */
export interface Writer {
  /** Settles when the write is on the disk, or has failed and changed nothing. */
  write<Name extends WriteName>(
    name: Name,
    ...args: Parameters<Writes[Name]>
  ): Promise<ReturnType<Writes[Name]>>
  /** Commits what is waiting, then ends the thread. */
  close(): Promise<void>
}

/** Writes that wait or are being committed, at most: about a tenth of a second's work. */
export const writesWaitingMax = 1_024

interface Waiting {
  readonly write: Write
  resolve(value: unknown): void
  reject(error: Error): void
}

export function createWriter(
  file: string,
  onTrouble: (message: string) => void = () => {},
  threadModule: URL = new URL('./writer-thread.ts', import.meta.url),
): Writer {
  let waiting: Waiting[] = []
  let committing: Waiting[] = []
  let thread: Worker | undefined
  let closed: PromiseWithResolvers<void> | undefined

  function start(): Worker {
    const workerData: WriterThreadData = { file }
    const worker = new Worker(threadModule, { workerData })
    worker.on('message', (message: readonly Written[] | 'closed') => {
      if (message !== 'closed') return settle(message)
      void worker.terminate()
      closed?.resolve()
    })
    worker.on('error', error => onTrouble(`The writer's thread failed: ${String(error)}`))
    worker.on('exit', ended)
    return worker
  }

  function commitNext(): void {
    if (committing.length > 0) return
    if (waiting.length === 0) {
      if (closed) endThread()
      return
    }
    thread ??= start()
    committing = waiting
    waiting = []
    thread.postMessage(committing.map(({ write }) => write))
  }

  function settle(written: readonly Written[]): void {
    const settled = committing
    committing = []
    for (const [index, { resolve, reject }] of settled.entries()) {
      const outcome = written[index]
      if (outcome?.ok) resolve(outcome.value)
      else reject(errorOf(outcome))
    }
    commitNext()
  }

  /** A thread that ended by itself leaves nobody waiting; the next write starts another one. */
  function ended(): void {
    thread = undefined
    const abandoned = [...committing, ...waiting]
    committing = []
    waiting = []
    if (abandoned.length > 0 || !closed) {
      onTrouble(
        `The writer's thread ended; ${abandoned.length} writes were given up, and it is started again`,
      )
    }
    for (const { reject } of abandoned) reject(new StoreUnavailable("the writer's thread ended"))
    closed?.resolve()
  }

  function endThread(): void {
    if (thread) thread.postMessage('close')
    else closed?.resolve()
  }

  return {
    write(name, ...args) {
      if (closed) return Promise.reject(new StoreUnavailable('the store is closing'))
      if (waiting.length + committing.length >= writesWaitingMax) {
        return Promise.reject(new StoreUnavailable(`${writesWaitingMax} writes are waiting already`))
      }
      return new Promise((resolve, reject) => {
        waiting.push({ write: { name, args } as Write, resolve: resolve as Waiting['resolve'], reject })
        commitNext()
      })
    },
    close() {
      if (!closed) {
        closed = Promise.withResolvers<void>()
        commitNext()
      }
      return closed.promise
    },
  }
}

function errorOf(outcome: Exclude<Written, { ok: true }> | undefined): Error {
  const message = outcome?.message ?? "the writer's thread answered too little"
  return outcome?.unavailable ? new StoreUnavailable(message) : new Error(message)
}
