import { type Answer, withHeaders } from './answer.ts'

/** Lets pages of named origins use the interface from a browser. Without any, no answer speaks of it. */
export interface Cors {
  /** The answer to a browser's question whether it may ask; undefined where this is no such question. */
  preflight(request: Request, allow: string): Answer | undefined
  /** The answer as a page of this origin may read it. */
  share(request: Request, answer: Answer): Answer
}

/** A browser keeps the permission for this long. */
const preflightSeconds = 600
const sentHeaders = 'Authorization, Content-Type, Idempotency-Key, Prefer, X-Request-Id, traceparent'
const readHeaders = [
  'Link, Location, X-Request-Id, Deprecation, Sunset, Retry-After, Allow, WWW-Authenticate',
  'Preference-Applied, Idempotency-Replayed, RateLimit, RateLimit-Policy',
].join(', ')

export function createCors(origins: readonly string[]): Cors {
  const allowed = new Set(origins)
  const originOf = (request: Request) => {
    const origin = request.headers.get('origin')
    return origin !== null && allowed.has(origin) ? origin : undefined
  }
  return {
    preflight(request, allow) {
      if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method'))
        return undefined
      const origin = originOf(request)
      if (!origin) return undefined
      return {
        status: 204,
        body: null,
        headers: {
          'Access-Control-Allow-Origin': origin,
          'Access-Control-Allow-Methods': allow,
          'Access-Control-Allow-Headers': sentHeaders,
          'Access-Control-Max-Age': String(preflightSeconds),
          Vary: 'Origin',
        },
      }
    },
    share(request, answer) {
      if (allowed.size === 0) return answer
      const origin = originOf(request)
      const vary = { Vary: 'Origin' }
      if (!origin) return withHeaders(answer, vary)
      const headers = { 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': readHeaders }
      return withHeaders(answer, { ...vary, ...headers })
    },
  }
}
