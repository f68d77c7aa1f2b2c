const prefix = 'pets_'
const secretChars = 30
const checksumChars = 6
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const form = new RegExp(`^${prefix}[0-9A-Za-z]{${secretChars + checksumChars}}$`)

export const permissions = ['manage', 'read-write', 'read-only', 'metrics'] as const
/** `metrics` reads /metrics and nothing else; the others are for the catalogue. `manage` also changes and removes. */
export type Permission = (typeof permissions)[number]

export interface NewApiKey {
  readonly name: string
  readonly hash: string
  /** The first characters: enough to recognise the key, too few to use it. */
  readonly shown: string
  readonly permission: Permission
  readonly createdAt: Date
  readonly expiresAt?: Date | undefined
}

export interface ApiKey extends NewApiKey {
  readonly id: bigint
  readonly revokedAt?: Date | undefined
  readonly lastUsedAt?: Date | undefined
  /** Calls of deprecated operations: shows who has to migrate before they are removed. */
  readonly deprecatedUses: bigint
  readonly deprecatedLastUsedAt?: Date | undefined
}

/** A new key in plain text, to be shown once, and the record to store. */
export function issueApiKey(options: Omit<NewApiKey, 'hash' | 'shown'>) {
  const key = generateApiKey()
  const record: NewApiKey = { ...options, hash: hashSecret(key), shown: key.slice(0, prefix.length + 4) }
  return { key, record }
}

/** `pets_`, 30 random base62 characters, and a checksum over both in 6 more. */
export function generateApiKey(): string {
  let key = prefix
  const unbiased = 256 - (256 % base62.length)
  while (key.length < prefix.length + secretChars) {
    const [byte = 0] = crypto.getRandomValues(new Uint8Array(1))
    // The bytes above would make some characters more likely.
    if (byte < unbiased) key += base62.charAt(byte % base62.length)
  }
  return key + checksum(key)
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

/** Checks form and checksum, so that a mistyped key is refused without a query. */
export function isWellFormedApiKey(key: string): boolean {
  return form.test(key) && checksum(key.slice(0, -checksumChars)) === key.slice(-checksumChars)
}

/** The store holds only this hash of API keys and idempotency keys. */
export function hashSecret(key: string): string {
  return new Bun.CryptoHasher('sha256').update(key).digest('hex')
}

/** Hides keys in text that repeats a user's input: of a stored one, all but its first characters. */
export function maskKeys(text: string, environmentKey?: string): string {
  const masked = environmentKey === undefined ? text : text.replaceAll(environmentKey, '…')
  return masked.replace(/(pets_[0-9A-Za-z]{4})[0-9A-Za-z]{8,}/g, '$1…')
}

/** Why a stored key is refused, if it is. */
export function whyInvalid(key: ApiKey, now: Date): 'revoked' | 'expired' | undefined {
  if (key.revokedAt) return 'revoked'
  return key.expiresAt && key.expiresAt <= now ? 'expired' : undefined
}
