import type { Permission } from '../api-key.ts'
import { type Field, invalid, unknownNames } from '../field.ts'
import { requestId } from './masking.ts'

export interface Caller {
  readonly keyName?: string
  readonly permission: Permission | 'all' | 'none'
  /** The key's hash: the owner of idempotency keys and of a rate limit. */
  readonly scope: string
}

/** The part of Bun's server that knows the peer of a request. */
export interface PeerLookup {
  requestIP(request: Request): { readonly address: string } | null
}

const anonymous: Caller = { permission: 'none', scope: '' }

/** One request on its way through the pipeline, which fills in the later fields. */
export class RequestContext {
  readonly request: Request
  readonly id: string
  readonly path: string
  readonly query: Query
  readonly startedMs = performance.now()
  caller = anonymous
  operationId: string | undefined
  params: Readonly<Record<string, string>> = {}
  /** `Prefer: handling=strict`: unknown parameters and properties are errors. */
  strict = false
  rateLimitHeaders: Readonly<Record<string, string>> | undefined
  readonly #peers: PeerLookup | undefined
  #peerAddress: string | undefined

  constructor(request: Request, environmentKey: string | undefined, peers?: PeerLookup) {
    this.request = request
    this.#peers = peers
    const { path, query } = splitUrl(request.url)
    this.path = path
    this.query = new Query(query)
    const sentId = request.headers.get('x-request-id')
    // Reading a header costs: the credential is needed only to compare it with a sent id.
    this.id = requestId(sentId, sentId && request.headers.get('authorization'), environmentKey)
  }

  /** The address of the client or of the last proxy. It is known only if asked for before the connection is closed. */
  peerAddress(): string | undefined {
    this.#peerAddress ??= this.#peers?.requestIP(this.request)?.address
    return this.#peerAddress
  }
}

/** `new URL` throws for some Host headers that Bun accepts, so path and query are taken from the text. */
export function splitUrl(url: string): { readonly path: string; readonly query: string } {
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  const queryStart = url.indexOf('?', pathStart)
  const hash = url.indexOf('#', pathStart)
  const end = hash === -1 ? url.length : hash
  if (queryStart === -1 || queryStart > end) return { path: url.slice(pathStart, end), query: '' }
  return { path: url.slice(pathStart, queryStart), query: url.slice(queryStart + 1, end) }
}

/** Query parameters. Problems are collected, so that one response names them all. */
export class Query {
  readonly text: string
  readonly problems: string[] = []
  #parameters: URLSearchParams | undefined

  constructor(text: string) {
    this.text = text
  }

  /** The parameter's value; undefined if it was not sent, or is a problem. */
  read<T>(name: string, field: Field<T>): T | undefined {
    const [text, ...others] = this.#parsed().getAll(name)
    if (text === undefined) return undefined
    if (others.length > 0) {
      this.problems.push(`${name} occurs ${others.length + 1} times: expected once`)
      return undefined
    }
    const value = field.read(text)
    if (value === undefined) this.problems.push(invalid(name, text, field))
    return value
  }

  refuseUnknown(known: readonly string[]): void {
    this.problems.push(...unknownNames('parameter', [...new Set(this.#parsed().keys())], known))
  }

  /** Parsed on first use: a cached page is found by the text alone. */
  #parsed(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.text)
    return this.#parameters
  }
}

/** A longer Prefer header is ignored. */
const preferCharsMax = 1_024

/** Whether a Prefer header (RFC 7240) asks for `handling=strict`. The first `handling` counts. */
export function prefersStrict(header: string | null): boolean {
  if (header === null || header.length > preferCharsMax) return false
  // Quoted strings may contain commas; only "strict" itself matters.
  const plain = header.replace(/"(?:[^"\\]|\\.)*"/g, quoted => (/^"strict"$/i.test(quoted) ? 'strict' : '""'))
  for (const preference of plain.split(',')) {
    const [pair = ''] = preference.split(';', 1)
    const handling = /^handling\s*(?:=\s*(\S*))?$/i.exec(pair.trim())
    if (handling) return handling[1]?.toLowerCase() === 'strict'
  }
  return false
}
