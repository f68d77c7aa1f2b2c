import { type ApiKey, hashApiKey, isWellFormedApiKey, type Permission, refusalOf } from '../api-key.ts'
import { whenReady } from '../awaitable.ts'
import type { Awaitable, KeyStore } from '../store.ts'
import { type Answer, problem } from './answer.ts'

/** Whoever sent a request, by the key they sent. */
export interface Caller {
  /** Absent for the key from the environment: the store does not know it. */
  readonly keyId?: bigint
  readonly keyName: string
  /** The key from the environment is for everything. */
  readonly permission: Permission | 'everything'
  /** Whose Idempotency-Keys and rate are counted together: the key's hash. */
  readonly scope: string
}

type Authentication =
  | { readonly ok: true; readonly caller: Caller }
  | { readonly ok: false; readonly answer: Answer }

export interface Authenticator {
  /** Judges an Authorization header. Answers at once for a key that was verified a moment ago. */
  authenticate(header: string | null): Awaitable<Authentication>
}

/** A revoked key is accepted for this long at most: well below the promised 5 seconds. */
const verifiedForMs = 2_000
const verifiedKeysMax = 10_000

/** A longer header is judged anew each time: one key with ever more spaces before it must not fill the memory. */
const headerCharsMax = 300

interface Verified {
  readonly accepted: Authentication
  /** On a clock that nobody can set back. */
  readonly untilMs: number
  /** On the clock that people read. */
  readonly expiresAtMs: number
}

export interface AuthenticatorParts {
  readonly keys: KeyStore
  /** A key from outside, accepted beside those in the store. */
  readonly environmentKey?: string | undefined
}

export function createAuthenticator({ keys, environmentKey }: AuthenticatorParts): Authenticator {
  const environmentHash = environmentKey === undefined ? undefined : Buffer.from(hashApiKey(environmentKey))
  // By the header's whole text: a look-up tells by its time no more than whether all of it is equal.
  const verified = new Map<string, Verified>()

  function verify(header: string, token: string): Awaitable<Authentication> {
    const hash = hashApiKey(token)
    if (environmentHash && crypto.timingSafeEqual(environmentHash, Buffer.from(hash))) {
      return remember(header, { keyName: 'PETSTORE_API_KEY', permission: 'everything', scope: hash })
    }
    if (!isWellFormedApiKey(token)) return refused('The API key is not one of this service, or is mistyped')
    return whenReady(keys.find(hash), key => judge(header, key))
  }

  function judge(header: string, key: ApiKey | undefined): Authentication {
    if (!key) return refused('The API key is unknown')
    const why = refusalOf(key, new Date())
    if (why) return refused(`The API key has ${why === 'expired' ? 'expired' : 'been revoked'}`)
    const caller = { keyId: key.id, keyName: key.name, permission: key.permission, scope: key.hash }
    return remember(header, caller, key.expiresAt?.getTime())
  }

  function remember(header: string, caller: Caller, expiresAtMs = Number.POSITIVE_INFINITY): Authentication {
    const accepted = { ok: true, caller } as const
    if (header.length > headerCharsMax) return accepted
    // The oldest goes first: a Map keeps the order in which its entries were made.
    verified.delete(header)
    if (verified.size >= verifiedKeysMax) verified.delete(verified.keys().next().value ?? '')
    verified.set(header, { accepted, untilMs: performance.now() + verifiedForMs, expiresAtMs })
    return accepted
  }

  return {
    authenticate(header) {
      if (header === null) return missing()
      const known = verified.get(header)
      if (known && performance.now() < known.untilMs && Date.now() < known.expiresAtMs) return known.accepted
      const presented = /^bearer(?: +(\S.*))?$/i.exec(withoutTrailingBlanks(header))
      if (!presented) return missing()
      const [, token] = presented
      if (token === undefined) return missing()
      if (!/^[\x21-\x7e]+$/.test(token)) return refused('Expected exactly one API key after "Bearer"')
      return verify(header, token)
    },
  }
}

/** Only ASCII space and tab, unlike trimEnd; a loop, because /[ \t]+$/ would take quadratic time. */
function withoutTrailingBlanks(header: string): string {
  let end = header.length
  while (end > 0 && (header[end - 1] === ' ' || header[end - 1] === '\t')) end--
  return header.slice(0, end)
}

const challenge = 'Bearer realm="petstore"'

function missing(): Authentication {
  const message = 'The API key is missing: expected the header "Authorization: Bearer <API_KEY>"'
  return { ok: false, answer: problem('missing_api_key', message, { 'WWW-Authenticate': challenge }) }
}

function refused(message: string): Authentication {
  // RFC 6750 allows no quotes inside the description.
  const description = message.replaceAll('"', "'")
  const header = `${challenge}, error="invalid_token", error_description="${description}"`
  return { ok: false, answer: problem('invalid_api_key', message, { 'WWW-Authenticate': header }) }
}

export type Access = 'read' | 'write' | 'metrics'

const granted: Readonly<Record<Caller['permission'], readonly Access[]>> = {
  everything: ['read', 'write', 'metrics'],
  'read-write': ['read', 'write'],
  'read-only': ['read'],
  metrics: ['metrics'],
}

/** Why the caller's key is not enough for this; undefined if it is. */
export function permissionRefusal({ permission }: Caller, access: Access): Answer | undefined {
  if (granted[permission].includes(access)) return undefined
  if (access === 'write' && permission === 'read-only') {
    return forbidden(
      'read_only_key',
      'The API key may only read: adding an animal needs a key that may write',
    )
  }
  const message =
    access === 'metrics'
      ? 'The API key is for the catalogue: the metrics need a key with the permission metrics'
      : 'The API key is for the metrics alone: the catalogue needs a key with the permission read-only or read-write'
  return forbidden('insufficient_permission', message)
}

function forbidden(code: 'read_only_key' | 'insufficient_permission', message: string): Answer {
  const header = `${challenge}, error="insufficient_scope", error_description="${message}"`
  return problem(code, message, { 'WWW-Authenticate': header })
}
