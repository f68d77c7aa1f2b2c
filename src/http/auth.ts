import { type ApiKey, hashSecret, isWellFormedApiKey, refusalOf } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import type { KeyStore, KeyUse } from '../store.ts'
import type { Access } from './operations.ts'
import type { Caller, RequestContext } from './request.ts'
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

  /** Whether the key was verified a moment ago: then this sets the context's caller. */
  recognize(context: RequestContext): boolean {
    const known = this.#verified.get(context.request.headers.get('authorization') ?? '')
    const now = Date.now()
    if (!known || context.startedMs >= known.verifiedMs + this.#verifiedForMs || now >= known.expiresAtMs) return false
    known.usage.lastUsedAtMs = now
    context.caller = known.caller
    return true
  }

  /** Sets the context's caller, or returns the refusal. */
  async authenticate(context: RequestContext): Promise<Reply | undefined> {
    if (this.recognize(context)) return undefined
    const header = context.request.headers.get('authorization')
    return header === null ? missingKey() : this.#verify(header, context)
  }

  /** Like `authenticate`, but monitoring also sees an outage of the store, with a key that was verified before. */
  async authenticateScraper(context: RequestContext): Promise<Reply | undefined> {
    try {
      return await this.authenticate(context)
    } catch (error) {
      const known = this.#verified.get(context.request.headers.get('authorization') ?? '')
      const isKnown =
        known?.caller.permission === 'metrics' &&
        context.startedMs < known.verifiedMs + scraperMsMax &&
        Date.now() < known.expiresAtMs
      if (!isKnown || !(error instanceof StoreUnavailable)) throw error
      context.caller = known.caller
      return undefined
    }
  }

  async #verify(header: string, context: RequestContext): Promise<Reply | undefined> {
    const bearer = /^bearer(?: +(\S.*))?$/i.exec(header)
    if (!bearer && header !== '') return missingKey('Authorization does not begin with "Bearer "')
    const token = bearer?.[1]
    if (token === undefined) return missingKey()
    if (!/^[\x21-\x7e]+$/.test(token)) {
      return refusedKey('invalid_api_key', 'Malformed credential: expected one API key after Bearer')
    }
    const hash = hashSecret(token)
    const isFromEnvironment =
      this.#environmentHash !== undefined && crypto.timingSafeEqual(this.#environmentHash, Buffer.from(hash))
    // The store's record decides: the environment neither revives a revoked key nor promotes a read-only one.
    const key = isWellFormedApiKey(token) ? await this.#keys.find(hash) : undefined
    this.#verified.delete(header)
    if (!key && isFromEnvironment) {
      context.caller = { keyName: 'PETSTORE_API_KEY', permission: 'all', scope: hash }
      this.#remember(header, context)
      return undefined
    }
    if (!key) return refusedKey('invalid_api_key', 'Unknown API key: check it for typos')
    const refusal = refusalOf(key, new Date())
    if (refusal) return refusedKey('invalid_api_key', `The API key is ${refusal}: use another one`)
    context.caller = { keyName: key.name, permission: key.permission, scope: hash }
    this.#remember(header, context, key)
    return undefined
  }

  #remember(header: string, { caller }: RequestContext, key?: ApiKey): void {
    const usage = this.#usage.recordUse(caller, key?.id)
    if (header.length > cachedHeaderCharsMax) return
    // A Map iterates in insertion order: the first entry is the oldest.
    if (this.#verified.size >= this.#verifiedKeysMax) this.#verified.delete(this.#verified.keys().next().value ?? '')
    const verifiedMs = performance.now()
    const expiresAtMs = key?.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY
    this.#verified.set(header, { caller, usage, verifiedMs, expiresAtMs })
  }
}

const challenge = 'Bearer realm="petstore"'

function missingKey(what = 'The API key is missing'): Reply {
  const message = `${what}: send the header "Authorization: Bearer <API_KEY>"`
  return problem('missing_api_key', message, { 'WWW-Authenticate': challenge })
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
  none: [],
}

export function permissionRefusal({ permission }: Caller, access: Access): Reply | undefined {
  if (permitted[permission].includes(access)) return undefined
  if (access === 'write' && permission === 'read-only') {
    return refusedKey('read_only_key', 'The API key may only read: use one that may write')
  }
  const needed = access === 'metrics' ? 'metrics' : 'read-only or read-write'
  return refusedKey('insufficient_permission', `The API key lacks the permission: use a ${needed} key`)
}

/** The uses of one key since the start, and how many of them the store has. */
interface Usage {
  /** Absent for the key from the environment, which is not in the store. */
  readonly keyId?: bigint | undefined
  readonly keyName: string
  lastUsedAtMs: number
  deprecatedCalls: number
  deprecatedLastUsedAtMs: number
  deprecatedOperation?: string
  storedAtMs: number
  storedDeprecatedCalls: number
}

/** Counts the uses of each key in memory, so that a request costs no write. `flush` stores them. */
export class KeyUsage {
  readonly #keys: KeyStore
  /** By the key's hash. */
  readonly #usages = new Map<string, Usage>()
  #flushing = Promise.resolve()

  constructor(keys: KeyStore) {
    this.#keys = keys
  }

  recordUse({ scope, keyName = '' }: Caller, keyId: bigint | undefined): Usage {
    let usage = this.#usages.get(scope)
    if (!usage) {
      const counts = { deprecatedCalls: 0, deprecatedLastUsedAtMs: 0, storedAtMs: 0, storedDeprecatedCalls: 0 }
      usage = { keyId, keyName, lastUsedAtMs: 0, ...counts }
      this.#usages.set(scope, usage)
    }
    usage.lastUsedAtMs = Date.now()
    return usage
  }

  /** Counts a call of a deprecated operation, by a key whose use was recorded. */
  recordDeprecatedCall({ scope }: Caller, operation: string): void {
    const usage = this.#usages.get(scope)
    if (!usage) return
    usage.deprecatedCalls++
    usage.deprecatedOperation = operation
    usage.deprecatedLastUsedAtMs = usage.lastUsedAtMs
  }

  deprecatedCallers(): readonly Readonly<Usage>[] {
    return [...this.#usages.values()].filter(({ deprecatedCalls }) => deprecatedCalls > 0)
  }

  /** Stores the uses since the last flush. If that fails, the next flush stores them. */
  flush(): Promise<void> {
    // One at a time: two flushes at once would store the same calls twice.
    this.#flushing = this.#flushing.catch(() => {}).then(() => this.#store())
    return this.#flushing
  }

  async #store(): Promise<void> {
    const pending = [...this.#usages.values()].flatMap(usage =>
      usage.keyId === undefined || isStored(usage) ? [] : [{ usage, use: keyUseOf(usage.keyId, usage) }],
    )
    if (pending.length === 0) return
    await this.#keys.recordUses(pending.map(({ use }) => use))
    for (const { usage, use } of pending) {
      usage.storedAtMs = use.lastUsedAt.getTime()
      usage.storedDeprecatedCalls += use.deprecatedUses
    }
  }
}

function isStored(usage: Usage): boolean {
  return usage.storedAtMs === usage.lastUsedAtMs && usage.storedDeprecatedCalls === usage.deprecatedCalls
}

function keyUseOf(id: bigint, usage: Usage): KeyUse {
  const deprecatedUses = usage.deprecatedCalls - usage.storedDeprecatedCalls
  const use = { id, lastUsedAt: new Date(usage.lastUsedAtMs), deprecatedUses }
  return deprecatedUses === 0 ? use : { ...use, deprecatedLastUsedAt: new Date(usage.deprecatedLastUsedAtMs) }
}
