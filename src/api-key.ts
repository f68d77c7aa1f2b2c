import type { Awaitable } from './awaitable.ts'

const prefix = 'pets_'
const secretChars = 30
const checksumChars = 6
const shownChars = prefix.length + 4
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const form = new RegExp(`^${prefix}[0-9A-Za-z]{${secretChars + checksumChars}}$`)

/** A key's name is for people. */
export const keyNameCharsMax = 100

/** `pets_`, 30 random base62 characters, and a checksum over both in 6 more. */
export function generateApiKey(): string {
  let key = prefix
  while (key.length < prefix.length + secretChars) key += randomBase62()
  return key + checksum(key)
}

/** One character, or none: a byte that would make some of the 62 likelier than others is thrown away. */
function randomBase62(): string {
  const [byte = 0] = crypto.getRandomValues(new Uint8Array(1))
  const fair = 256 - (256 % base62.length)
  return byte < fair ? base62.charAt(byte % base62.length) : ''
}

/** Whether we could have made this key. A mistyped one is told from an unknown one without asking the store. */
export function isWellFormedApiKey(key: string): boolean {
  return form.test(key) && checksum(key.slice(0, -checksumChars)) === key.slice(-checksumChars)
}

/** What the store keeps of a key, and what it is found by. */
export function hashApiKey(key: string): string {
  return new Bun.CryptoHasher('sha256').update(key).digest('hex')
}

/** The first characters: enough to recognise a key by, far too few to use it. */
export function shownPart(key: string): string {
  return key.slice(0, shownChars)
}

function checksum(text: string): string {
  let rest = Bun.hash.crc32(text)
  let digits = ''
  for (let i = 0; i < checksumChars; i++) {
    digits = base62.charAt(rest % base62.length) + digits
    rest = Math.floor(rest / base62.length)
  }
  return digits
}

export const permissions = ['read-write', 'read-only', 'metrics'] as const
/** What a key is for: the catalogue, with or without adding to it, or the metrics alone. */
export type Permission = (typeof permissions)[number]

export interface NewApiKey {
  readonly name: string
  readonly hash: string
  /** The first characters of the key itself. */
  readonly shown: string
  readonly permission: Permission
  readonly createdAt: Date
  readonly expiresAt?: Date
}

export interface ApiKey extends NewApiKey {
  readonly id: bigint
  readonly revokedAt?: Date
  readonly lastUsedAt?: Date
  /** How often the key has called a deprecated operation, and when last: who has to move before it is removed. */
  readonly deprecatedUses: bigint
  readonly deprecatedLastUsedAt?: Date
}

/** What has been done with one key since this was last written down. */
export interface KeyUse {
  readonly id: bigint
  readonly lastUsedAt: Date
  readonly deprecatedUses: number
  readonly deprecatedLastUsedAt?: Date
}

/** Why a key that the store knows is not accepted, if it is not. */
export function refusal(key: ApiKey, now: Date): 'revoked' | 'expired' | undefined {
  if (key.revokedAt) return 'revoked'
  return key.expiresAt && key.expiresAt <= now ? 'expired' : undefined
}

/** Keeps the keys, by their hashes. What is created or revoked by another process is seen by the next call. */
export interface KeyStore {
  find(hash: string): Awaitable<ApiKey | undefined>
  /** Oldest first, revoked and expired ones too. */
  list(): Awaitable<readonly ApiKey[]>
  create(key: NewApiKey): Awaitable<ApiKey>
  /** Creates the key only where the store has never held one, whoever else tries at the same moment. */
  createFirst(key: NewApiKey): Awaitable<ApiKey | undefined>
  /** False where no such key is in force. */
  revoke(id: bigint, at: Date): Awaitable<boolean>
  /** Adds up, and never moves a time backwards: several instances report on the same key. */
  recordUses(uses: readonly KeyUse[]): Awaitable<void>
}

/** A key as it is handed to a person, and as it is kept. */
export function issueApiKey(options: Pick<NewApiKey, 'name' | 'permission' | 'createdAt' | 'expiresAt'>): {
  readonly key: string
  readonly record: NewApiKey
} {
  const key = generateApiKey()
  return { key, record: { ...options, hash: hashApiKey(key), shown: shownPart(key) } }
}
