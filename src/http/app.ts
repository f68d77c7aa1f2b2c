import type { Asset } from '../asset.ts'
import { whenReady } from '../awaitable.ts'
import { IdsExhausted, StoreUnavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Awaitable, KeyStore, PetStore, StoreActivity } from '../store.ts'
import { type Answer, prepareHeaders, problem, withHeaders } from './answer.ts'
import { type Caller, createAuthenticator, permissionRefusal } from './authenticate.ts'
import { discardBody } from './body.ts'
import { createCors } from './cors.ts'
import { describe } from './describe.ts'
import { createKeyUses } from './key-uses.ts'
import { createLinks, versionPrefix } from './links.ts'
import { createMetrics } from './metrics.ts'
import { createObserver, type Passage } from './observe.ts'
import type { Operation } from './operation.ts'
import { operatorSite } from './operator.ts'
import { petRoutes } from './pets.ts'
import { prefersStrict } from './prefer.ts'
import { parseQuery } from './query.ts'
import { createRateLimiter, type RateLimit } from './rate-limit.ts'
import { allowedMethods, createRouter, type Match } from './route.ts'
import { type Site, serveAsset } from './site.ts'
import { type Target, targetOf } from './target.ts'

export interface AppParts {
  readonly pets: PetStore
  readonly keys: KeyStore
  readonly log: Log
  /** What the store is doing, for the metrics. */
  readonly activity?: (() => StoreActivity) | undefined
  readonly environmentKey?: string | undefined
  readonly publicUrl?: string | undefined
  readonly stagingUrl?: string | undefined
  /** What a browser is shown, by its path. */
  readonly pages?: ReadonlyMap<string, Asset> | undefined
  /** For each key, on this instance; none unless it is configured. */
  readonly rateLimit?: RateLimit | undefined
  /** Whose pages may use the interface from a browser; nobody's unless configured. */
  readonly corsOrigins?: readonly string[] | undefined
}

export interface App {
  /** Answers one request; never throws and never rejects. */
  fetch(request: Request): Awaitable<Response>
  /** Writes down when each key was last used. */
  flush(): Promise<void>
  /** From now on every answer closes its connection, so that clients go elsewhere. */
  drain(): void
}

const retryAfterSeconds = 1

/** As nginx counts it: the client closed the connection before its request was complete. */
const clientClosedRequest = 499

const commonHeaders = prepareHeaders()

/** The way of a request, from top to bottom: id, credential, rate, route, method, operation, answer. */
export function createApp(parts: AppParts): App {
  const { pets, keys, log, publicUrl, activity } = parts
  const metrics = createMetrics()
  const observer = createObserver(log, metrics, parts.environmentKey)
  const authenticator = createAuthenticator(parts)
  const uses = createKeyUses(keys)
  const findRoute = createRouter(
    petRoutes({ pets, links: createLinks(publicUrl), metrics, documentation: documentationIn(parts) }),
  )
  const limiter = parts.rateLimit && createRateLimiter(parts.rateLimit)
  const cors = createCors(parts.corsOrigins ?? [])
  let draining = false
  const site: Site = new Map([
    ...documents(parts),
    ...operatorSite({ pets, keys, authenticator, admitted, metrics, activity, isDraining: () => draining }),
  ])

  function answerTo(request: Request, passage: Passage): Awaitable<Answer> {
    const target = targetOf(request.url)
    if (!isUnderVersion(target.path)) return siteAnswer(request, target, passage)
    const preflight = request.method === 'OPTIONS' && cors.preflight(request, methodsAt(target))
    if (preflight) return preflight
    const authentication = authenticator.authenticate(request.headers.get('authorization'))
    return whenReady(authentication, judged =>
      judged.ok ? limited(request, target, judged.caller, passage) : judged.answer,
    )
  }

  /** The key was accepted: it is named in the log and counted as used. */
  function admitted({ keyId, keyName }: Caller, passage: Passage): void {
    passage.keyName = keyName
    if (keyId !== undefined) uses.record(keyId, false)
  }

  function limited(request: Request, target: Target, caller: Caller, passage: Passage): Awaitable<Answer> {
    admitted(caller, passage)
    if (!limiter) return routed(request, target, caller, passage)
    const { headers, refusal } = limiter.count(caller.scope)
    return (
      refusal ?? whenReady(routed(request, target, caller, passage), answer => withHeaders(answer, headers))
    )
  }

  function routed(request: Request, target: Target, caller: Caller, passage: Passage): Awaitable<Answer> {
    const match = findRoute(target.path.slice(versionPrefix.length))
    if (!match) return nothingAt(target.path)
    const operation = operationOf(match, request.method)
    if (!operation) return notAllowed(request.method, allowedMethods(match.route))
    passage.operation = operation.id
    const refusal = permissionRefusal(caller, operation.writes ? 'write' : 'read')
    if (refusal) return refusal
    if (operation.deprecated) recordDeprecated(operation, caller)
    const strict = prefersStrict(request.headers.get('prefer'))
    const query = parseQuery(target.query, strict ? operation.parameters : undefined)
    const answer = operation.handle({ request, caller, params: match.params, query, strict })
    return strict ? whenReady(answer, strictlyHandled) : answer
  }

  function recordDeprecated({ id }: Operation, { keyId, keyName }: Caller): void {
    if (keyId !== undefined) uses.record(keyId, true)
    metrics.deprecatedCall(id, keyName)
  }

  function methodsAt({ path }: Target): string {
    const match = findRoute(path.slice(versionPrefix.length))
    return match ? allowedMethods(match.route) : ''
  }

  function siteAnswer(request: Request, { path }: Target, passage: Passage): Awaitable<Answer> {
    const serve = site.get(path)
    if (!serve) return nothingAt(path)
    if (request.method !== 'GET' && request.method !== 'HEAD') return notAllowed(request.method, 'GET, HEAD')
    return serve(request, passage)
  }

  function respond(request: Request, passage: Passage, given: Answer): Response {
    const { status, body, headers: own, prepared = commonHeaders } = cors.share(request, given)
    // Many answers share these headers; the Response takes a copy at once.
    prepared.set('X-Request-Id', passage.requestId)
    const response = new Response(body, { status, headers: prepared })
    for (const name in own) response.headers.set(name, own[name] ?? '')
    if (draining) response.headers.set('Connection', 'close')
    // Bun leaves the Date out of an answer to HEAD, and GET has one.
    if (request.method === 'HEAD') response.headers.set('Date', new Date().toUTCString())
    observer.end(passage, request, status)
    return response
  }

  async function respondLater(request: Request, passage: Passage, given: Promise<Answer>): Promise<Response> {
    try {
      return await respondWhole(request, passage, await given)
    } catch (cause) {
      return respondWhole(request, passage, faultAnswer(request, passage, cause))
    }
  }

  /** A refusal may come before the body was read; then the rest of it is discarded. */
  function respondWhole(request: Request, passage: Passage, given: Answer): Awaitable<Response> {
    if (given.status < 400) return respond(request, passage, given)
    const closes = draining || asksToClose(request)
    // On a connection that stays open the runtime discards a body of known length by itself, after the response.
    if ((!closes && request.headers.has('content-length')) || request.body === null) {
      return respond(request, passage, given)
    }
    return discardBody(request).then(ended =>
      respond(request, passage, closes || !ended ? withHeaders(given, { Connection: 'close' }) : given),
    )
  }

  function faultAnswer(request: Request, passage: Passage, cause: unknown): Answer {
    // This response reaches no client: its status is for the log and the metrics.
    if (request.signal.aborted) return { status: clientClosedRequest, body: null }
    observer.fault(passage, cause)
    if (cause instanceof StoreUnavailable) {
      const message = `The store does not answer now: try again in ${retryAfterSeconds} s`
      return problem('store_unavailable', message, { 'Retry-After': String(retryAfterSeconds) })
    }
    if (cause instanceof IdsExhausted) {
      const message =
        'No id is left for another animal: the operator has to move the catalogue to a new store'
      return problem('ids_exhausted', message)
    }
    const message = `The service failed; its log has the cause under request id ${passage.requestId}`
    return problem('internal_error', message)
  }

  return {
    fetch(request) {
      const passage = observer.begin(request)
      try {
        const answer = answerTo(request, passage)
        if (!(answer instanceof Promise)) return respondWhole(request, passage, answer)
        return respondLater(request, passage, answer)
      } catch (cause) {
        return respondWhole(request, passage, faultAnswer(request, passage, cause))
      }
    },
    flush: () => uses.flush(),
    drain() {
      draining = true
    },
  }
}

/** The reference page where there is one, else the document that it shows. */
function documentationIn({ pages }: AppParts) {
  if (pages?.has('/docs')) return { path: '/docs#/pets/getPet', type: 'text/html' }
  return { path: '/openapi.json', type: 'application/json' }
}

/** What is the same for everybody: the description, and the pages. */
function documents(parts: AppParts): Site {
  const description: Asset = {
    type: 'application/json',
    read: async () => new TextEncoder().encode(JSON.stringify(describe(parts))),
  }
  const assets = new Map(parts.pages).set('/openapi.json', description)
  return new Map([...assets].map(([path, asset]) => [path, serveAsset(asset)]))
}

function isUnderVersion(path: string): boolean {
  return (
    path.startsWith(versionPrefix) &&
    (path.length === versionPrefix.length || path[versionPrefix.length] === '/')
  )
}

function operationOf({ route }: Match, method: string): Operation | undefined {
  if (method === 'GET' || method === 'HEAD') return route.operations.GET
  return method === 'POST' ? route.operations.POST : undefined
}

function strictlyHandled(answer: Answer): Answer {
  return withHeaders(answer, { 'Preference-Applied': 'handling=strict' })
}

function nothingAt(path: string): Answer {
  const shown = path.length > 80 ? `${path.slice(0, 80)}…` : path
  return problem(
    'not_found',
    `Nothing is at ${shown}: the animals are at /v1/pets, the description at /openapi.json`,
  )
}

function notAllowed(method: string, allow: string): Answer {
  return problem('method_not_allowed', `Cannot ${method} here: expected one of ${allow}`, { Allow: allow })
}

/** Whether the connection is closed after the response because the client wants it so. */
function asksToClose(request: Request): boolean {
  return /\bclose\b/i.test(request.headers.get('connection') ?? '')
}
