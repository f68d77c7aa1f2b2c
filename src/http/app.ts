import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Stores } from '../store.ts'
import { Authenticator, permissionRefusal } from './auth.ts'
import { discardBody } from './body.ts'
import { Cors } from './cors.ts'
import { UsageRecorder } from './key-usage.ts'
import { type MetricSources, Metrics } from './metrics.ts'
import type { PublishedUrls } from './openapi.ts'
import { operations, parameters, versionPrefix } from './operations.ts'
import { petOperations } from './pets.ts'
import { RateLimiter, type RequestRate } from './rate-limit.ts'
import { type Caller, IncomingRequest, type PeerLookup, prefersStrict, Query } from './request.ts'
import { type Advice, RequestLog } from './request-log.ts'
import { errorReply, type HeaderValues, type Reply } from './response.ts'
import { type Operation, operationFor, Router } from './router.ts'
import { type Asset, Health, type SiteRoute, siteRoutes } from './site.ts'
import { TickBudget } from './tick-budget.ts'

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
  bodyMs: 10_000,
  /** The rest of a refused body is read for at most this time. */
  discardMs: 5_000,
  /** A verified key is not looked up again for this time: well below the 5 s in which a revocation takes effect. */
  verifiedForMs: 2_000,
  /** A store that does not answer a health check within this time is down. */
  checkMs: 2_000,
  /** The result of a health check is used again for this time. */
  checkedForMs: 500,
}

const retryAfterSeconds = 1

/** nginx's status for a client that closed the connection before its request was complete. */
const clientClosedRequest = 499

/** What the pipeline has found out about a request, for its response and its line in the log. */
interface Findings {
  /** Refused because the event loop is busy: the rest of its body is not read. */
  readonly isRefused: boolean
  readonly caller: Caller | undefined
  readonly operation?: Operation | undefined
  readonly strict?: boolean
  readonly rateLimitHeaders?: HeaderValues | undefined
}

export class App {
  readonly #environmentKey: string | undefined
  readonly #metrics = new Metrics()
  readonly #log: RequestLog
  readonly #authenticator: Authenticator
  readonly #usage: UsageRecorder
  readonly #rateLimiter: RateLimiter | undefined
  readonly #cors: Cors | undefined
  readonly #router: Router
  readonly #site: ReadonlyMap<string, SiteRoute>
  readonly #discardMs: number
  readonly #health: Health
  readonly #tickBudget = new TickBudget()
  #isDraining = false
  #requestsSinceDrain = 0

  constructor(parts: AppParts) {
    const { stores, log, advice, build, sweep, pages, environmentKey, rateLimit, corsOrigins, trustedProxies } = parts
    const { publicUrl, stagingUrl } = parts
    const { pets, keys } = stores
    const { bodyMs, discardMs, verifiedForMs, checkMs, checkedForMs } = { ...timeLimits, ...parts.limits }
    const metrics = this.#metrics
    const usage = new UsageRecorder(keys)
    const isDraining = () => this.#isDraining
    const metricsText = (isStoreUp: boolean) =>
      metrics.text({ usage, activity: stores.activity(), sweep, build, isStoreUp })
    this.#environmentKey = environmentKey
    this.#log = new RequestLog({ log, advice, environmentKey, trustedProxies })
    this.#authenticator = new Authenticator({ keys, usage, environmentKey, verifiedForMs })
    this.#usage = usage
    this.#rateLimiter = rateLimit && new RateLimiter(rateLimit)
    this.#cors = corsOrigins && new Cors(corsOrigins)
    this.#router = new Router(petOperations({ pets, metrics, baseUrl: publicUrl ?? versionPrefix, bodyMs }))
    this.#health = new Health({ stores, checkMs, checkedForMs, isDraining })
    this.#site = siteRoutes({ health: this.#health, urls: { publicUrl, stagingUrl }, pages, metricsText })
    this.#discardMs = discardMs
  }

  /** Handles one request, and never rejects. SQLite's reads wait for nothing, so they are answered in the same tick. */
  fetch(request: Request, peers?: PeerLookup): Promise<Response> {
    const incoming = new IncomingRequest(request, this.#environmentKey, peers)
    this.#metrics.requestStarted()
    if (this.#isDraining) this.#requestsSinceDrain++
    const path = versionedPath(incoming.path)
    return path === undefined ? this.#handleSite(incoming) : this.#handleOperation(incoming, path)
  }

  async #handleOperation(incoming: IncomingRequest, path: string): Promise<Response> {
    const { request } = incoming
    let isRefused = false
    let caller: Caller | undefined
    let rateLimitHeaders: HeaderValues | undefined
    let operation: Operation | undefined
    let strict = false
    const respond = (reply: Reply) =>
      this.#respond(incoming, reply, { isRefused, caller, operation, strict, rateLimitHeaders })
    try {
      isRefused = this.#tickBudget.isSpent(incoming) && !(await this.#tickBudget.defer(incoming))
      const match = this.#router.find(path)
      const preflight = request.method === 'OPTIONS' && this.#cors?.preflight(request, match?.allow ?? '')
      if (preflight) {
        incoming.lookUpPeer()
        return respond(preflight)
      }

      caller = this.#authenticator.recognize(incoming)
      if (!caller) {
        // Each verification and each guess of a key leaves an address in the log.
        incoming.lookUpPeer()
        const authentication = await this.#authenticator.verify(incoming)
        if (!authentication.ok) return respond(authentication.refusal)
        caller = authentication.caller
      }

      const counted = this.#rateLimiter?.count(caller.keyHash)
      rateLimitHeaders = counted?.headers
      if (counted?.refusal) return respond(counted.refusal)
      if (isRefused) return respond(busy())

      if (!match) return respond(notFound(incoming.path))
      operation = operationFor(match, request.method)
      if (!operation) return respond(notAllowed(request.method, match.allow))

      const forbidden = permissionRefusal(caller, operation.access)
      if (forbidden) return respond(forbidden)

      if (operation.deprecated) this.#usage.recordDeprecatedCall(caller, operation.id)
      strict = prefersStrict(request.headers.get(parameters.prefer.name))
      const query = new Query(incoming.query)
      if (strict) query.refuseUnknown(operation.parameters)
      // The client may be gone by the end of a write.
      if (operation.access === 'write') incoming.lookUpPeer()
      return respond(await operation.handle({ request, caller, params: match.params, query, strict }))
    } catch (cause) {
      return respond(this.#failureReply(incoming, cause))
    }
  }

  /** Everything outside of the version prefix. */
  async #handleSite(incoming: IncomingRequest): Promise<Response> {
    const { request, path } = incoming
    let isRefused = false
    let caller: Caller | undefined
    const respond = (reply: Reply) => this.#respond(incoming, reply, { isRefused, caller })
    incoming.lookUpPeer()
    try {
      isRefused = this.#tickBudget.isSpent(incoming) && !(await this.#tickBudget.defer(incoming))
      const route = this.#site.get(path)
      if (!route) return respond(notFound(path))
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return respond(notAllowed(request.method, 'GET, HEAD'))
      }
      if (route.isForScrapers) {
        const authentication = await this.#authenticator.verifyScraper(incoming)
        if (!authentication.ok) return respond(authentication.refusal)
        caller = authentication.caller
        const forbidden = permissionRefusal(caller, 'metrics')
        if (forbidden) return respond(forbidden)
      }
      return respond(await route.handle(request))
    } catch (cause) {
      return respond(this.#failureReply(incoming, cause))
    }
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

  #failureReply(incoming: IncomingRequest, cause: unknown): Reply {
    const { aborted } = incoming.request.signal
    const isAbort = aborted && cause instanceof DOMException && cause.name === 'AbortError'
    if (!isAbort) this.#log.requestFailed(incoming, cause)
    // No client receives this response: the status is for the log and the metrics.
    if (aborted) return { status: clientClosedRequest, body: null, headers: new Headers() }
    if (cause instanceof StoreDamaged) {
      return errorReply('store_damaged', 'The store is damaged: the operator has to restore a backup')
    }
    if (cause instanceof StoreUnavailable) {
      const message = `The store is unavailable: retry in ${retryAfterSeconds} s`
      return errorReply('store_unavailable', message, { 'Retry-After': String(retryAfterSeconds) })
    }
    if (cause instanceof IdsExhausted) {
      const message = 'No id is left for another animal: the operator has to move the catalogue to a new store'
      return errorReply('ids_exhausted', message)
    }
    return errorReply('internal_error', `The service failed: report the request id ${incoming.id}`)
  }

  /** The operation may have left the body unread: discards it first, unless Bun does. */
  #respond(incoming: IncomingRequest, reply: Reply, findings: Findings): Response | Promise<Response> {
    const { request, isChunked } = incoming
    if (reply.status < 400 && !isChunked) return this.#response(incoming, reply, findings, false)
    incoming.lookUpPeer()
    const closes = this.#isDraining || /\bclose\b/i.test(request.headers.get('connection') ?? '')
    // On a connection that stays open, Bun discards a body of known length by itself.
    if (!closes && !isChunked) return this.#response(incoming, reply, findings, false)
    // Bun shows no body of a GET, and would read its chunks for ever.
    if (request.body === null || findings.isRefused) return this.#response(incoming, reply, findings, true)
    return discardBody(request, this.#discardMs, () => this.#tickBudget.takePatience()).then(ended =>
      this.#response(incoming, reply, findings, closes || !ended),
    )
  }

  #response(incoming: IncomingRequest, reply: Reply, findings: Findings, closes: boolean): Response {
    const { request } = incoming
    const { caller, operation, strict, rateLimitHeaders } = findings
    const { status, body } = reply
    const response = new Response(body, { status, headers: reply.headers })
    const { headers } = response
    headers.set('X-Request-Id', incoming.id)
    for (const name in rateLimitHeaders) headers.set(name, rateLimitHeaders[name] ?? '')
    if (strict) headers.set('Preference-Applied', 'handling=strict')
    this.#cors?.share(request, headers)
    if (closes || this.#isDraining) headers.set('Connection', 'close')
    // Bun sends no Date in a response to HEAD.
    if (request.method === 'HEAD') headers.set('Date', new Date().toUTCString())
    const ms = performance.now() - incoming.startedMs
    this.#metrics.requestEnded(operation?.id ?? 'none', status, ms / 1_000)
    this.#log.requestEnded(incoming, { status, ms, operationId: operation?.id, caller })
    return response
  }
}

/** The path below the version prefix; undefined if it is another one. */
function versionedPath(path: string): string | undefined {
  const { length } = versionPrefix
  return path.startsWith(versionPrefix) && (path.length === length || path[length] === '/')
    ? path.slice(length)
    : undefined
}

const shownPathCharsMax = 80

function notFound(path: string): Reply {
  const shown = path.length > shownPathCharsMax ? `${path.slice(0, shownPathCharsMax)}…` : path
  return errorReply(
    'not_found',
    `Nothing is at ${shown}: animals are at ${versionPrefix}${operations.listPets.path}, the documentation is at /docs and /openapi.json`,
  )
}

function busy(): Reply {
  const message = `The server is busy: retry in ${retryAfterSeconds} s, with Content-Length instead of chunks`
  return errorReply('rate_limited', message, { 'Retry-After': String(retryAfterSeconds) })
}

function notAllowed(method: string, allow: string): Reply {
  return errorReply('method_not_allowed', `Method ${method} is not allowed here: expected ${allow}`, { Allow: allow })
}
