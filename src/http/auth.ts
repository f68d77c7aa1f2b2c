import { type ApiKey, hashSecret, isWellFormedApiKey, whyInvalid } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import type { KeyStore } from '../store.ts'
import type { KeyUsage, UsageRecorder } from './key-usage.ts'
import type { OperationRow } from './operations.ts'
import type { Caller, IncomingRequest } from './request.ts'
import { errorReply, type Reply } from './response.ts'

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

type Access = OperationRow['access'] | 'metrics'

export type Authentication =
  | { readonly ok: true; readonly caller: Caller }
  | { readonly ok: false; readonly refusal: Reply }

/** Verifies API keys, and remembers verified ones: for a moment, or for scrapes while the store is unavailable. */
export class Authenticator {
  readonly #keys: KeyStore
  readonly #usage: UsageRecorder
  readonly #verifiedForMs: number
  readonly #verifiedKeysMax: number
  readonly #environmentHash: Buffer | undefined
  /** By the key: the time of a lookup reveals only an exact match. */
  readonly #verified = new Map<string, Verified>()
  #lookUps = 0

  /** A revoked key is accepted for at most `verifiedForMs`. */
  constructor(parts: {
    readonly keys: KeyStore
    readonly usage: UsageRecorder
    readonly environmentKey: string | undefined
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

  /** The caller, if the key was verified a moment ago. Counts as a use. */
  recognize({ request, startedMs }: IncomingRequest): Caller | undefined {
    const known = this.#verified.get(tokenOf(request.headers.get('authorization') ?? '') ?? '')
    const now = Date.now()
    if (!known || startedMs >= known.verifiedMs + this.#verifiedForMs || now >= known.expiresAtMs) return undefined
    known.usage.lastUsedAtMs = now
    return known.caller
  }

  /** Like `verify`, but monitoring also sees an outage of the store, with a key that was verified before. */
  async verifyScraper(incoming: IncomingRequest): Promise<Authentication> {
    try {
      const caller = this.recognize(incoming)
      return caller ? { ok: true, caller } : await this.verify(incoming)
    } catch (error) {
      const known = this.#verified.get(tokenOf(incoming.request.headers.get('authorization') ?? '') ?? '')
      const isKnown =
        known?.caller.permission === 'metrics' &&
        incoming.startedMs < known.verifiedMs + scraperMsMax &&
        Date.now() < known.expiresAtMs
      if (!isKnown || !(error instanceof StoreUnavailable)) throw error
      return { ok: true, caller: known.caller }
    }
  }

  async verify({ request }: IncomingRequest): Promise<Authentication> {
    const header = request.headers.get('authorization') ?? ''
    const token = tokenOf(header)
    if (token === undefined && /^(bearer)?$/i.test(header)) return missingKey()
    if (token === undefined) return missingKey('Authorization does not begin with "Bearer "')
    if (!/^[\x21-\x7e]+$/.test(token)) return invalidKey('Malformed credential: expected one API key after Bearer')
    const isStorable = isWellFormedApiKey(token)
    if (isStorable && this.#lookUps >= lookUpsMax && !this.#verified.has(token)) {
      const message = 'The service is looking up too many API keys: retry in 1 s'
      return { ok: false, refusal: errorReply('rate_limited', message, { 'Retry-After': '1' }) }
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
    if (!key) return invalidKey('Unknown API key: check it for typos')
    const reason = whyInvalid(key, new Date())
    if (reason) return invalidKey(`The API key is ${reason}: use another one`)
    return this.#accept(token, { keyName: key.name, permission: key.permission, keyHash }, askedMs, key)
  }

  #lookUp(keyHash: string): Promise<ApiKey | undefined> {
    this.#lookUps++
    return this.#keys.find(keyHash).finally(() => {
      this.#lookUps--
    })
  }

  /** Remembers the caller, from the time when the store was asked: its answer may take seconds. */
  #accept(token: string, caller: Caller, verifiedMs: number, key?: ApiKey): Authentication {
    const usage = this.#usage.recordUse(caller, key?.id)
    // A Map iterates in insertion order: the first entry is the oldest.
    if (this.#verified.size >= this.#verifiedKeysMax) this.#verified.delete(this.#verified.keys().next().value ?? '')
    const expiresAtMs = key?.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY
    this.#verified.set(token, { caller, usage, verifiedMs, expiresAtMs })
    return { ok: true, caller }
  }
}

/** The credential in the header; undefined if there is none, or another scheme. */
function tokenOf(header: string): string | undefined {
  // A fast path for the usual form.
  if (header.startsWith('Bearer ') && header[7] !== ' ') return header.slice(7)
  return /^bearer +(.+)$/i.exec(header)?.[1]
}

const challenge = 'Bearer realm="petstore"'

function missingKey(what = 'The API key is missing'): Authentication {
  const message = `${what}: send the header "Authorization: Bearer <API_KEY>"`
  return { ok: false, refusal: errorReply('missing_api_key', message, { 'WWW-Authenticate': challenge }) }
}

function invalidKey(message: string): Authentication {
  return { ok: false, refusal: refusedKey('invalid_api_key', message) }
}

function refusedKey(code: 'invalid_api_key' | 'read_only_key' | 'insufficient_permission', message: string): Reply {
  const error = code === 'invalid_api_key' ? 'invalid_token' : 'insufficient_scope'
  const header = `${challenge}, error="${error}", error_description="${message}"`
  return errorReply(code, message, { 'WWW-Authenticate': header })
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
