import { StoreUnavailable } from '../../errors.ts'
import type { SharedMemory, StoreActivity } from '../../store.ts'
import { RestartingThread } from '../../thread.ts'
import { withTimeout } from '../../timeout.ts'
import { type BatchResult, CommitQueue } from '../commit-queue.ts'
import { DamageGuard, errorOf, type WriteFailure } from './errors.ts'
import { identityOf } from './schema.ts'

/** To the writer thread: first the file, then a port for each writer, then `close`. */
export type WriterRequest =
  | { readonly file: string; readonly identity: string | undefined; readonly commits: Int32Array }
  | MessagePort
  | 'close'

/** From the writer thread: `ready` when the file is open, then `closed`. */
export type WriterReply = 'ready' | 'closed'

/** A write as it is sent through a port: flat, because nested values cost several times more to copy. */
export type Write = readonly [name: string, ...args: readonly unknown[]]

/** The result of a batch, sent back through its port in the order of the batches. */
export interface WrittenBatch {
  readonly values: readonly unknown[]
  /** The writes that failed, by their index. */
  readonly failures?: ReadonlyMap<number, WriteFailure>
  /** Writes in the whole commit; 0 if another batch of that commit reports them. */
  readonly committed: number
}

/** Starts the writer thread when it is needed, and again if it ends by itself. All serving threads share it. */
export class WriterThread {
  /** See {@link SharedMemory}. */
  readonly commits = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  readonly #thread: RestartingThread<WriterRequest, WriterReply>
  readonly #onPorts = new Set<(port: MessagePort) => void>()
  readonly #ready = Promise.withResolvers<void>()
  #closed = Promise.withResolvers<void>()
  #isStarted = false

  constructor(
    file: string,
    onEnd: (message: string) => void = () => {},
    module = new URL('./writer-thread.ts', import.meta.url),
  ) {
    const identity = identityOf(file)
    this.#thread = new RestartingThread({
      module,
      name: 'The writer thread',
      onStart: () => {
        this.#closed = Promise.withResolvers()
        this.#thread.post({ file, identity, commits: this.commits })
        for (const onPort of this.#onPorts) this.#connect(onPort)
      },
      onMessage: reply => (reply === 'ready' ? this.#ready : this.#closed).resolve(),
      onEnd: message => {
        this.#ready.resolve()
        this.#closed.resolve()
        onEnd(message)
      },
    })
  }

  /** Resolves when the file is open or the thread has ended: the first write reports a failure. */
  start(): Promise<void> {
    if (!this.#isStarted) {
      this.#isStarted = true
      this.#thread.start()
    }
    return this.#ready.promise
  }

  /** Gives a port for a {@link Writer}, now or when the thread starts, and another one whenever it starts again. */
  connect(onPort: (port: MessagePort) => void): void {
    this.#onPorts.add(onPort)
    if (this.#thread.isRunning) this.#connect(onPort)
  }

  disconnect(onPort: (port: MessagePort) => void): void {
    this.#onPorts.delete(onPort)
  }

  /** Ends the thread. Close the writers first. */
  async close(): Promise<void> {
    if (this.#thread.isRunning) {
      this.#thread.post('close')
      await this.#closed.promise
    }
    this.#thread.stop()
  }

  #connect(onPort: (port: MessagePort) => void): void {
    const { port1, port2 } = new MessageChannel()
    this.#thread.post(port1, [port1])
    onPort(port2)
  }
}

/** A write waits at most this long for a writer thread that starts again. */
const startMsMax = 1_000

/** A port to the writer thread, and the batches that await a reply, in order. */
interface Connection {
  readonly port: MessagePort
  readonly batches: PromiseWithResolvers<BatchResult<unknown>>[]
}

interface WriterParts {
  readonly guard?: DamageGuard
  readonly commits: Int32Array
  /** Starts the writer thread, which calls `connect`. */
  readonly start?: () => void
}

/** Runs the functions of `Writes` in the writer thread. Each serving thread has one. */
export class Writer<Writes extends Record<keyof Writes, (...args: never[]) => unknown>> {
  readonly #parts: WriterParts
  readonly #guard: DamageGuard
  readonly #queue = new CommitQueue<Write, unknown>(batch => this.#commit(batch), { overlap: true })
  #connection: Connection | undefined
  #connecting = Promise.withResolvers<Connection>()

  constructor(parts: WriterParts) {
    this.#parts = parts
    this.#guard = parts.guard ?? new DamageGuard()
  }

  /** The number of commits by all threads. It grows before their writes resolve. */
  get commits(): number {
    return Atomics.load(this.#parts.commits, 0)
  }

  activity(): StoreActivity {
    return this.#queue.activity()
  }

  /** Resolves when the write is on disk. If the thread ends during the commit, it rejects and the write may be stored. */
  write<Name extends keyof Writes>(name: Name, ...args: Parameters<Writes[Name]>): Promise<ReturnType<Writes[Name]>> {
    const { damage } = this.#guard
    if (damage) return Promise.reject(damage)
    return this.#queue.add([name as string, ...args]) as Promise<ReturnType<Writes[Name]>>
  }

  /** From now on, sends batches through this port. */
  readonly connect = (port: MessagePort): void => {
    const connection: Connection = { port, batches: [] }
    port.onmessage = ({ data }: { data: WrittenBatch }) => this.#receive(connection, data)
    port.addEventListener('close', () => this.#lost(connection))
    this.#connection = connection
    this.#connecting.resolve(connection)
    this.#connecting = Promise.withResolvers()
  }

  /** Resolves when the waiting writes are committed. */
  async close(): Promise<void> {
    await this.#queue.close()
    this.#connection?.port.close()
  }

  async #commit(batch: readonly Write[]): Promise<BatchResult<unknown>> {
    if (!this.#connection) this.#parts.start?.()
    const { port, batches } = this.#connection ?? (await this.#nextConnection())
    const result = Promise.withResolvers<BatchResult<unknown>>()
    batches.push(result)
    port.postMessage(batch)
    return result.promise
  }

  #nextConnection(): Promise<Connection> {
    return withTimeout(this.#connecting.promise, startMsMax, () => {
      throw new StoreUnavailable('the writer thread has not started')
    })
  }

  #receive({ batches }: Connection, { values, failures, committed }: WrittenBatch): void {
    const errors = new Map<number, Error>()
    for (const [index, failure] of failures ?? []) errors.set(index, this.#guard.note(errorOf(failure)))
    const batch = batches.shift()
    // If a read has found damage meanwhile, the writes may be lost.
    const { damage } = this.#guard
    if (damage) batch?.reject(damage)
    else batch?.resolve({ values, errors, committed })
  }

  /** The writer thread has ended. */
  #lost(connection: Connection): void {
    if (this.#connection === connection) this.#connection = undefined
    for (const { reject } of connection.batches) reject(new StoreUnavailable('the writer thread ended'))
  }
}
