import type { Permission } from '../api-key.ts'
import { type Field, invalid, unknownNames } from '../field.ts'

/** The client, by its API key. */
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

const idempotencyKeyCharsMax = 255
const bareKey = `[!#-~][!-~]{0,${idempotencyKeyCharsMax - 1}}`
const quotedKey = `"(?:[!#-\\[\\]-~]|\\\\["\\\\]){1,${idempotencyKeyCharsMax}}"`
const idempotencyKeyPattern = new RegExp(`^(?:${bareKey}|${quotedKey})$`)
/** With quotes. An escaped character counts twice. */
const idempotencyHeaderCharsMax = idempotencyKeyCharsMax + 2

/** Bare or in quotes: both spellings are the same key. */
export const idempotencyKey: Field<string> = {
  schema: {
    type: 'string',
    minLength: 1,
    maxLength: idempotencyHeaderCharsMax,
    pattern: idempotencyKeyPattern.source,
  },
  expected: `1 to ${idempotencyKeyCharsMax} visible ASCII characters, bare or in double quotes`,
  read(value) {
    if (typeof value !== 'string' || value.length > idempotencyHeaderCharsMax) return undefined
    if (!idempotencyKeyPattern.test(value)) return undefined
    return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value
  },
}

const safeId = /^[A-Za-z0-9._~:/+=@-]{1,128}$/

/** The client's own id if it is safe in headers and logs and is not a key; otherwise a new one. */
export function requestId(
  sent: string | null,
  authorization: string | null,
  environmentKey: string | undefined,
): string {
  if (sent === null || !safeId.test(sent)) return crypto.randomUUID()
  const isKey = overlaps(sent, tokenOf(authorization)) || overlaps(sent, environmentKey) || /pets_\w{36}/.test(sent)
  return isKey ? crypto.randomUUID() : sent
}

const keyCharsMin = 16

/** Whether an id contains a key, or is a long part of one. */
function overlaps(id: string, key: string | undefined): boolean {
  if (key === undefined) return false
  return (key.length >= keyCharsMin && id.includes(key)) || (id.length >= keyCharsMin && key.includes(id))
}

function tokenOf(authorization: string | null): string | undefined {
  return authorization?.replace(/^\w+ +/, '')
}

const loggedSegmentCharsMax = 15
const keyPartCharsMin = 4

/**
 * The path for the log, without keys that were put into it by mistake. Known keys are masked first, because they may
 * contain slashes. Unknown keys are longer than 15 characters, or still percent-encoded.
 */
export function loggedPath({ request, path }: RequestContext, environmentKey: string | undefined): string {
  // Decode visible ASCII only: no other character occurs in keys, and control characters must not reach a terminal.
  const decoded = path.replace(/%(2[1-9a-f]|[3-6][0-9a-f]|7[0-9a-e])/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  const token = tokenOf(request.headers.get('authorization'))
  // Masking a shorter token would make every path unreadable.
  const keys = [environmentKey ?? '', token ?? ''].filter(key => key.length >= keyPartCharsMin)
  // Bun reads a backslash in a path as a slash.
  const masked = keys.reduce(
    (text, key) => text.replaceAll(key, '…').replaceAll(key.replaceAll('\\', '/'), '…'),
    decoded,
  )
  const parts = keys.flatMap(key => key.split(/[/\\?#%]/)).filter(part => part.length >= keyPartCharsMin)
  const mayBeKey = (segment: string) =>
    segment.length > loggedSegmentCharsMax || segment.includes('%') || parts.some(part => segment.includes(part))
  return masked
    .split('/')
    .map(segment => (mayBeKey(segment) ? '…' : segment))
    .join('/')
    .slice(0, 200)
}
