import { SetupError, StoreDamaged } from '../errors.ts'
import { App, type DrainCells, type SharedByThreads } from '../http/app.ts'
import type { MetricFamily, SweepActivity } from '../http/metrics.ts'
import type { RateLimitMemory } from '../http/rate-limit.ts'
import { type Listener, listen, type Tls } from '../http/server.ts'
import type { Log } from '../log.ts'
import { openStores } from '../store/open.ts'
import type { Awaitable, OnStoreEvent, SharedMemory, Stores } from '../store.ts'
import { repeat } from '../timeout.ts'
import { createPages } from '../web/pages.ts'
import { BufferedLog } from './log.ts'
import { build } from './output.ts'
import type { ServeSettings } from './settings.ts'

/** If the process is killed, at most this much recorded use of keys is lost. */
const flushEveryMs = 5_000

interface ServingParts {
  readonly stores: Stores
  readonly settings: ServeSettings
  readonly log: Log
  readonly port: number
  readonly tls: Tls | undefined
  /** Only in the thread that sweeps. */
  readonly sweep?: SweepActivity
  readonly threads?: SharedByThreads
}

export interface Serving extends Listener {
  readonly app: App
}

/** Serves a store in this thread, and records the use of keys, until `stop`. */
export async function startServing(parts: ServingParts): Promise<Serving> {
  const { stores, settings, log, port, tls, sweep, threads } = parts
  const app = new App({ ...stores, ...settings, log, build, pages: createPages(), sweep, threads })
  await stores.startWriting()
  await app.checkStore()
  const reusePort = settings.reusePort || threads !== undefined
  const listener = listen(app, { host: settings.host, port, reusePort, tls })
  const flush = () => inBackground(log, () => app.flush())
  const flushing = repeat(flushEveryMs, () => flush().then(() => flushEveryMs))
  return {
    app,
    port: listener.port,
    async stop(drainMs) {
      const unanswered = await listener.stop(drainMs)
      flushing[Symbol.dispose]()
      await flush()
      return unanswered
    },
  }
}

/** Logs a failure. The store itself reports damage. */
export async function inBackground<T>(log: Log, work: () => Awaitable<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (cause) {
    if (!(cause instanceof StoreDamaged)) log.write('error', 'Background work failed', { cause: String(cause) })
    return undefined
  }
}

/** Opens the store for one of the threads, with its share of the connections. */
export function openForThread(
  { databaseUrl, readUrl, databasePooler: pooler, databasePool, threads }: ServeSettings,
  onEvent: OnStoreEvent,
  shared?: SharedMemory,
): Awaitable<Stores> {
  const connectionsMax = Math.max(1, Math.floor(databasePool / threads))
  return openStores(databaseUrl, { create: true, onEvent, readUrl, pooler, connectionsMax, threads, shared })
}

/** To a further thread. `start` comes first, after the thread has posted `ready`. */
export type ThreadRequest =
  | { readonly type: 'start'; readonly start: ThreadStart }
  /** A port to the writer thread. */
  | { readonly type: 'writer'; readonly port: MessagePort }
  /** Asks for the thread's own metrics. */
  | { readonly type: 'ownMetrics'; readonly id: number }
  /** Answers `allMetrics`. */
  | { readonly type: 'allMetrics'; readonly id: number; readonly families: readonly MetricFamily[] }
  /** Acknowledges the oldest `log`. */
  | { readonly type: 'logged' }
  | { readonly type: 'stop'; readonly drainMs: number }

/** From a further thread. */
export type ThreadReply =
  | { readonly type: 'ready' | 'listening' }
  /** The thread cannot start, for a reason that the operator can change. It ends. */
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'log'; readonly text: string }
  | { readonly type: 'event'; readonly event: Parameters<OnStoreEvent> }
  /** Asks for the metrics of all threads. */
  | { readonly type: 'allMetrics'; readonly id: number }
  /** Answers `ownMetrics`. */
  | { readonly type: 'ownMetrics'; readonly id: number; readonly families: readonly MetricFamily[] }
  | { readonly type: 'stopped'; readonly unanswered: number }

export interface ThreadStart {
  readonly settings: ServeSettings
  readonly port: number
  readonly tls: Tls | undefined
  readonly isTerminal: boolean
  readonly shared: SharedMemory | undefined
  readonly rateLimits: RateLimitMemory
  readonly drainCells: DrainCells
  /** The main thread's clock when it sent this. */
  readonly nowMs: number
}

const post = (reply: ThreadReply) => postMessage(reply)

/** Serves in a thread that the main thread has started. */
class FurtherThread {
  readonly #stores: Stores
  readonly #serving: Serving
  readonly #log: BufferedLog
  readonly #main: MainThread

  constructor(stores: Stores, serving: Serving, log: BufferedLog, main: MainThread) {
    this.#stores = stores
    this.#serving = serving
    this.#log = log
    this.#main = main
  }

  static async start(start: ThreadStart): Promise<FurtherThread> {
    const { settings, port, tls, rateLimits, drainCells, isTerminal } = start
    const aheadMs = start.nowMs - performance.now()
    const stores = await openForThread(settings, (...event) => post({ type: 'event', event }), start.shared)
    const main = new MainThread()
    const log = new BufferedLog(settings.logLevel, { isTerminal, err: text => main.writeLog(text) })
    const threads: SharedByThreads = {
      count: settings.threads,
      rateLimits,
      drainCells,
      nowMs: () => performance.now() + aheadMs,
      collectMetrics: () => main.collectMetrics(),
    }
    const serving = await startServing({ stores, settings, log, port, tls, threads })
    return new FurtherThread(stores, serving, log, main)
  }

  async receive(request: Exclude<ThreadRequest, { type: 'start' }>): Promise<void> {
    const { type } = request
    if (type === 'writer') this.#stores.connectWriter?.(request.port)
    else if (type === 'logged') this.#main.onLogged()
    else if (type === 'ownMetrics') post({ ...request, families: this.#serving.app.metrics() })
    else if (type === 'allMetrics') this.#main.onMetrics(request.id, request.families)
    else await this.#stop(request.drainMs)
  }

  async #stop(drainMs: number): Promise<void> {
    const unanswered = await this.#serving.stop(drainMs)
    await this.#stores.close()
    this.#log.end()
    post({ type: 'stopped', unanswered })
  }
}

/** What a further thread asks of the main thread. */
class MainThread {
  /** Batches of log lines that are not written yet. */
  readonly #unwritten: PromiseWithResolvers<void>[] = []
  readonly #collecting = new Map<number, PromiseWithResolvers<readonly MetricFamily[]>>()
  #collections = 0

  writeLog(text: string): Promise<void> {
    const written = Promise.withResolvers<void>()
    this.#unwritten.push(written)
    post({ type: 'log', text })
    return written.promise
  }

  onLogged(): void {
    this.#unwritten.shift()?.resolve()
  }

  collectMetrics(): Promise<readonly MetricFamily[]> {
    const id = ++this.#collections
    const collected = Promise.withResolvers<readonly MetricFamily[]>()
    this.#collecting.set(id, collected)
    post({ type: 'allMetrics', id })
    return collected.promise
  }

  onMetrics(id: number, families: readonly MetricFamily[]): void {
    this.#collecting.get(id)?.resolve(families)
    this.#collecting.delete(id)
  }
}

async function startFurtherThread(start: ThreadStart): Promise<FurtherThread> {
  try {
    const thread = await FurtherThread.start(start)
    post({ type: 'listening' })
    return thread
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    post({ type: 'refused', message: error.message })
    return process.exit(1)
  }
}

if (!Bun.isMainThread) {
  let thread: Promise<FurtherThread> | undefined
  addEventListener('message', async ({ data }: MessageEvent<ThreadRequest>) => {
    if (data.type === 'start') thread = startFurtherThread(data.start)
    else await (await thread)?.receive(data)
  })
  post({ type: 'ready' })
}
