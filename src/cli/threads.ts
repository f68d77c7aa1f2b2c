import { SetupError } from '../errors.ts'
import type { SharedByThreads } from '../http/app.ts'
import { combine, type MetricFamily, processFamilies } from '../http/metrics.ts'
import { newRateLimitMemory } from '../http/rate-limit.ts'
import { claimPort, type Listener } from '../http/server.ts'
import type { Log, LogLevel } from '../log.ts'
import type { Awaitable, Stores } from '../store.ts'
import { KeptThread } from '../thread.ts'
import { withTimeout } from '../timeout.ts'
import type { Io } from './output.ts'
import { type Serving, startServing, type ThreadReply, type ThreadRequest, type ThreadStart } from './serving.ts'
import type { ServeSettings } from './settings.ts'

/** A thread that does not answer in this time counts with its last metrics. */
const metricsMs = 1_000
/** Beyond the drain time, for a thread to close. */
const stopMs = 3_000
/** Threads notice the same trouble of the store at about the same time: it is logged once. */
const sameEventMs = 2_000

interface ThreadsParts {
  readonly stores: Stores
  readonly settings: ServeSettings
  readonly log: Log
  readonly io: Io
}

/**
 * Serves a store in several threads on one port: this one and further ones, which this one starts and replaces when they end.
 * It also writes their log.
 */
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
  readonly #others: readonly ServingThread[]
  readonly #rateLimits = newRateLimitMemory()
  readonly #eventsMs = new Map<string, number>()
  #own: Serving | undefined

  constructor(parts: ThreadsParts) {
    const { stores, settings, log, io } = parts
    this.#parts = parts
    const group: ThreadGroup = {
      stores,
      newStart: () => this.#newStart(),
      collectMetrics: () => this.#collectMetrics(),
      writeLog: text => io.err(text),
      onError: message => log.write('error', message),
      onEvent: (level, message) => this.#logEvent(level, message),
    }
    this.#others = Array.from({ length: settings.threads - 1 }, () => new ServingThread(group))
  }

  get port(): number {
    return this.#own?.port ?? this.#parts.settings.port
  }

  async start(): Promise<void> {
    const { stores, settings, log } = this.#parts
    const { reusePort, port, host } = settings
    // For port 0, the kernel chooses one that no other server has.
    using _ = reusePort || port === 0 ? undefined : claimPort({ host, port })
    const threads: SharedByThreads = {
      count: settings.threads,
      rateLimits: this.#rateLimits,
      nowMs: () => performance.now(),
      collectMetrics: () => this.#collectMetrics(),
    }
    this.#own = await startServing({ stores, settings, log, port, threads })
    await Promise.all(this.#others.map(thread => thread.start()))
  }

  async stop(drainMs: number): Promise<number> {
    const unanswered = await Promise.all([this.#own, ...this.#others].map(thread => thread?.stop(drainMs) ?? 0))
    return unanswered.reduce((sum, requests) => sum + requests)
  }

  #newStart(): ThreadStart {
    const { settings, stores, io } = this.#parts
    return {
      settings,
      port: this.port,
      isTerminal: io.isTerminal,
      shared: stores.forThreads?.shared,
      rateLimits: this.#rateLimits,
      nowMs: performance.now(),
    }
  }

  async #collectMetrics(): Promise<readonly MetricFamily[]> {
    const others = await Promise.all(this.#others.map(thread => thread.metrics()))
    return [...combine([this.#own?.app.metrics() ?? [], ...others]), ...processFamilies()]
  }

  #logEvent(level: LogLevel, message: string): void {
    const nowMs = performance.now()
    const isRepeated = nowMs - (this.#eventsMs.get(message) ?? Number.NEGATIVE_INFINITY) < sameEventMs
    this.#eventsMs.set(message, nowMs)
    if (!isRepeated) this.#parts.log.write(level, message)
  }
}

/** What the further threads have in common. */
interface ThreadGroup {
  readonly stores: Stores
  newStart(): ThreadStart
  collectMetrics(): Promise<readonly MetricFamily[]>
  writeLog(text: string): Awaitable<void>
  onError(message: string): void
  onEvent(level: LogLevel, message: string): void
}

/** One of the further threads. */
class ServingThread {
  readonly #group: ThreadGroup
  readonly #kept: KeptThread<ThreadRequest, ThreadReply>
  readonly #listening = Promise.withResolvers<number>()
  readonly #stopped = Promise.withResolvers<number>()
  readonly #counting = new Map<number, () => void>()
  #counts = 0
  #isStopping = false
  /** The last metrics of the present thread, and those of the ended ones. */
  #families: readonly MetricFamily[] = []
  #ended: readonly MetricFamily[] = []

  constructor(group: ThreadGroup) {
    this.#group = group
    this.#kept = new KeptThread({
      module: new URL('./serving.ts', import.meta.url),
      name: 'A serving thread',
      onStart: () => {},
      onMessage: reply => this.#receive(reply),
      onEnd: () => this.#onEnd(),
      onError: message => this.#isStopping || group.onError(message),
    })
  }

  /** Resolves with the port when the thread listens. Rejects if its first start fails; later ones are repeated. */
  start(): Promise<number> {
    this.#kept.start()
    return this.#listening.promise
  }

  /** Resolves with the number of requests that had no response. */
  async stop(drainMs: number): Promise<number> {
    this.#isStopping = true
    if (!this.#kept.isRunning) this.#stopped.resolve(0)
    this.#kept.post({ type: 'stop', drainMs })
    const unanswered = await withTimeout(this.#stopped.promise, drainMs + stopMs, () => 0)
    this.#kept.stop()
    return unanswered
  }

  async metrics(): Promise<readonly MetricFamily[]> {
    if (this.#kept.isRunning) {
      const counted = Promise.withResolvers<void>()
      const id = ++this.#counts
      this.#counting.set(id, counted.resolve)
      this.#kept.post({ type: 'count', id })
      await withTimeout(counted.promise, metricsMs, () => {})
      this.#counting.delete(id)
    }
    return combine([this.#ended, this.#families])
  }

  #receive(reply: ThreadReply): void {
    const { type } = reply
    if (type === 'ready') this.#begin()
    else if (type === 'listening') this.#listening.resolve(reply.port)
    else if (type === 'refused') this.#refused(reply.message)
    else if (type === 'log') this.#writeLog(reply.text)
    else if (type === 'event') this.#group.onEvent(reply.level, reply.message)
    else if (type === 'collect') void this.#collect(reply.id)
    else if (type === 'counted') this.#counted(reply.id, reply.families)
    else this.#stopped.resolve(reply.unanswered)
  }

  #begin(): void {
    if (this.#isStopping) return
    this.#kept.post({ type: 'start', start: this.#group.newStart() })
    this.#group.stores.forThreads?.connect(this.#sendPort)
  }

  readonly #sendPort = (port: MessagePort) => this.#kept.post({ type: 'writer', port }, [port])

  #refused(message: string): void {
    this.#listening.reject(new SetupError(message))
    if (!this.#isStopping) this.#group.onEvent('error', message)
  }

  async #writeLog(text: string): Promise<void> {
    await this.#group.writeLog(text)
    this.#kept.post({ type: 'logged' })
  }

  async #collect(id: number): Promise<void> {
    this.#kept.post({ type: 'collected', id, families: await this.#group.collectMetrics() })
  }

  #counted(id: number, families: readonly MetricFamily[]): void {
    this.#families = families
    this.#counting.get(id)?.()
  }

  #onEnd(): void {
    this.#group.stores.forThreads?.disconnect(this.#sendPort)
    // What it counted goes on counting; what it was doing has ended.
    this.#ended = combine([this.#ended, this.#families.filter(({ type }) => type !== 'gauge')])
    this.#families = []
    this.#listening.reject(new Error('A serving thread ended before it listened'))
    if (this.#isStopping) this.#stopped.resolve(0)
  }
}
