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

const safeId = /^[A-Za-z0-9._~:/+=@-]{1,128}$/
const storedKey = /pets_[A-Za-z0-9]{12}/
/** This many characters of a key in a row make an id unsafe. */
const keyRunChars = 12
/** A longer token is compared up to here. */
const comparedTokenChars = 300

/** The client's own id if it is safe in headers and logs and holds no key; otherwise a new one. */
export function requestId(
  sent: string | null,
  authorization: string | null,
  environmentKey: string | undefined,
): string {
  if (sent === null || !safeId.test(sent) || storedKey.test(sent)) return crypto.randomUUID()
  // Only the whole key: comparing its parts would reveal them to a client that guesses.
  if (environmentKey !== undefined && sent.includes(environmentKey)) return crypto.randomUUID()
  return authorization !== null && sharesRun(sent, tokenOf(authorization)) ? crypto.randomUUID() : sent
}

function tokenOf(authorization: string): string {
  const afterScheme = authorization.slice(authorization.search(/[ \t]/) + 1)
  return afterScheme.trimStart().slice(0, comparedTokenChars)
}

/** Whether they have `keyRunChars` consecutive characters in common. The work is bounded by the lengths of both. */
function sharesRun(id: string, token: string): boolean {
  if (!sharesBlock(id, token)) return false
  const runs = new Set<string>()
  for (let start = 0; start + keyRunChars <= id.length; start++) runs.add(id.slice(start, start + keyRunChars))
  for (let start = 0; start + keyRunChars <= token.length; start++) {
    if (runs.has(token.slice(start, start + keyRunChars))) return true
  }
  return false
}

/** Quick for most ids: a common run would contain at least one whole block of the id, half as long. */
function sharesBlock(id: string, token: string): boolean {
  const blockChars = keyRunChars / 2
  for (let start = 0; start + blockChars <= id.length; start += blockChars) {
    if (token.includes(id.slice(start, start + blockChars))) return true
  }
  return false
}

const loggedSegmentsMax = 10
const loggedPathCharsMax = 200
/** Keys are longer. */
const loggedSegment = /^[A-Za-z0-9._~-]{0,15}$/

/** The path for the log: `…` replaces the environment key, and segments that may be keys, put there by mistake. */
export function loggedPath(path: string, environmentKey = ''): string {
  // Enough for a key that begins at the last character, with every character encoded as three.
  const decoded = decodeVisible(path.slice(0, 3 * (loggedPathCharsMax + environmentKey.length)))
  const masked = environmentKey === '' ? decoded : maskKey(decoded, environmentKey)
  const [, ...segments] = masked.slice(0, loggedPathCharsMax).split('/', loggedSegmentsMax + 2)
  const isCut = (index: number) =>
    index === loggedSegmentsMax || (masked.length > loggedPathCharsMax && index === segments.length - 1)
  const shown = segments.map((segment, index) => (loggedSegment.test(segment) && !isCut(index) ? segment : '…'))
  return `/${shown.join('/')}`
}

/** Decodes visible ASCII only: no other character occurs in keys. Bun reads a backslash in a path as a slash. */
function decodeVisible(text: string): string {
  let decoded = ''
  let rest = 0
  for (let at = text.indexOf('%'); at !== -1; at = text.indexOf('%', at + 1)) {
    const code = Number.parseInt(text.slice(at + 1, at + 3), 16)
    if (code < 0x21 || code > 0x7e || Number.isNaN(code)) continue
    decoded += text.slice(rest, at) + String.fromCharCode(code)
    rest = at + 3
  }
  return (decoded + text.slice(rest)).replaceAll('\\', '/')
}

/** Masks the key, as it is and decoded. The text keeps its length, so that a key at a limit is masked whole. */
function maskKey(decoded: string, key: string): string {
  const forms = [key.replaceAll('\\', '/'), decodeVisible(key)]
  return forms.reduce((text, form) => text.replaceAll(form, '…'.repeat(form.length)), decoded)
}
