import { type ApiKey, hashSecret, isWellFormedApiKey, whyInvalid } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import type { KeyStore } from '../store-contract.ts'
import type { Caller, Exchange } from './exchange.ts'
import type { KeyUsage, UsageRecorder } from './key-usage.ts'
import { messageOf, Refusal } from './response.ts'
import type { Access } from './router.ts'

/** While the store is unavailable, a metrics key is accepted for this time after it was verified. */
const scraperMsMax = 24 * 60 * 60 * 1_000

/** Look-ups of keys that are new to this process wait for the store, at most this many at a time. */
export const lookUpsMax = 8_192

interface Verified {
  readonly caller: Caller
  readonly usage: KeyUsage
  /** On the monotonic clock. */
  readonly verifiedMs: number
  /** On the wall clock. */
  readonly expiresAtMs: number
}

interface AuthParts {
  readonly keys: KeyStore
  readonly usage: UsageRecorder
  readonly environmentKey: string | undefined
  /** A revoked key is accepted for at most this time. */
  readonly verifiedForMs: number
  readonly verifiedKeysMax?: number
}

/** Verifies API keys, and remembers verified ones: for a moment, or for scrapes while the store is unavailable. */
export class Authenticator {
  readonly #parts: AuthParts
  readonly #environmentHash: Buffer | undefined
  /** By the key: the time of a lookup reveals only an exact match. */
  readonly #verified = new Map<string, Verified>()
  #lookUps = 0

  constructor(parts: AuthParts) {
    const { environmentKey } = parts
    this.#parts = parts
    this.#environmentHash = environmentKey === undefined ? undefined : Buffer.from(hashSecret(environmentKey))
  }

  /** The caller, if the key was verified a moment ago. Counts as a use. */
  recognize({ request, startedMs }: Exchange): Caller | undefined {
    const known = this.#verified.get(tokenOf(request.headers.get('authorization') ?? '') ?? '')
    const { verifiedForMs } = this.#parts
    const now = Date.now()
    if (!known || startedMs >= known.verifiedMs + verifiedForMs || now >= known.expiresAtMs) return undefined
    known.usage.lastUsedAtMs = now
    return known.caller
  }

  /** Like `verify`, but monitoring also sees an outage of the store, with a key that was verified before. */
  async verifyScraper(exchange: Exchange): Promise<Caller> {
    try {
      return this.recognize(exchange) ?? (await this.verify(exchange))
    } catch (error) {
      const known = this.#verified.get(tokenOf(exchange.request.headers.get('authorization') ?? '') ?? '')
      const isKnown =
        known?.caller.permission === 'metrics' &&
        exchange.startedMs < known.verifiedMs + scraperMsMax &&
        Date.now() < known.expiresAtMs
      if (!isKnown || !(error instanceof StoreUnavailable)) throw error
      return known.caller
    }
  }

  /** The caller, after a look into the store. Counts as a use. */
  async verify({ request }: Exchange): Promise<Caller> {
    const header = request.headers.get('authorization') ?? ''
    const token = tokenOf(header)
    if (token === undefined) {
      const isOther = !/^(bearer)?$/i.test(header)
      const message = isOther ? 'Authorization does not begin with "Bearer ": an API key has to follow it' : undefined
      throw refusal('missing_api_key', message)
    }
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw refusal('invalid_api_key', 'Malformed credential: expected one API key after Bearer')
    }
    const isStorable = isWellFormedApiKey(token)
    if (isStorable && this.#lookUps >= lookUpsMax && !this.#verified.has(token)) {
      const message = 'The service is looking up too many API keys: retry in 1 s'
      throw new Refusal('rate_limited', message, { 'Retry-After': '1' })
    }
    const keyHash = hashSecret(token)
    const isFromEnvironment =
      this.#environmentHash !== undefined && crypto.timingSafeEqual(this.#environmentHash, Buffer.from(keyHash))
    const askedMs = performance.now()
    // The store's record decides: the environment neither revives a revoked key nor promotes a read-only one.
    const key = isStorable ? await this.#lookUp(keyHash) : undefined
    this.#verified.delete(token)
    if (!key && isFromEnvironment) {
      return this.#accept(token, { keyName: 'PETSTORE_API_KEY', permission: 'all', keyHash }, askedMs)
    }
    if (!key) throw refusal('invalid_api_key', 'Unknown API key: check it for typos')
    const reason = whyInvalid(key, new Date())
    if (reason) throw refusal('invalid_api_key', `The API key is ${reason}: use another one`)
    return this.#accept(token, { keyName: key.name, permission: key.permission, keyHash }, askedMs, key)
  }

  #lookUp(keyHash: string): Promise<ApiKey | undefined> {
    this.#lookUps++
    return this.#parts.keys.find(keyHash).finally(() => {
      this.#lookUps--
    })
  }

  /** Remembers the caller, from the time when the store was asked: its answer may take seconds. */
  #accept(token: string, caller: Caller, verifiedMs: number, key?: ApiKey): Caller {
    const { usage: recorder, verifiedKeysMax = 10_000 } = this.#parts
    const usage = recorder.recordUse(caller, key?.id)
    // A Map iterates in insertion order: the first entry is the oldest.
    if (this.#verified.size >= verifiedKeysMax) this.#verified.delete(this.#verified.keys().next().value ?? '')
    const expiresAtMs = key?.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY
    this.#verified.set(token, { caller, usage, verifiedMs, expiresAtMs })
    return caller
  }
}

/** The credential in the header; undefined if there is none, or another scheme. */
function tokenOf(header: string): string | undefined {
  // A fast path for the usual form.
  if (header.startsWith('Bearer ') && header[7] !== ' ') return header.slice(7)
  return /^bearer +(.+)$/i.exec(header)?.[1]
}

/** The errors of RFC 6750. A request without a key has none. */
const bearerErrors = {
  missing_api_key: undefined,
  invalid_api_key: 'invalid_token',
  read_only_key: 'insufficient_scope',
  insufficient_permission: 'insufficient_scope',
} as const

function refusal(code: keyof typeof bearerErrors, message = messageOf(code)): Refusal {
  const error = bearerErrors[code]
  const why = error ? `, error="${error}", error_description="${message}"` : ''
  return new Refusal(code, message, { 'WWW-Authenticate': `Bearer realm="petstore"${why}` })
}

const permitted: Readonly<Record<Caller['permission'], readonly Access[]>> = {
  all: ['public', 'read', 'write', 'metrics'],
  'read-write': ['public', 'read', 'write'],
  'read-only': ['public', 'read'],
  metrics: ['public', 'metrics'],
  none: ['public'],
}

export function requirePermission({ permission }: Caller, access: Access): void {
  if (permitted[permission].includes(access)) return
  const isReadOnly = access === 'write' && permission === 'read-only'
  throw refusal(isReadOnly ? 'read_only_key' : 'insufficient_permission')
}
