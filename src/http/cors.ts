import { headers, parameters } from './operations.ts'
import { noContent, type Reply } from './response.ts'

const preflightSeconds = 600
const headerParameters = Object.values(parameters).flatMap(({ in: place, name }) => (place === 'header' ? name : []))
const requestHeaders = ['Authorization', 'Content-Type', 'X-Request-Id', 'traceparent', ...headerParameters].join(', ')
const exposedHeaders = [...new Set(Object.entries(headers).map(([id, { name }]) => name ?? id))].join(', ')

/** Lets pages of these origins use the interface from a browser. */
export class Cors {
  readonly #origins: ReadonlySet<string>

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins)
  }

  /** The response to a preflight request; undefined if the request is none, or its origin is not allowed. */
  preflight(request: Request, allowedMethods: string): Reply | undefined {
    if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return undefined
    if (this.#allowedOrigin(request) === undefined) return undefined
    return noContent({
      'Access-Control-Allow-Methods': allowedMethods,
      'Access-Control-Allow-Headers': requestHeaders,
      'Access-Control-Max-Age': String(preflightSeconds),
    })
  }

  share(request: Request, headers: Headers): void {
    headers.append('Vary', 'Origin')
    const origin = this.#allowedOrigin(request)
    if (origin === undefined) return
    headers.set('Access-Control-Allow-Origin', origin)
    headers.set('Access-Control-Expose-Headers', exposedHeaders)
  }

  #allowedOrigin(request: Request): string | undefined {
    const origin = request.headers.get('origin')
    return origin !== null && this.#origins.has(origin) ? origin : undefined
  }
}
