import { SetupError } from '../errors.ts'
import { newDrainCells, type SharedByThreads } from '../http/app.ts'
import { combine, type MetricFamily, processFamilies, type SweepActivity } from '../http/metrics.ts'
import { newRateLimitMemory } from '../http/rate-limit.ts'
import { claimPort, type Listener, type Tls } from '../http/server.ts'
import type { Log } from '../log.ts'
import type { OnStoreEvent, Stores } from '../store.ts'
import { RestartingThread } from '../thread.ts'
import { withTimeout } from '../timeout.ts'
import { build, type Io } from './output.ts'
import { type Serving, startServing, type ThreadReply, type ThreadRequest, type ThreadStart } from './serving.ts'
import type { ServeSettings } from './settings.ts'

/** After this time, a thread's last known metrics are used. */
const metricsMs = 1_000
/** Beyond the drain time, for a thread to close its port, record the use of keys and close the store. */
const stopMs = 4_000

export interface ThreadsParts {
  readonly stores: Stores
  readonly settings: ServeSettings
  readonly sweep: SweepActivity
  readonly tls: Tls | undefined
  readonly log: Log
  readonly onEvent: OnStoreEvent
  readonly io: Io
}

/** Serves from this thread and from further ones, restarts those that end, and writes their log. */
export async function serveInThreads(parts: ThreadsParts): Promise<Listener> {
  const threads = new ServingThreads(parts)
  try {
    await threads.start()
    return threads
  } catch (error) {
    await threads.stop(0)
    throw error
  }
}

class ServingThreads implements Listener {
  readonly #parts: ThreadsParts
  readonly #others: readonly ThreadHandle[]
  readonly #rateLimits = newRateLimitMemory()
  readonly #drainCells = newDrainCells()
  #own: Serving | undefined

  constructor(parts: ThreadsParts) {
    this.#parts = parts
    const group: ThreadGroup = {
      ...parts,
      newStart: () => this.#newStart(),
      collectMetrics: () => this.#collectMetrics(),
    }
    this.#others = Array.from({ length: parts.settings.threads - 1 }, () => new ThreadHandle(group))
  }

  get port(): number {
    return this.#own?.port ?? this.#parts.settings.port
  }

  async start(): Promise<void> {
    const { settings } = this.#parts
    const { reusePort, port, host } = settings
    // For port 0, the kernel chooses one that no other server has.
    using _ = reusePort || port === 0 ? undefined : await claimPort({ host, port })
    const threads: SharedByThreads = {
      count: settings.threads,
      rateLimits: this.#rateLimits,
      drainCells: this.#drainCells,
      nowMs: () => performance.now(),
      collectMetrics: () => this.#collectMetrics(),
    }
    this.#own = await startServing({ ...this.#parts, port, threads })
    await Promise.all(this.#others.map(thread => thread.start()))
  }

  async stop(drainMs: number): Promise<number> {
    const unanswered = await Promise.all([this.#own, ...this.#others].map(thread => thread?.stop(drainMs) ?? 0))
    return unanswered.reduce((sum, requests) => sum + requests)
  }

  #newStart(): ThreadStart {
    const { settings, tls, stores, io } = this.#parts
    return {
      settings,
      port: this.port,
      tls,
      isTerminal: io.isTerminal,
      shared: stores.forThreads?.shared,
      rateLimits: this.#rateLimits,
      drainCells: this.#drainCells,
      nowMs: performance.now(),
    }
  }

  async #collectMetrics(): Promise<readonly MetricFamily[]> {
    const others = await Promise.all(this.#others.map(thread => thread.metrics()))
    return [...combine([this.#own?.app.metrics() ?? [], ...others]), ...processFamilies(build)]
  }
}

/** Shared by all further threads. */
interface ThreadGroup extends ThreadsParts {
  newStart(): ThreadStart
  collectMetrics(): Promise<readonly MetricFamily[]>
}

/** One of the further threads. */
class ThreadHandle {
  readonly #group: ThreadGroup
  readonly #thread: RestartingThread<ThreadRequest, ThreadReply>
  readonly #firstStart = Promise.withResolvers<void>()
  readonly #stopped = Promise.withResolvers<number>()
  /** How to end the wait for the metrics of the running thread. */
  readonly #waiting = new Map<number, () => void>()
  #waits = 0
  #state: 'starting' | 'listening' | 'stopping' = 'starting'
  #isFirstStart = true
  #refusal: string | undefined
  /** The last known metrics of the running thread, and what remains of those that have ended. */
  #families: readonly MetricFamily[] = []
  #ended: readonly MetricFamily[] = []

  constructor(group: ThreadGroup) {
    this.#group = group
    this.#thread = new RestartingThread({
      module: new URL('./serving.ts', import.meta.url),
      name: 'A serving thread',
      onMessage: reply => this.#receive(reply),
      onEnd: message => this.#onEnd(message),
    })
  }

  /** Resolves when the thread listens. Rejects if its first start fails; a later one is repeated. */
  start(): Promise<void> {
    this.#thread.start()
    return this.#firstStart.promise
  }

  /** Resolves with the number of requests that had no response. */
  async stop(drainMs: number): Promise<number> {
    // A thread that does not listen has no requests.
    if (this.#state !== 'listening') this.#stopped.resolve(0)
    this.#state = 'stopping'
    this.#thread.post({ type: 'stop', drainMs })
    const unanswered = await withTimeout(this.#stopped.promise, drainMs + stopMs, () => 0)
    this.#thread.stop()
    return unanswered
  }

  async metrics(): Promise<readonly MetricFamily[]> {
    if (this.#state !== 'starting') {
      const { promise, resolve } = Promise.withResolvers<void>()
      const id = ++this.#waits
      this.#waiting.set(id, resolve)
      this.#thread.post({ type: 'ownMetrics', id })
      await withTimeout(promise, metricsMs, () => {})
      this.#waiting.delete(id)
    }
    return combine([this.#ended, this.#families])
  }

  #receive(reply: ThreadReply): void {
    const { type } = reply
    if (type === 'ready' && this.#state === 'starting') this.#sendStart()
    else if (type === 'listening') this.#onListening()
    else if (type === 'refused') this.#refusal = reply.message
    else if (type === 'log') void this.#writeLog(reply.text)
    else if (type === 'event') this.#group.onEvent(...reply.event)
    else if (type === 'allMetrics') void this.#sendMetrics(reply.id)
    else if (type === 'ownMetrics') this.#onMetrics(reply.id, reply.families)
    else if (type === 'stopped') this.#stopped.resolve(reply.unanswered)
  }

  #sendStart(): void {
    this.#thread.post({ type: 'start', start: this.#group.newStart() })
    this.#group.stores.forThreads?.connect(this.#sendWriter)
  }

  readonly #sendWriter = (port: MessagePort) => this.#thread.post({ type: 'writer', port }, [port])

  #onListening(): void {
    if (this.#state === 'starting') this.#state = 'listening'
    this.#isFirstStart = false
    this.#firstStart.resolve()
  }

  async #writeLog(text: string): Promise<void> {
    await this.#group.io.err(text)
    this.#thread.post({ type: 'logged' })
  }

  async #sendMetrics(id: number): Promise<void> {
    this.#thread.post({ type: 'allMetrics', id, families: await this.#group.collectMetrics() })
  }

  #onMetrics(id: number, families: readonly MetricFamily[]): void {
    this.#families = families
    this.#waiting.get(id)?.()
  }

  #onEnd(message: string): void {
    this.#group.stores.forThreads?.disconnect(this.#sendWriter)
    for (const endWait of this.#waiting.values()) endWait()
    // Keep the counters of an ended thread; drop its gauges, except times.
    const lasting = this.#families.filter(({ type, merge }) => type !== 'gauge' || merge === 'max')
    this.#ended = combine([this.#ended, lasting])
    this.#families = []
    if (this.#state === 'stopping') this.#stopped.resolve(0)
    else this.#reportEnd(message)
  }

  #reportEnd(message: string): void {
    this.#state = 'starting'
    const problems = this.#refusal === undefined ? [message] : [this.#refusal, message]
    this.#refusal = undefined
    if (this.#isFirstStart) this.#firstStart.reject(new SetupError(problems[0]))
    else for (const problem of problems) this.#group.log.write('error', problem)
  }
}
