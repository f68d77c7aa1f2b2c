import { SetupError, StoreDamaged } from '../errors.ts'
import { App, type SharedByThreads } from '../http/app.ts'
import type { MetricFamily } from '../http/metrics.ts'
import type { RateLimitMemory } from '../http/rate-limit.ts'
import { type Listener, listen } from '../http/server.ts'
import type { Log, LogLevel } from '../log.ts'
import { openStores } from '../store/open.ts'
import type { Awaitable, SharedMemory, Stores } from '../store.ts'
import { repeat } from '../timeout.ts'
import { createPages } from '../web/pages.ts'
import { BufferedLog } from './log.ts'
import type { ServeSettings } from './settings.ts'

/** To a serving thread: `start` once it is ready, the writer's port if the store has one, and then the rest. */
export type ThreadRequest =
  | { readonly type: 'start'; readonly start: ThreadStart }
  | { readonly type: 'writer'; readonly port: MessagePort }
  /** Asks for the thread's own metrics. */
  | { readonly type: 'count'; readonly id: number }
  /** Answers `collect`. */
  | { readonly type: 'collected'; readonly id: number; readonly families: readonly MetricFamily[] }
  /** The oldest `log` is written. */
  | { readonly type: 'logged' }
  | { readonly type: 'stop'; readonly drainMs: number }

/** From a serving thread. */
export type ThreadReply =
  | { readonly type: 'ready' }
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'log'; readonly text: string }
  | { readonly type: 'event'; readonly level: LogLevel; readonly message: string }
  /** Asks for the metrics of all threads. */
  | { readonly type: 'collect'; readonly id: number }
  /** Answers `count`. */
  | { readonly type: 'counted'; readonly id: number; readonly families: readonly MetricFamily[] }
  | { readonly type: 'stopped'; readonly unanswered: number }

export interface ThreadStart {
  readonly settings: ServeSettings
  /** 0 lets the kernel choose. */
  readonly port: number
  readonly isTerminal: boolean
  readonly shared: SharedMemory | undefined
  readonly rateLimits: RateLimitMemory
  /** The main thread's clock when it sent this. */
  readonly nowMs: number
}

/** If the process is killed, at most this much recorded use of keys is lost. */
const flushEveryMs = 5_000

export interface Serving extends Listener {
  readonly app: App
}

interface ServingParts {
  readonly stores: Stores
  readonly settings: ServeSettings
  readonly log: Log
  readonly port: number
  readonly threads?: SharedByThreads
}

/** Serves a store in this thread, and records the use of keys, until `stop`. */
export async function startServing({ stores, settings, log, port, threads }: ServingParts): Promise<Serving> {
  const app = new App({ ...stores, ...settings, log, pages: createPages(), threads })
  await stores.startWriting()
  const { tlsCert: cert, tlsKey: key } = settings
  const reusePort = settings.reusePort || threads !== undefined
  const listener = listen(app, { ...settings, port, reusePort, ...(cert && key && { tls: { cert, key } }) })
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

const post = (reply: ThreadReply) => postMessage(reply)

/** One of several threads that serve a store on one port. */
class ServingThread {
  readonly #stores: Stores
  readonly #log: BufferedLog
  readonly #serving: Promise<Serving>
  /** Batches of log lines that the main thread has not written yet. */
  readonly #unwritten: PromiseWithResolvers<void>[] = []
  readonly #collecting = new Map<number, (families: readonly MetricFamily[]) => void>()
  #collections = 0

  constructor({ settings, port, rateLimits, isTerminal, ...start }: ThreadStart, stores: Stores) {
    const ahead = start.nowMs - performance.now()
    const threads: SharedByThreads = {
      count: settings.threads,
      rateLimits,
      nowMs: () => performance.now() + ahead,
      collectMetrics: () => this.#collect(),
    }
    this.#stores = stores
    this.#log = new BufferedLog(settings.logLevel, { isTerminal, err: text => this.#writeLog(text) })
    this.#serving = startServing({ stores, settings, log: this.#log, port, threads })
  }

  /** The port, when the thread listens. */
  async listening(): Promise<number> {
    return (await this.#serving).port
  }

  async receive(request: Exclude<ThreadRequest, { type: 'start' }>): Promise<void> {
    if (request.type === 'writer') this.#stores.connectWriter?.(request.port)
    else if (request.type === 'logged') this.#unwritten.shift()?.resolve()
    else if (request.type === 'count') await this.#count(request.id)
    else if (request.type === 'collected') this.#collecting.get(request.id)?.(request.families)
    else await this.#stop(request.drainMs)
  }

  async #stop(drainMs: number): Promise<void> {
    const unanswered = await (await this.#serving).stop(drainMs)
    await this.#stores.close()
    this.#log.end()
    post({ type: 'stopped', unanswered })
  }

  async #count(id: number): Promise<void> {
    const { app } = await this.#serving
    post({ type: 'counted', id, families: app.metrics() })
  }

  #writeLog(text: string): Promise<void> {
    const written = Promise.withResolvers<void>()
    this.#unwritten.push(written)
    post({ type: 'log', text })
    return written.promise
  }

  async #collect(): Promise<readonly MetricFamily[]> {
    const id = ++this.#collections
    const { promise, resolve } = Promise.withResolvers<readonly MetricFamily[]>()
    this.#collecting.set(id, resolve)
    post({ type: 'collect', id })
    const families = await promise
    this.#collecting.delete(id)
    return families
  }
}

async function openInThread({ settings, shared }: ThreadStart): Promise<Stores> {
  const { databaseUrl, readUrl, databasePooler: pooler, databasePool, threads } = settings
  return await openStores(databaseUrl, {
    create: false,
    shared,
    readUrl,
    pooler,
    connectionsMax: Math.max(1, Math.floor(databasePool / threads)),
    onEvent: (level, message) => post({ type: 'event', level, message }),
  })
}

async function startThread(start: ThreadStart): Promise<ServingThread> {
  try {
    const thread = new ServingThread(start, await openInThread(start))
    post({ type: 'listening', port: await thread.listening() })
    return thread
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    post({ type: 'refused', message: error.message })
    return process.exit(1)
  }
}

if (!Bun.isMainThread) {
  let thread: Promise<ServingThread> | undefined
  addEventListener('message', async ({ data }: MessageEvent<ThreadRequest>) => {
    if (data.type === 'start') thread = startThread(data.start)
    else await (await thread)?.receive(data)
  })
  post({ type: 'ready' })
}
