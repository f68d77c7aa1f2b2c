export type OperationName = 'listPets' | 'createPet' | 'getPet'

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

/** An address, a quoted string, a separator or other text. A string without an end is read once, in linear time. */
const linkToken = /<([^<>]*)>|"((?:[^"\\]|\\.)*)(?:"|\\?$)|[,;=]|[^\s<",;=]+/gs

/** Reads a Link header. A link with several relations is returned once for each; invalid addresses are skipped. */
export function readLinks(header: string | null, base: string): Link[] {
  return linksIn(header ?? '').flatMap(({ address, rel = '' }) => {
    const url = parseUrl(address, base)
    return url ? (rel.toLowerCase().match(/\S+/g) ?? []).map(rel => ({ rel, href: url.href })) : []
  })
}

/** Only the first rel parameter of a link counts (RFC 8288, section 3.3). */
function linksIn(header: string): readonly { readonly address: string; readonly rel?: string }[] {
  const links: { address: string; rel?: string }[] = []
  let link: (typeof links)[number] | undefined
  let before = ''
  let isFirstRel = false
  for (const [token, address, quoted] of header.matchAll(linkToken)) {
    if (address !== undefined) {
      link = { address }
      links.push(link)
    } else if (token === ',') link = undefined
    else if (before === ';' && token !== ';' && link) {
      isFirstRel = token.toLowerCase() === 'rel' && link.rel === undefined
      if (isFirstRel) link.rel = ''
    } else if (before === '=' && token !== ';' && isFirstRel && link) link.rel = quoted ?? token
    before = token
  }
  return links
}

/** Undefined for an invalid address. Node 20 has no URL.parse. */
export function parseUrl(address: string, base?: string): URL | undefined {
  try {
    return new URL(address, base)
  } catch {
    return undefined
  }
}

/** Reads Deprecation (RFC 9745) and Sunset (RFC 8594); undefined if the response has neither. */
export function readDeprecation(operation: OperationName, headers: Headers, url: string) {
  if (!headers.has('deprecation') && !headers.has('sunset')) return undefined
  const deprecation = dateIn(headers.get('deprecation'))
  const sunset = dateIn(headers.get('sunset'))
  const links = readLinks(headers.get('link'), url)
  return { operation, ...(deprecation && { deprecation }), ...(sunset && { sunset }), links }
}

/** `@1794700800` or an HTTP date. Drafts of RFC 9745 also allowed `true`, which has no date. */
function dateIn(text: string | null): Date | undefined {
  const [, seconds] = /^@(-?\d{1,12})$/.exec(text ?? '') ?? []
  const date = new Date(seconds === undefined ? parseHttpDate(text) : Number(seconds) * 1_000)
  return Number.isNaN(date.getTime()) ? undefined : date
}

/** NaN for other text. Date.parse alone reads almost any text with a number in it. */
function parseHttpDate(text: string | null): number {
  return text !== null && /^[A-Z][a-z]+, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN
}

// The client's own headers, and those that fetch sets itself or refuses in Node.
const ownHeader =
  /^(accept|authorization|content-(type|length)|idempotency-key|host|connection|keep-alive|transfer-encoding|upgrade|expect)$/i

/** Throws a TypeError for a header that cannot be sent. The message does not show the value: it may be a secret. */
export function readHeaders(headers: Headers | Readonly<Record<string, string>>): Record<string, string> {
  if (headers !== Object(headers)) throw new TypeError('headers is invalid: expected an object or Headers')
  const entries: [string, string][] = Symbol.iterator in headers ? [...headers] : Object.entries(headers)
  for (const [name, value] of entries) {
    const shown = `headers[${JSON.stringify(name)}]`
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new TypeError(`${shown} is invalid: expected a header name`)
    if (ownHeader.test(name)) throw new TypeError(`${shown} is not allowed: remove it`)
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
