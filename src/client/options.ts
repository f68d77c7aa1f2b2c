import type { DeprecationNotice } from './deprecation.ts'
import type { RetrySettings } from './retry.ts'

export type Environment = 'production' | 'staging'

/** One base address, or one for each environment and which of them it is. */
export type Deployment =
  | { readonly baseUrl: string | URL; readonly baseUrls?: never; readonly environment?: never }
  | {
      readonly baseUrls: Readonly<Record<Environment, string | URL>>
      readonly environment: Environment
      readonly baseUrl?: never
    }

export type ClientOptions = Deployment & {
  readonly apiKey: string
  /** For each attempt, until its answer is there as a whole. Default: 30,000. */
  readonly timeoutMs?: number | undefined
  /** How many more attempts may follow the first. Default: 2. */
  readonly retries?: number | undefined
  /** The longest wait before the first retry; it doubles with each one, and a random part of it is waited. Default: 250. */
  readonly backoffMs?: number | undefined
  /** Where that doubling ends. Default: 8,000. */
  readonly backoffMaxMs?: number | undefined
  /** A server that asks with Retry-After for a longer wait is not asked again. Default: 60,000. */
  readonly retryAfterMaxMs?: number | undefined
  /** Called for each answer with Deprecation or Sunset. What it throws is what the call rejects with. */
  readonly onDeprecation?: ((notice: DeprecationNotice) => void) | undefined
  /** In place of the runtime's own. */
  readonly fetch?: Fetch | undefined
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface ClientSettings extends RetrySettings {
  /** Without a slash at its end. */
  readonly baseUrl: string
  readonly apiKey: string
  readonly timeoutMs: number
  readonly fetch: Fetch
  onDeprecation(notice: DeprecationNotice): void
}

/** A timer takes no longer time: it would fire at once. */
const timerMsMax = 2 ** 31 - 1

/** Throws a TypeError that names the option and what was expected, and never shows the key. */
export function readOptions(options: ClientOptions): ClientSettings {
  const { timeoutMs = 30_000, retries = 2, backoffMs = 250, backoffMaxMs = 8_000 } = options
  const { retryAfterMaxMs = 60_000, onDeprecation = () => {} } = options
  return {
    baseUrl: baseUrlOf(options),
    apiKey: readApiKey(options.apiKey),
    timeoutMs: readTimeoutMs(timeoutMs),
    retries: inRange('retries', retries, 0, 100),
    backoffMs: inRange('backoffMs', backoffMs, 0, timerMsMax),
    backoffMaxMs: inRange('backoffMaxMs', backoffMaxMs, 0, timerMsMax / 2),
    retryAfterMaxMs: inRange('retryAfterMaxMs', retryAfterMaxMs, 0, timerMsMax / 2),
    // Looked up with each call, and called as a function of the window: browsers refuse any other `this`.
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    onDeprecation,
  }
}

export function readTimeoutMs(timeoutMs: number): number {
  return inRange('timeoutMs', timeoutMs, 1, timerMsMax)
}

function baseUrlOf({ baseUrl, baseUrls, environment }: ClientOptions): string {
  if (baseUrls === undefined) return readBaseUrl('baseUrl', baseUrl)
  if (baseUrl !== undefined) throw new TypeError('Cannot use baseUrl and baseUrls together: give one of them')
  if (environment !== 'production' && environment !== 'staging') {
    throw new TypeError(`Cannot read environment ${environment}: expected production or staging`)
  }
  return readBaseUrl(`baseUrls.${environment}`, baseUrls[environment])
}

/** Without a slash at its end. Throws a TypeError that names the option and does not show the address. */
export function readBaseUrl(name: string, address: unknown): string {
  try {
    const url = new URL(String(address))
    const { protocol, username, password, search, hash } = url
    if (/^https?:$/.test(protocol) && username + password + search + hash === '') {
      return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
    }
  } catch {}
  throw new TypeError(
    `Cannot read ${name}: expected an http or https address without user, query or fragment, such as https://pets.example.com/v1`,
  )
}

/** What a header can carry. Anything else would fail in fetch, perhaps with the key in the message. */
function readApiKey(apiKey: unknown): string {
  if (typeof apiKey === 'string' && /^[\x21-\x7e]+$/.test(apiKey)) return apiKey
  throw new TypeError('Cannot use apiKey: expected text of visible ASCII characters')
}

function inRange(name: string, value: number, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw new TypeError(`Cannot read ${name} ${value}: expected a number from ${min} to ${max}`)
}
