import { type ApiKey, hashSecret, isWellFormedApiKey, whyInvalid } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import type { KeyStore } from '../store-contract.ts'
import type { Caller, Exchange } from './exchange.ts'
import type { UsageRecorder } from './key-usage.ts'
import { type ErrorCode, errorCodes } from './operations.ts'
import { explainCode, Refusal } from './response.ts'
import type { Access } from './router.ts'

/** A verified key is not looked up again for this time: well below the 5 s in which a revocation takes effect. */
export const verifiedForMs = 2_000

/** While the store is unavailable, a metrics key is accepted for this time after it was verified. */
const scraperMsMax = 24 * 60 * 60 * 1_000

/** Look-ups of keys that are new to this process wait for the store, at most this many at a time. */
export const lookUpsMax = 8_192

interface Verified {
  readonly caller: Caller
  /** On the monotonic clock. */
  readonly verifiedMs: number
  /** On the wall clock. */
  readonly expiresAtMs: number
}

/** Verifies API keys, and remembers verified ones: for a moment, or for scrapes while the store is unavailable. */
export class Authenticator {
  readonly #keys: KeyStore
  readonly #usage: UsageRecorder
  readonly #environmentHash: string | undefined
  /** By the key: the time of a lookup reveals only an exact match. At most one for each key of the store. */
  readonly #verified = new Map<string, Verified>()
  #lookUps = 0

  constructor(keys: KeyStore, usage: UsageRecorder, environmentKey: string | undefined) {
    this.#keys = keys
    this.#usage = usage
    this.#environmentHash = environmentKey && hashSecret(environmentKey)
  }

  /** The caller, if the key was verified less than `msMax` ago. */
  recognize({ request, startedMs }: Exchange, msMax = verifiedForMs): Caller | undefined {
    const known = this.#verified.get(readToken(request) ?? '')
    if (!known || startedMs >= known.verifiedMs + msMax || Date.now() >= known.expiresAtMs) return undefined
    return known.caller
  }

  /** Like `verify`, but monitoring also sees an outage of the store, with a key that was verified before. */
  async verifyScraper(exchange: Exchange): Promise<Caller> {
    try {
      return this.recognize(exchange) ?? (await this.verify(exchange))
    } catch (error) {
      const caller = this.recognize(exchange, scraperMsMax)
      if (caller?.permission !== 'metrics' || !(error instanceof StoreUnavailable)) throw error
      return caller
    }
  }

  /** The caller, after a look into the store. Counts as a use. */
  async verify({ request }: Exchange): Promise<Caller> {
    const token = readToken(request)
    if (token === undefined) {
      const isOther = !/^(bearer)?$/i.test(request.headers.get('authorization') ?? '')
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
    const askedMs = performance.now()
    // The store's record decides: the environment neither revives a revoked key nor promotes a read-only one.
    const key = isStorable ? await this.#lookUp(keyHash) : undefined
    this.#verified.delete(token)
    // Comparing hashes reveals nothing of the key.
    if (!key && keyHash === this.#environmentHash) {
      return this.#remember(token, { keyName: 'PETSTORE_API_KEY', permission: 'all', keyHash }, askedMs)
    }
    if (!key) throw refusal('invalid_api_key', 'Unknown API key: check it for typos')
    const reason = whyInvalid(key, new Date())
    if (reason) throw refusal('invalid_api_key', `The API key is ${reason}: use another one`)
    const usage = this.#usage.recordUse(key.id)
    const caller = { keyName: key.name, permission: key.permission, keyHash, usage }
    return this.#remember(token, caller, askedMs, key.expiresAt)
  }

  #lookUp(keyHash: string): Promise<ApiKey | undefined> {
    this.#lookUps++
    return this.#keys.find(keyHash).finally(() => {
      this.#lookUps--
    })
  }

  /** From the time when the store was asked: its answer may take seconds. */
  #remember(token: string, caller: Caller, verifiedMs: number, expiresAt?: Date): Caller {
    const expiresAtMs = expiresAt?.getTime() ?? Number.POSITIVE_INFINITY
    this.#verified.set(token, { caller, verifiedMs, expiresAtMs })
    return caller
  }
}

/** What follows `Bearer` in the Authorization header; undefined if there is no header, or another scheme. */
function readToken({ headers }: Request): string | undefined {
  const header = headers.get('authorization') ?? ''
  // A fast path for the usual form.
  if (header.startsWith('Bearer ') && header[7] !== ' ') return header.slice(7)
  return /^bearer +(.+)$/i.exec(header)?.[1]
}

/** With the challenge of RFC 6750, which has no error if the request has no key. */
function refusal(code: ErrorCode, message = explainCode(code)): Refusal {
  const error = errorCodes[code].status === 403 ? 'insufficient_scope' : 'invalid_token'
  const why = code === 'missing_api_key' ? '' : `, error="${error}", error_description="${message}"`
  return new Refusal(code, message, { 'WWW-Authenticate': `Bearer realm="petstore"${why}` })
}

/** The permissions that allow it, the least one first. */
const permitted: Readonly<Record<Exclude<Access, 'public'>, readonly Caller['permission'][]>> = {
  read: ['read-only', 'read-write', 'manage', 'all'],
  write: ['read-write', 'manage', 'all'],
  manage: ['manage', 'all'],
  metrics: ['metrics', 'all'],
}

export function requirePermission({ permission }: Caller, access: Access): void {
  if (access === 'public' || permitted[access].includes(permission)) return
  if (access === 'write' && permission === 'read-only') throw refusal('read_only_key')
  const [needed] = permitted[access]
  throw refusal('insufficient_permission', `The API key lacks the permission ${needed}: use a key that has it`)
}
