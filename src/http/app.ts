import { maskKeys } from '../api-key.ts'
import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Stores } from '../store-contract.ts'
import { Authenticator, requirePermission } from './auth.ts'
import { Cors } from './cors.ts'
import { Exchange, type MaskKeys, type PeerLookup } from './exchange.ts'
import { Health } from './health.ts'
import { UsageRecorder } from './key-usage.ts'
import { type MetricSources, Metrics } from './metrics.ts'
import type { PublishedUrls } from './openapi.ts'
import { bodySecondsMax, versionPrefix } from './operations.ts'
import { petRoutes } from './pets.ts'
import { RateLimiter, type RequestRate } from './rate-limit.ts'
import { type Advice, RequestLog } from './request-log.ts'
import { errorReply, messageOf, Refusal, type Reply } from './response.ts'
import { Router, routeFor } from './router.ts'
import { type Asset, siteRoutes } from './site.ts'

export interface AppParts extends PublishedUrls {
  readonly stores: Pick<Stores, 'pets' | 'keys' | 'activity'>
  readonly log: Log
  readonly advice: Advice
  readonly build: MetricSources['build']
  readonly sweep: MetricSources['sweep']
  readonly pages: ReadonlyMap<string, Asset>
  /** Accepted besides the keys in the store. */
  readonly environmentKey: string | undefined
  /** For each key, on this instance. */
  readonly rateLimit: RequestRate | undefined
  readonly corsOrigins: readonly string[] | undefined
  /** Addresses and CIDR ranges of proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[] | undefined
  readonly limits?: Partial<typeof timeLimits>
}

/** Fixed, except in tests. */
export const timeLimits = {
  /** A body must arrive completely within this time. */
  bodyMs: bodySecondsMax * 1_000,
  /** A verified key is not looked up again for this time: well below the 5 s in which a revocation takes effect. */
  verifiedForMs: 2_000,
  /** A store that does not answer a health check within this time is down. */
  checkMs: 2_000,
  /** The result of a health check is used again for this time. */
  checkedForMs: 500,
}

/** nginx's status for a client that closed the connection before its request was complete. */
const clientClosedRequest = 499

/** The way of a request, from top to bottom. What protects it from the runtime is around it, in `fairness.ts`. */
export class App {
  readonly #metrics = new Metrics()
  readonly #mask: MaskKeys
  readonly #log: RequestLog
  readonly #usage: UsageRecorder
  readonly #authenticator: Authenticator
  readonly #rateLimiter: RateLimiter | undefined
  readonly #cors: Cors | undefined
  readonly #health: Health
  readonly #router: Router
  #isDraining = false
  #requestsSinceDrain = 0

  constructor(parts: AppParts) {
    const { stores, log, advice, build, sweep, pages, environmentKey, rateLimit, corsOrigins, trustedProxies } = parts
    const { publicUrl, stagingUrl } = parts
    const { pets, keys } = stores
    const { bodyMs, verifiedForMs, checkMs, checkedForMs } = { ...timeLimits, ...parts.limits }
    const metrics = this.#metrics
    const usage = new UsageRecorder(keys)
    const health = new Health({ stores, checkMs, checkedForMs, isDraining: () => this.#isDraining })
    const metricsText = (isStoreUp: boolean) =>
      metrics.text({ usage, activity: stores.activity(), sweep, build, isStoreUp })
    this.#mask = text => maskKeys(text, environmentKey)
    this.#log = new RequestLog(log, advice, trustedProxies)
    this.#usage = usage
    this.#authenticator = new Authenticator({ keys, usage, environmentKey, verifiedForMs })
    this.#rateLimiter = rateLimit && new RateLimiter(rateLimit)
    this.#cors = corsOrigins && new Cors(corsOrigins)
    this.#health = health
    this.#router = new Router([
      ...petRoutes({ pets, metrics, usage, baseUrl: publicUrl ?? versionPrefix, bodyMs }),
      ...siteRoutes({ health, urls: { publicUrl, stagingUrl }, pages, metricsText }),
    ])
  }

  /**
   * Handles one request, and never rejects. Each check returns what it finds, or throws a {@link Refusal}. Their order is
   * a part of the interface.
   */
  async fetch(request: Request, peers?: PeerLookup): Promise<Response> {
    const exchange = new Exchange(request, peers, this.#mask)
    this.#metrics.requestStarted()
    if (this.#isDraining) this.#requestsSinceDrain++
    try {
      const match = this.#router.find(exchange.path)
      if (match.isVersioned) {
        const preflight = this.#cors?.preflight(request, match.allow)
        if (preflight) return this.#send(exchange, preflight)
        exchange.caller = this.#authenticator.recognize(exchange) ?? (await this.#authenticator.verify(exchange)) // 401
        this.#rateLimiter?.count(exchange) // 429
      }
      const route = routeFor(match, exchange) // 404, 405
      exchange.operationId = route.operationId
      if (route.access === 'metrics') exchange.caller = await this.#authenticator.verifyScraper(exchange) // 401
      requirePermission(exchange.caller, route.access) // 403
      // The handler checks body and parameters: 400, 408, 413, 415.
      return this.#send(exchange, await route.handle(exchange, match.params))
    } catch (cause) {
      return this.#send(exchange, this.#failure(exchange, cause))
    }
  }

  #failure(exchange: Exchange, cause: unknown): Reply {
    if (cause instanceof Refusal) return errorReply(cause.code, exchange.mask(cause.message), cause.headers)
    const { aborted } = exchange.request.signal
    const isAbort = aborted && cause instanceof DOMException && cause.name === 'AbortError'
    if (!isAbort) this.#log.requestFailed(exchange, cause)
    // No client receives this response: the status is for the log and the metrics.
    if (aborted) return { status: clientClosedRequest, body: null, headers: new Headers() }
    if (cause instanceof StoreDamaged) return errorReply('store_damaged', messageOf('store_damaged'))
    if (cause instanceof StoreUnavailable) {
      return errorReply('store_unavailable', messageOf('store_unavailable'), { 'Retry-After': '1' })
    }
    if (cause instanceof IdsExhausted) return errorReply('ids_exhausted', messageOf('ids_exhausted'))
    return errorReply('internal_error', `The service failed: report the request id ${exchange.id}`)
  }

  /** Adds what all responses share, and reports the end of the request. */
  #send(exchange: Exchange, { status, body, headers: own }: Reply): Response {
    const { request, operationId } = exchange
    const response = new Response(body, { status, headers: own })
    const { headers } = response
    for (const name in exchange.headers) headers.set(name, exchange.headers[name] ?? '')
    this.#cors?.share(request, headers)
    if (this.#isDraining) headers.set('Connection', 'close')
    // Bun sends no Date in a response to HEAD.
    if (request.method === 'HEAD') headers.set('Date', new Date().toUTCString())
    const ms = performance.now() - exchange.startedMs
    this.#metrics.requestEnded(operationId ?? 'none', status, ms / 1_000)
    this.#log.requestEnded(exchange, status, ms)
    return response
  }

  /** Reads the store once, so that the app is ready even if the store goes down before anyone asks. */
  async checkStore(): Promise<void> {
    await this.#health.isStoreUp()
  }

  /** Stores the uses of keys. */
  flush(): Promise<void> {
    return this.#usage.flush()
  }

  /** Writes everything that is only counted so far, after the last request. */
  close(): Promise<void> {
    this.#log.reportUnavailable()
    return this.flush()
  }

  get requestsSinceDrain(): number {
    return this.#requestsSinceDrain
  }

  /** From now on every response closes its connection, so that clients connect elsewhere. */
  drain(): void {
    this.#isDraining = true
  }
}
