import { type ApiKey, hashSecret, isWellFormedApiKey, refusalOf } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import type { KeyStore } from '../store.ts'
import type { KeyUsage, Usage } from './key-usage.ts'
import type { Access } from './operations.ts'
import type { Caller, IncomingRequest } from './request.ts'
import { problem, type Reply } from './response.ts'

/** While the store is unavailable, a metrics key is accepted for this time after it was verified. */
const scraperMsMax = 24 * 60 * 60 * 1_000

/** Longer headers are not cached: one key padded with spaces must not fill the memory. */
const cachedHeaderCharsMax = 300

interface Verified {
  readonly caller: Caller
  readonly usage: Usage
  /** On the monotonic clock. */
  readonly verifiedMs: number
  /** On the wall clock. */
  readonly expiresAtMs: number
}

export type Authentication =
  | { readonly ok: true; readonly caller: Caller }
  | { readonly ok: false; readonly refusal: Reply }

/** Verifies API keys, and remembers verified ones: for a moment, or for scrapes while the store is unavailable. */
export class Authenticator {
  readonly #keys: KeyStore
  readonly #usage: KeyUsage
  readonly #verifiedForMs: number
  readonly #verifiedKeysMax: number
  readonly #environmentHash: Buffer | undefined
  /** By the whole Authorization header: the time of a lookup reveals only an exact match. */
  readonly #verified = new Map<string, Verified>()

  /** A revoked key is accepted for at most `verifiedForMs`. */
  constructor(parts: {
    readonly keys: KeyStore
    readonly usage: KeyUsage
    readonly environmentKey?: string | undefined
    readonly verifiedForMs: number
    readonly verifiedKeysMax?: number
  }) {
    const { environmentKey } = parts
    this.#keys = parts.keys
    this.#usage = parts.usage
    this.#verifiedForMs = parts.verifiedForMs
    this.#verifiedKeysMax = parts.verifiedKeysMax ?? 10_000
    this.#environmentHash = environmentKey === undefined ? undefined : Buffer.from(hashSecret(environmentKey))
  }

  /** The caller, if the key was verified a moment ago. */
  recognize({ request, startedMs }: IncomingRequest): Caller | undefined {
    const known = this.#verified.get(request.headers.get('authorization') ?? '')
    const now = Date.now()
    if (!known || startedMs >= known.verifiedMs + this.#verifiedForMs || now >= known.expiresAtMs) return undefined
    known.usage.lastUsedAtMs = now
    return known.caller
  }

  async authenticate(incoming: IncomingRequest): Promise<Authentication> {
    const caller = this.recognize(incoming)
    if (caller) return { ok: true, caller }
    const header = incoming.request.headers.get('authorization')
    return header === null ? missingKey() : this.#verify(header)
  }

  /** Like `authenticate`, but monitoring also sees an outage of the store, with a key that was verified before. */
  async authenticateScraper(incoming: IncomingRequest): Promise<Authentication> {
    try {
      return await this.authenticate(incoming)
    } catch (error) {
      const known = this.#verified.get(incoming.request.headers.get('authorization') ?? '')
      const isKnown =
        known?.caller.permission === 'metrics' &&
        incoming.startedMs < known.verifiedMs + scraperMsMax &&
        Date.now() < known.expiresAtMs
      if (!isKnown || !(error instanceof StoreUnavailable)) throw error
      return { ok: true, caller: known.caller }
    }
  }

  async #verify(header: string): Promise<Authentication> {
    const bearer = /^bearer(?: +(\S.*))?$/i.exec(header)
    if (!bearer && header !== '') return missingKey('Authorization does not begin with "Bearer "')
    const token = bearer?.[1]
    if (token === undefined) return missingKey()
    if (!/^[\x21-\x7e]+$/.test(token)) return invalidKey('Malformed credential: expected one API key after Bearer')
    const hash = hashSecret(token)
    const isFromEnvironment =
      this.#environmentHash !== undefined && crypto.timingSafeEqual(this.#environmentHash, Buffer.from(hash))
    // The store's record decides: the environment neither revives a revoked key nor promotes a read-only one.
    const key = isWellFormedApiKey(token) ? await this.#keys.find(hash) : undefined
    this.#verified.delete(header)
    if (!key && isFromEnvironment) {
      return this.#accept(header, { keyName: 'PETSTORE_API_KEY', permission: 'all', scope: hash })
    }
    if (!key) return invalidKey('Unknown API key: check it for typos')
    const refusal = refusalOf(key, new Date())
    if (refusal) return invalidKey(`The API key is ${refusal}: use another one`)
    return this.#accept(header, { keyName: key.name, permission: key.permission, scope: hash }, key)
  }

  /** Remembers the caller. */
  #accept(header: string, caller: Caller, key?: ApiKey): Authentication {
    const usage = this.#usage.recordUse(caller, key?.id)
    if (header.length > cachedHeaderCharsMax) return { ok: true, caller }
    // A Map iterates in insertion order: the first entry is the oldest.
    if (this.#verified.size >= this.#verifiedKeysMax) this.#verified.delete(this.#verified.keys().next().value ?? '')
    const verifiedMs = performance.now()
    const expiresAtMs = key?.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY
    this.#verified.set(header, { caller, usage, verifiedMs, expiresAtMs })
    return { ok: true, caller }
  }
}

const challenge = 'Bearer realm="petstore"'

function missingKey(what = 'The API key is missing'): Authentication {
  const message = `${what}: send the header "Authorization: Bearer <API_KEY>"`
  return { ok: false, refusal: problem('missing_api_key', message, { 'WWW-Authenticate': challenge }) }
}

function invalidKey(message: string): Authentication {
  return { ok: false, refusal: refusedKey('invalid_api_key', message) }
}

function refusedKey(code: 'invalid_api_key' | 'read_only_key' | 'insufficient_permission', message: string): Reply {
  const error = code === 'invalid_api_key' ? 'invalid_token' : 'insufficient_scope'
  const header = `${challenge}, error="${error}", error_description="${message}"`
  return problem(code, message, { 'WWW-Authenticate': header })
}

const permitted: Readonly<Record<Caller['permission'], readonly Access[]>> = {
  all: ['read', 'write', 'metrics'],
  'read-write': ['read', 'write'],
  'read-only': ['read'],
  metrics: ['metrics'],
}

export function permissionRefusal({ permission }: Caller, access: Access): Reply | undefined {
  if (permitted[permission].includes(access)) return undefined
  if (access === 'write' && permission === 'read-only') {
    return refusedKey('read_only_key', 'The API key may only read: use one that may write')
  }
  const needed = access === 'metrics' ? 'metrics' : 'read-only or read-write'
  return refusedKey('insufficient_permission', `The API key lacks the permission: use a ${needed} key`)
}
