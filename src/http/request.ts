import type { Permission } from '../api-key.ts'
import { type Field, int64, invalid, unknownNames } from '../field.ts'
import { parseInt64 } from '../int64.ts'
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
  /** The body has no known length: Bun shows its chunks one by one. */
  readonly inChunks: boolean
  /** The event loop is too busy to read or discard its chunks. */
  mustHurry = false
  caller = anonymous
  operationId: string | undefined
  params: Readonly<Record<string, string>> = {}
  /** `Prefer: handling=strict`: unknown parameters and properties are errors. */
  strict = false
  rateLimitHeaders: Readonly<Record<string, string>> | undefined
  readonly #peers: PeerLookup | undefined
  /** The address of the client or of the last proxy, once it was looked up. */
  peerAddress: string | undefined

  constructor(request: Request, environmentKey: string | undefined, peers?: PeerLookup) {
    this.request = request
    this.#peers = peers
    const { path, query } = splitUrl(request.url)
    this.path = path
    this.query = new Query(query)
    this.inChunks = request.headers.has('transfer-encoding')
    const sentId = request.headers.get('x-request-id')
    // Reading a header costs: the credential is needed only to compare it with a sent id.
    this.id = requestId(sentId, sentId && request.headers.get('authorization'), environmentKey)
  }

  /**
   * For the log. The address is unknown once the connection is closed, so writes and verifications of a key ask for it
   * before they wait. Errors ask, too. Other reads are identified by their key's name: a lookup costs as much as the
   * log line.
   */
  lookUpPeer(): void {
    this.peerAddress ??= this.#peers?.requestIP(this.request)?.address
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

export interface Parameter<T = unknown> {
  readonly name: string
  readonly in: 'query' | 'path' | 'header'
  readonly field: Field<T>
  readonly description: string
  readonly example: unknown
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
  read<T>({ name, field }: Pick<Parameter<T>, 'name' | 'field'>): T | undefined {
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

  refuseUnknown(parameters: readonly Parameter[]): void {
    const known = parameters.filter(({ in: place }) => place === 'query').map(({ name }) => name)
    this.problems.push(...unknownNames('parameter', [...new Set(this.#parsed().keys())], known))
  }

  /** Parsed on first use: a cached page is found by the text alone. */
  #parsed(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.text)
    return this.#parameters
  }
}

/** An int64 as text, as in a path. */
export const int64Text: Field<bigint> = { ...int64, read: text => parseInt64(String(text)) }

const idempotencyKeyCharsMax = 255
const bareKey = `[!#-~][!-~]{0,${idempotencyKeyCharsMax - 1}}`
const quotedKey = `"(?:[!#-\\[\\]-~]|\\\\["\\\\]){1,${idempotencyKeyCharsMax}}"`
const idempotencyKeyPattern = new RegExp(`^(?:${bareKey}|${quotedKey})$`)
/** With quotes. An escaped character counts twice. */
const idempotencyHeaderCharsMax = idempotencyKeyCharsMax + 2

/** Bare or in quotes: both spellings are the same key. */
export const idempotencyKey: Field<string> = {
  schema: { type: 'string', minLength: 1, maxLength: idempotencyHeaderCharsMax, pattern: idempotencyKeyPattern.source },
  expected: `1 to ${idempotencyKeyCharsMax} visible ASCII characters, bare or in double quotes`,
  read(value) {
    if (typeof value !== 'string' || value.length > idempotencyHeaderCharsMax) return undefined
    if (!idempotencyKeyPattern.test(value)) return undefined
    return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value
  },
}

/** A longer Prefer header is ignored. */
const preferCharsMax = 1_024

/** Whether a Prefer header (RFC 7240) asks for `handling=strict`. The first `handling` counts. */
export const strictHandling: Field<boolean> = {
  schema: { type: 'string' },
  expected: 'handling=strict',
  read(value) {
    if (typeof value !== 'string' || value.length > preferCharsMax) return false
    // Quoted strings may contain commas; only "strict" itself matters.
    const plain = value.replace(/"(?:[^"\\]|\\.)*"/g, quoted => (/^"strict"$/i.test(quoted) ? 'strict' : '""'))
    for (const preference of plain.split(',')) {
      const [pair = ''] = preference.split(';', 1)
      const handling = /^handling\s*(?:=\s*(\S*))?$/i.exec(pair.trim())
      if (handling) return handling[1]?.toLowerCase() === 'strict'
    }
    return false
  },
}
