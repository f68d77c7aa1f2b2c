import { orUndefined } from './json.ts'

/** `request` is a call of `client.request`. */
export type OperationName = 'listPets' | 'createPet' | 'getPet' | 'updatePet' | 'deletePet' | 'request'

/** A link of a response (RFC 8288). */
export interface Link {
  /** In lower case: `next`, `deprecation`, `successor-version`. */
  readonly rel: string
  /** Absolute. */
  readonly href: string
}

/** A response announced that its operation is deprecated. */
export interface DeprecationNotice {
  readonly operation: OperationName
  /** The start of the deprecation; absent if the server gave no date. */
  readonly deprecation?: Date
  /** The date of the operation's removal. */
  readonly sunset?: Date
  /** The documentation (`deprecation`) and the replacement (`successor-version`). */
  readonly links: readonly Link[]
}

/** How many requests the API key may still send. */
export interface RateLimit {
  /** The most requests in a window. */
  readonly limit: number
  readonly windowSeconds: number
  /** Requests that are left in this window. */
  readonly remaining: number
  /** Seconds until the next window. */
  readonly resetSeconds: number
}

/** Reads a Link header. A link with several relations is returned once for each; invalid addresses are skipped. */
export function readLinks(header: string | null, base: string): Link[] {
  return splitItems(header).flatMap(item => {
    const [, address] = /<([^<>]*)>/.exec(item[0] ?? '') ?? []
    const url = address === undefined ? undefined : orUndefined(() => new URL(address, base))
    const rels = findParameter(item, 'rel').replace(/^"|"$/g, '')
    return url ? (rels.toLowerCase().match(/\S+/g) ?? []).map(rel => ({ rel, href: url.href })) : []
  })
}

/** An address, a quoted string, a separator or other text. A string without an end is read once, in linear time. */
const token = /<[^<>]*>|"(?:[^"\\]|\\.)*(?:"|\\?$)|[,;<]|[^<",;]+/gs

/** The items of a header, such as `"default";r=42;t=1`: each is a list of its value and its parameters. */
function splitItems(header: string | null): readonly string[][] {
  let item = ['']
  const items = [item]
  for (const [text] of (header ?? '').matchAll(token)) {
    if (text === ',') {
      item = ['']
      items.push(item)
    } else if (text === ';') item.push('')
    else item[item.length - 1] += text
  }
  return items
}

/** Empty if there is none. Only the first parameter with a name counts (RFC 8288, section 3.3). */
function findParameter([, ...parameters]: readonly string[], name: string): string {
  const found = parameters.map(text => text.split('=')).find(([first = '']) => first.trim().toLowerCase() === name)
  return found?.slice(1).join('=').trim() ?? ''
}

/** Reads Deprecation (RFC 9745) and Sunset (RFC 8594); undefined if the response has neither. */
export function readDeprecation(operation: OperationName, headers: Headers, url: string) {
  if (!headers.has('deprecation') && !headers.has('sunset')) return undefined
  const deprecation = readDate(headers.get('deprecation'))
  const sunset = readDate(headers.get('sunset'))
  const links = readLinks(headers.get('link'), url)
  return { operation, ...(deprecation && { deprecation }), ...(sunset && { sunset }), links }
}

/** `@1794700800` or an HTTP date. Drafts of RFC 9745 also allowed `true`, which has no date. */
function readDate(text: string | null): Date | undefined {
  const [, seconds] = /^@(-?\d{1,12})$/.exec(text ?? '') ?? []
  const ms = seconds === undefined ? parseHttpDate(text) : Number(seconds) * 1_000
  return Number.isNaN(ms) ? undefined : new Date(ms)
}

/** NaN for other text. Date.parse alone reads almost any text with a number in it. */
function parseHttpDate(text: string | null): number {
  return text !== null && /^[A-Z][a-z]+, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN
}

// Those of every request, and those that fetch sets itself or refuses in Node.
const reserved = 'accept|authorization|content-length|host|connection|keep-alive|transfer-encoding|upgrade|expect'
export const reservedHeader = new RegExp(`^(${reserved})$`, 'i')
const ownHeader = new RegExp(`^(${reserved}|content-type|idempotency-key)$`, 'i')

/** Throws a TypeError for a header that cannot be sent. The message does not show the value: it may be a secret. */
export function readHeaders(headers: Headers | Readonly<Record<string, string>>, refused = ownHeader) {
  if (headers !== Object(headers)) throw new TypeError('headers is invalid: expected an object or Headers')
  const entries: [string, string][] = Symbol.iterator in headers ? [...headers] : Object.entries(headers)
  for (const [name, value] of entries) {
    const shown = `headers[${JSON.stringify(name)}]`
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new TypeError(`${shown} is invalid: expected a header name`)
    if (refused.test(name)) throw new TypeError(`${shown} is not allowed: remove it`)
    if (typeof value !== 'string' || !/^[\t -~]*$/.test(value)) {
      throw new TypeError(`${shown} is invalid: expected a string of visible ASCII characters, spaces and tabs`)
    }
  }
  // In lower case, so that a call's headers replace the client's.
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]))
}

/** Seconds from a Retry-After header, which is a number or an HTTP date; undefined if it is neither. */
export function readRetryAfter(header: string | null, now: Date): number | undefined {
  if (header !== null && /^\d{1,10}$/.test(header)) return Number(header)
  const seconds = Math.ceil((parseHttpDate(header) - now.getTime()) / 1_000)
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

/** Reads RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers); undefined unless both are complete. */
export function readRateLimit(headers: Headers): RateLimit | undefined {
  const read = (header: string, name: string) => {
    const [item = []] = splitItems(headers.get(header))
    const text = findParameter(item, name)
    return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  }
  const limit = read('ratelimit-policy', 'q')
  const windowSeconds = read('ratelimit-policy', 'w')
  const remaining = read('ratelimit', 'r')
  const resetSeconds = read('ratelimit', 't')
  const values = { limit, windowSeconds, remaining, resetSeconds }
  return Object.values(values).some(Number.isNaN) ? undefined : values
}
