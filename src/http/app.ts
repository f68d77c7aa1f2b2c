import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import type { KeyStore, PetStore, StoreActivity } from '../store.ts'
import { Authenticator, KeyUsage, permissionRefusal } from './auth.ts'
import { discardBody } from './body.ts'
import { Cors } from './cors.ts'
import { type MetricSources, Metrics, RequestObserver } from './metrics.ts'
import type { PublishedUrls } from './openapi.ts'
import { operations, parameters, versionPrefix } from './operations.ts'
import { petOperations } from './pets.ts'
import { RateLimiter, type RequestRate } from './rate-limit.ts'
import { type PeerLookup, RequestContext } from './request.ts'
import { problem, type Reply } from './response.ts'
import { operationFor, Router } from './router.ts'
import { type Asset, Health, type SiteHandler, siteHandlers } from './site.ts'
import { Turns } from './turns.ts'

export interface AppParts extends PublishedUrls {
  readonly pets: PetStore
  readonly keys: KeyStore
  readonly log: Log
  readonly build: MetricSources['build']
  readonly isReadOnly: () => boolean
  readonly activity: () => StoreActivity
  readonly sweep: MetricSources['sweep']
  /** Accepted besides the keys in the store. */
  readonly environmentKey?: string | undefined
  readonly pages?: ReadonlyMap<string, Asset> | undefined
  /** For each key, on this instance. */
  readonly rateLimit?: RequestRate | undefined
  readonly corsOrigins?: readonly string[] | undefined
  /** Addresses and CIDR ranges of proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies?: readonly string[] | undefined
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

const { prefer } = parameters

/** nginx's status for a client that closed the connection before its request was complete. */
const clientClosedRequest = 499

export class App {
  readonly #environmentKey: string | undefined
  readonly #metrics = new Metrics()
  readonly #observer: RequestObserver
  readonly #authenticator: Authenticator
  readonly #usage: KeyUsage
  readonly #rateLimiter: RateLimiter | undefined
  readonly #cors: Cors
  readonly #router: Router
  readonly #site: ReadonlyMap<string, SiteHandler>
  readonly #discardMs: number
  readonly #health: Health
  readonly #turns = new Turns()
  #isDraining = false
  requestsSinceDrain = 0

  constructor(parts: AppParts) {
    const { pets, keys, environmentKey, rateLimit, activity, sweep, build } = parts
    const limits = { ...timeLimits, ...parts.limits }
    const metrics = this.#metrics
    const usage = new KeyUsage(keys)
    const metricsText = (isStoreUp: boolean) => metrics.text({ usage, activity: activity(), sweep, build, isStoreUp })
    this.#environmentKey = environmentKey
    this.#observer = new RequestObserver(parts.log, metrics, environmentKey, parts.trustedProxies)
    this.#authenticator = new Authenticator({ keys, usage, environmentKey, verifiedForMs: limits.verifiedForMs })
    this.#usage = usage
    this.#rateLimiter = rateLimit && new RateLimiter(rateLimit)
    this.#cors = new Cors(parts.corsOrigins ?? [])
    const baseUrl = parts.publicUrl ?? versionPrefix
    this.#router = new Router(petOperations({ pets, metrics, baseUrl, bodyMs: limits.bodyMs }))
    this.#health = new Health({ ...parts, ...limits, isDraining: () => this.#isDraining })
    this.#site = siteHandlers({ ...parts, health: this.#health, authenticator: this.#authenticator, metricsText })
    this.#discardMs = limits.discardMs
  }

  /** Handles one request, and never rejects. SQLite's reads wait for no input, so they are answered in the same tick. */
  async fetch(request: Request, peers?: PeerLookup): Promise<Response> {
    const context = new RequestContext(request, this.#environmentKey, peers)
    this.#metrics.requestStarted()
    if (this.#isDraining) this.requestsSinceDrain++
    const { path } = context
    try {
      if (this.#turns.isOver(context)) await this.#turns.next(context)
      if (!isVersioned(path)) {
        context.lookUpPeer()
        return this.#respond(context, await this.#siteReply(context))
      }
      const preflight = request.method === 'OPTIONS' && this.#preflight(context)
      if (preflight) return this.#respond(context, preflight)

      if (!this.#authenticator.recognize(context)) {
        // Each verification and each guess of a key leaves an address in the log.
        context.lookUpPeer()
        const refusal = await this.#authenticator.authenticate(context)
        if (refusal) return this.#respond(context, refusal)
      }

      if (context.mustHurry) return this.#respond(context, busy())

      const rateLimited = this.#rateLimiter?.count(context)
      if (rateLimited) return this.#respond(context, rateLimited)

      const match = this.#router.find(path.slice(versionPrefix.length))
      if (!match) return this.#respond(context, notFound(path))

      const operation = operationFor(match, request.method)
      if (!operation) return this.#respond(context, notAllowed(request.method, match.allow))
      context.operationId = operation.id

      const forbidden = permissionRefusal(context.caller, operation.access)
      if (forbidden) return this.#respond(context, forbidden)

      if (operation.deprecated) this.#usage.recordDeprecatedCall(context.caller, operation.id)
      context.params = match.params
      context.strict = prefer.field.read(request.headers.get(prefer.name)) === true
      if (context.strict) context.query.refuseUnknown(operation.parameters)
      // The client may be gone by the end of a write.
      if (operation.access === 'write') context.lookUpPeer()
      return this.#respond(context, await operation.handle(context))
    } catch (cause) {
      return this.#respond(context, this.#failureReply(context, cause))
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
    this.#observer.reportUnavailable()
    return this.flush()
  }

  /** From now on every response closes its connection, so that clients connect elsewhere. */
  drain(): void {
    this.#isDraining = true
  }

  async #siteReply(context: RequestContext): Promise<Reply> {
    const { path, request } = context
    const handle = this.#site.get(path)
    if (!handle) return notFound(path)
    if (request.method !== 'GET' && request.method !== 'HEAD') return notAllowed(request.method, 'GET, HEAD')
    return handle(context)
  }

  #preflight({ request, path }: RequestContext): Reply | undefined {
    const match = this.#router.find(path.slice(versionPrefix.length))
    return this.#cors.preflight(request, match?.allow ?? '')
  }

  #failureReply(context: RequestContext, cause: unknown): Reply {
    const { aborted } = context.request.signal
    const isAbort = aborted && cause instanceof DOMException && cause.name === 'AbortError'
    if (!isAbort) this.#observer.requestFailed(context, cause)
    // No client receives this response: the status is for the log and the metrics.
    if (aborted) return { status: clientClosedRequest, body: null, headers: new Headers() }
    if (cause instanceof StoreDamaged) {
      return problem('store_damaged', 'The store is damaged: the operator has to restore a backup')
    }
    if (cause instanceof StoreUnavailable) {
      const message = `The store is unavailable: retry in ${retryAfterSeconds} s`
      return problem('store_unavailable', message, { 'Retry-After': String(retryAfterSeconds) })
    }
    if (cause instanceof IdsExhausted) {
      const message = 'No id is left for another animal: the operator has to move the catalogue to a new store'
      return problem('ids_exhausted', message)
    }
    return problem('internal_error', `The service failed: report the request id ${context.id}`)
  }

  /** The operation may have left the body unread: discards it first, unless Bun does. */
  #respond(context: RequestContext, reply: Reply): Response | Promise<Response> {
    const draining = this.#isDraining
    const { request, inChunks } = context
    if (reply.status < 400 && !inChunks) return this.#response(context, reply, draining)
    context.lookUpPeer()
    const closes = draining || /\bclose\b/i.test(request.headers.get('connection') ?? '')
    // On a connection that stays open, Bun discards a body of known length by itself.
    if (!closes && !inChunks) return this.#response(context, reply, false)
    // Bun shows no body of a GET, and would read its chunks for ever.
    if (request.body === null || context.mustHurry) return this.#response(context, reply, closes || inChunks)
    return discardBody(request, this.#discardMs, () => this.#turns.isPatient()).then(ended =>
      this.#response(context, reply, closes || !ended || this.#isDraining),
    )
  }

  #response(context: RequestContext, { status, body, headers: shared }: Reply, closes: boolean): Response {
    const { request, rateLimitHeaders } = context
    const response = new Response(body, { status, headers: shared })
    const { headers } = response
    headers.set('X-Request-Id', context.id)
    for (const name in rateLimitHeaders) headers.set(name, rateLimitHeaders[name] ?? '')
    if (context.strict) headers.set('Preference-Applied', 'handling=strict')
    this.#cors.share(request, headers)
    if (closes) headers.set('Connection', 'close')
    // Bun sends no Date in a response to HEAD.
    if (request.method === 'HEAD') headers.set('Date', new Date().toUTCString())
    this.#observer.requestEnded(context, status)
    return response
  }
}

function isVersioned(path: string): boolean {
  const { length } = versionPrefix
  return path.startsWith(versionPrefix) && (path.length === length || path[length] === '/')
}

const shownPathCharsMax = 80

function notFound(path: string): Reply {
  const shown = path.length > shownPathCharsMax ? `${path.slice(0, shownPathCharsMax)}…` : path
  return problem(
    'not_found',
    `Nothing is at ${shown}: animals are at ${versionPrefix}${operations.listPets.path}, the documentation is at /docs and /openapi.json`,
  )
}

function busy(): Reply {
  const message = `The server is busy: retry in ${retryAfterSeconds} s, with Content-Length instead of chunks`
  return problem('rate_limited', message, { 'Retry-After': String(retryAfterSeconds) })
}

function notAllowed(method: string, allow: string): Reply {
  return problem('method_not_allowed', `Method ${method} is not allowed here: expected ${allow}`, { Allow: allow })
}
