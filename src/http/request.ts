import type { Permission } from '../api-key.ts'
import { type Field, invalid, type Rule, unknownNames } from '../field.ts'

/** Who sent a request. */
export interface Caller {
  readonly keyName: string
  readonly permission: Permission | 'all'
  /** The key's hash: the owner of idempotency keys and of a rate limit. */
  readonly keyHash: string
}

/** The part of Bun's server that knows the peer of a request. */
export interface PeerLookup {
  requestIP(request: Request): { readonly address: string } | null
}

/** A request as it arrived. The steps of the pipeline return what they find out about it. */
export class IncomingRequest {
  readonly request: Request
  readonly id: string
  readonly path: string
  readonly query: string
  readonly startedMs = performance.now()
  /** The length of the body is unknown until it ends: Bun shows its chunks one by one. */
  readonly isChunked: boolean
  readonly #peers: PeerLookup | undefined
  #peerAddress: string | undefined

  constructor(request: Request, environmentKey: string | undefined, peers?: PeerLookup) {
    this.request = request
    this.#peers = peers
    const { path, query } = splitUrl(request.url)
    this.path = path
    this.query = query
    this.isChunked = request.headers.has('transfer-encoding')
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
    this.#peerAddress ??= this.#peers?.requestIP(this.request)?.address
  }

  /** The address of the client or of the last proxy, if it was looked up. */
  get peerAddress(): string | undefined {
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

export const requestIdCharsMax = 128
const safeId = new RegExp(`^[A-Za-z0-9._~:/+=@-]{1,${requestIdCharsMax}}$`)
const storedKey = /pets_[A-Za-z0-9]{12}/
/** This many characters of a key in a row make an id unsafe. */
export const keyRunChars = 12
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
  for (let at = 0; at + keyRunChars <= id.length; at++) {
    if (token.includes(id.slice(at, at + keyRunChars))) return true
  }
  return false
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
  read<T>(name: string, rule: Rule<T, string>): T | undefined {
    const [text, ...others] = this.#parsed().getAll(name)
    if (text === undefined) return undefined
    if (others.length > 0) {
      this.problems.push(`${name} occurs ${others.length + 1} times: expected once`)
      return undefined
    }
    const value = rule.read(text)
    if (value === undefined) this.problems.push(invalid(name, text, rule))
    return value
  }

  /** Adds a problem for each parameter that was sent and is not one of these. */
  refuseUnknown(parameters: readonly { readonly name: string; readonly in: string }[]): void {
    const known = parameters.filter(({ in: place }) => place === 'query').map(({ name }) => name)
    this.problems.push(...unknownNames('parameter', [...new Set(this.#parsed().keys())], known))
  }

  /** Parsed on first use: a cached page is found by the text alone. */
  #parsed(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.text)
    return this.#parameters
  }
}

const idempotencyKeyCharsMax = 255
const bareKey = `[!#-~][!-~]{0,${idempotencyKeyCharsMax - 1}}`
const quotedKey = `"(?:[!#-\\[\\]-~]|\\\\["\\\\]){1,${idempotencyKeyCharsMax}}"`
const idempotencyKeyPattern = new RegExp(`^(?:${bareKey}|${quotedKey})$`)
/** With quotes. An escaped character counts twice. */
const idempotencyHeaderCharsMax = idempotencyKeyCharsMax + 2

/** Bare or in quotes: both spellings are the same key. */
export const idempotencyKey: Field<string, string> = {
  schema: { type: 'string', minLength: 1, maxLength: idempotencyHeaderCharsMax, pattern: idempotencyKeyPattern.source },
  expected: `1 to ${idempotencyKeyCharsMax} visible ASCII characters, bare or in double quotes`,
  read(text) {
    if (text.length > idempotencyHeaderCharsMax || !idempotencyKeyPattern.test(text)) return undefined
    return text.startsWith('"') ? text.slice(1, -1).replace(/\\(.)/g, '$1') : text
  },
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
