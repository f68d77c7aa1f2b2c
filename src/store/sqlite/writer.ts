import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../../errors.ts'
import { Histogram } from '../../histogram.ts'
import { DamageGuard } from './fault.ts'
import { identityOf } from './identity.ts'
import type { WriterThreadAnswer, WriterThreadMessage } from './writer-thread.ts'
import type { Failure, Write, WriteName, Writes, Written } from './writes.ts'

/** Hands writes to the one thread that makes them; it commits together what reaches it while it is busy. */
export interface Writer {
  /** Settles when the write is on the disk, or has failed. Only where the thread itself dies may it have happened unseen. */
  write<Name extends WriteName>(
    name: Name,
    ...args: Parameters<Writes[Name]>
  ): Promise<ReturnType<Writes[Name]>>
  /** Starts the thread and opens its file now rather than with the first write, when descriptors may have run out. */
  start(): Promise<void>
  /** Writes that wait or are being committed now. */
  readonly waiting: number
  /** Commits that were told of so far. It grows before anybody is answered. */
  readonly commits: number
  /** How many writes went into one commit. */
  readonly commitSizes: Histogram
  /** Lets the thread commit what is waiting, then ends it. */
  close(): Promise<void>
}

/** Writes that wait or are being committed, at most: about a tenth of a second's work. */
export const writesWaitingMax = 1_024

/** In a turn that brings many writes the thread begins with the first of them while the others are still being read. */
const handedAtOnce = 16

const commitSizeBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024]

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
}

export function createWriter(
  file: string,
  guard: DamageGuard = new DamageGuard(),
  onTrouble: (message: string) => void = () => {},
  threadModule: URL = new URL('./writer-thread.ts', import.meta.url),
): Writer {
  /** In the order in which the thread is given them, which is the order in which it answers. */
  let waiting: Waiting[] = []
  const identity = identityOf(file)
  const commitSizes = new Histogram(commitSizeBounds)
  /** Not given to the thread yet. */
  let gathered: Write[] = []
  let commits = 0
  let thread: Worker | undefined
  let started = Promise.withResolvers<void>()
  let closed: PromiseWithResolvers<void> | undefined

  function startThread(): Worker {
    // It keeps next to nothing: a small heap that is collected often takes 13 MB less, and no time that shows.
    const worker = new Worker(threadModule, { smol: true })
    started = Promise.withResolvers()
    worker.onmessage = ({ data }: MessageEvent<WriterThreadAnswer>) => {
      if (data === 'ready') return started.resolve()
      if (data !== 'closed') return settle(data)
      worker.terminate()
      closed?.resolve()
    }
    worker.onerror = ({ message }) => onTrouble(`The writer's thread failed: ${errorLineOf(message)}`)
    worker.addEventListener('close', ended)
    send(worker, { file, identity })
    return worker
  }

  /** What has gathered goes in one message: each one costs, and may have to wake the thread. */
  function hand(): void {
    if (gathered.length === 0) return
    thread ??= startThread()
    send(thread, gathered)
    gathered = []
  }

  function settle({ values, failures }: Written): void {
    commits++
    commitSizes.observe(values.length)
    for (const [index, { resolve, reject }] of waiting.splice(0, values.length).entries()) {
      const failure = failures?.get(index)
      if (failure) reject(guard.note(errorOf(failure)) as Error)
      // A reader has found damage meanwhile: what was written may not be there.
      else if (guard.damage) reject(guard.damage)
      else resolve(values[index])
    }
  }

  /** A thread that ended by itself leaves nobody waiting; the next write starts another one. */
  function ended(): void {
    thread = undefined
    const abandoned = waiting
    waiting = []
    gathered = []
    if (!closed || abandoned.length > 0) {
      onTrouble(
        `The writer's thread ended; ${abandoned.length} writes were given up, the next one starts it again`,
      )
    }
    for (const { reject } of abandoned) reject(new StoreUnavailable("the writer's thread ended"))
    // Whoever waits for the start goes on: the next write starts another thread.
    started.resolve()
    closed?.resolve()
  }

  return {
    start() {
      if (closed) return closed.promise
      thread ??= startThread()
      return started.promise
    },
    get waiting() {
      return waiting.length
    },
    get commits() {
      return commits
    },
    commitSizes,
    write(name, ...args) {
      if (closed) return Promise.reject(new StoreUnavailable('the store is closing'))
      if (guard.damage) return Promise.reject(guard.damage)
      if (waiting.length >= writesWaitingMax) {
        return Promise.reject(new StoreUnavailable(`${writesWaitingMax} writes are waiting already`))
      }
      return new Promise((resolve, reject) => {
        if (gathered.length === 0) setImmediate(hand)
        gathered.push([name, ...args])
        waiting.push({ resolve: resolve as Waiting['resolve'], reject })
        if (gathered.length >= handedAtOnce) hand()
      })
    },
    close() {
      if (!closed) {
        closed = Promise.withResolvers<void>()
        hand()
        // Messages keep their order: what was written before is committed before the thread closes.
        if (thread) send(thread, 'close')
        else closed.resolve()
      }
      return closed.promise
    },
  }
}

/** Bun tells an error as it prints one, with the lines of code around it. */
function errorLineOf(printed: string): string {
  return /^\w*error: .*$/im.exec(printed)?.[0] ?? printed
}

function send(to: Worker, message: WriterThreadMessage): void {
  to.postMessage(message)
}

function errorOf({ kind, message }: Failure): Error {
  if (kind === 'unavailable') return new StoreUnavailable(message)
  if (kind === 'damaged') return new StoreDamaged(message)
  return kind === 'ids exhausted' ? new IdsExhausted(message) : new Error(message)
}
