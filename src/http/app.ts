import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import type { Stores } from '../store-contract.ts'
import { Authenticator, requirePermission } from './auth.ts'
import { Cors } from './cors.ts'
import { Exchange, type PeerLookup } from './exchange.ts'
import { Health } from './health.ts'
import { UsageRecorder } from './key-usage.ts'
import { type MetricSources, Metrics } from './metrics.ts'
import { versionPrefix } from './operations.ts'
import { createPetRoutes } from './pets.ts'
import { RateLimiter, type RequestRate } from './rate-limit.ts'
import { type LogParts, RequestLog } from './request-log.ts'
import { errorReply, Refusal, type Reply } from './response.ts'
import { findRoute, Router } from './router.ts'
import { createSiteRoutes, type SiteParts } from './site.ts'

export interface AppParts extends SiteParts, LogParts, MetricSources {
  readonly stores: Pick<Stores, 'pets' | 'keys' | 'activity'>
  /** Accepted besides the keys in the store. */
  readonly environmentKey: string | undefined
  /** For each key, on this instance. */
  readonly rateLimit: RequestRate | undefined
  readonly corsOrigins: readonly string[] | undefined
}

/** nginx's status for a client that closed the connection before its request was complete. */
const clientClosedRequest = 499

/** The way of a request, from top to bottom. What protects it from the runtime is around it, in `fairness.ts`. */
export class App {
  readonly #metrics: Metrics
  readonly #environmentKey: string | undefined
  readonly #log: RequestLog
  readonly #usage: UsageRecorder
  readonly #authenticator: Authenticator
  readonly #rateLimiter: RateLimiter | undefined
  readonly #cors: Cors | undefined
  readonly #health: Health
  readonly #router: Router

  constructor(parts: AppParts) {
    const { stores, environmentKey, rateLimit, corsOrigins, publicUrl } = parts
    this.#metrics = new Metrics(parts)
    this.#environmentKey = environmentKey
    this.#log = new RequestLog(parts)
    this.#usage = new UsageRecorder(stores.keys)
    this.#authenticator = new Authenticator(stores.keys, this.#usage, environmentKey)
    this.#rateLimiter = rateLimit && new RateLimiter(rateLimit)
    this.#cors = corsOrigins && new Cors(corsOrigins)
    this.#health = new Health(stores)
    this.#router = new Router([
      ...createPetRoutes(stores.pets, publicUrl ?? versionPrefix, this.#metrics),
      ...createSiteRoutes(parts, this.#health, this.#metrics),
    ])
  }

  /**
   * Handles one request, and never rejects. Each check returns what it finds, or throws a {@link Refusal}. Their order is
   * a part of the interface.
   */
  async fetch(request: Request, peers?: PeerLookup): Promise<Response> {
    const exchange = new Exchange(request, peers, this.#environmentKey)
    this.#metrics.requestStarted()
    try {
      const match = this.#router.find(exchange.path)
      if (match.isVersioned) {
        const preflight = this.#cors?.preflight(request, match.allow)
        if (preflight) return this.#send(exchange, preflight)
        exchange.caller = this.#authenticator.recognize(exchange) ?? (await this.#authenticator.verify(exchange)) // 401
        this.#rateLimiter?.count(exchange) // 429
      }
      const route = findRoute(match, exchange) // 404, 405
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
    if (cause instanceof StoreDamaged) return errorReply('store_damaged')
    if (cause instanceof StoreUnavailable) return errorReply('store_unavailable', undefined, { 'Retry-After': '1' })
    if (cause instanceof IdsExhausted) return errorReply('ids_exhausted')
    return errorReply('internal_error', `The service failed: report the request id ${exchange.id}`)
  }

  /** Adds what all responses share, and reports the end of the request. */
  #send(exchange: Exchange, { status, body, headers: own }: Reply): Response {
    const { request, operationId } = exchange
    const response = new Response(body, { status, headers: own })
    const { headers } = response
    for (const name in exchange.headers) headers.set(name, exchange.headers[name] ?? '')
    this.#cors?.share(request, headers)
    if (this.#health.isDraining) headers.set('Connection', 'close')
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

  /** Stores or logs what is only counted so far. */
  flush(): Promise<void> {
    this.#log.flush()
    return this.#usage.flush()
  }

  /** From now on every response closes its connection, so that clients connect elsewhere. */
  drain(): void {
    this.#health.isDraining = true
  }
}
