import { expect, test } from 'bun:test'
import {
  type ApiKey,
  generateApiKey,
  hashSecret,
  issueApiKey,
  isWellFormedApiKey,
  maskKeys,
  whyInvalid,
} from './api-key.ts'

// Computed outside this program: keys that were issued must stay valid.
const wellFormed = [
  'pets_0000000000000000000000000000003Vt3vM',
  'pets_Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz94bh7mq',
  'pets_abcdefghijklmnopqrstuvwxyz01231KF4IA',
] as const
const [zeros] = wellFormed

test('1,000 generated keys are well-formed and all different', () => {
  const keys = Array.from({ length: 1_000 }, generateApiKey)
  for (const key of keys) expect(key).toMatch(/^pets_[0-9A-Za-z]{36}$/)
  expect(keys.every(isWellFormedApiKey)).toBe(true)
  expect(new Set(keys).size).toBe(1_000)
})

test.each([
  ...[zeros.slice(5), zeros.slice(0, -6), `${zeros}0`, `${zeros}\n`],
  // With a correct checksum: another prefix, a hyphen, and 29 characters.
  ...['cats_0000000000000000000000000000004HQw2U', 'pets_00000000000000000000000000000-42mzrd'],
  'pets_0000000000000000000000000000011cX7l',
])('%j is not a key', key => {
  expect(isWellFormedApiKey(key)).toBe(false)
})

test.each(wellFormed)('%s is a key, and with any one character changed it is none', key => {
  expect(isWellFormedApiKey(key)).toBe(true)
  for (let position = 0; position < key.length; position++) {
    for (const char of '-/09:@AZ[`az{ é'.replace(key[position] ?? '', '')) {
      expect(isWellFormedApiKey(key.slice(0, position) + char + key.slice(position + 1))).toBe(false)
    }
  }
})

test.each([
  ['one key', `limit is "${wellFormed[2]}"`, 'limit is "pets_abcd…"'],
  ['two keys', `${wellFormed[2]} and ${wellFormed[2]}`, 'pets_abcd… and pets_abcd…'],
  ['the first part of a key', 'pets_abcdefghijkl', 'pets_abcd…'],
  ['a name that is no key', 'pets_frontend_20300131', 'pets_frontend_20300131'],
  ['too little of a key to be secret', 'pets_abcdefghijk', 'pets_abcdefghijk'],
])('a key in a message is masked: %s', (_what, message, shown) => {
  expect(maskKeys(message)).toBe(shown)
})

function maskingMicroseconds(part: string): number {
  const text = part.repeat(50_000 / part.length)
  const before = process.cpuUsage()
  expect(maskKeys(text, zeros)).toBe(text)
  return process.cpuUsage(before).user
}

// In quadratic time it would take thousands of times as long.
test.each(['pets_', 'pets_abcd', 'pets_abcdefghijk/', 'a', '%2d'])(
  'a long text of %j is masked as fast as spaces',
  part => {
    expect(maskingMicroseconds(part)).toBeLessThan(100 * Math.max(1_000, maskingMicroseconds(' ')))
  },
)

test('the record of a key has its SHA-256 in hexadecimal and its first nine characters, but not the key itself', () => {
  expect(hashSecret(zeros)).toBe('a34b78330970b24b57387d54f92bb35fae1c4d0f86b68f5bc5cdd2c4f91b78d9')
  const createdAt = new Date('2026-01-01')
  const given = { name: 'till', permission: 'read-only', createdAt, expiresAt: new Date('2027-01-01') } as const
  const { key, record } = issueApiKey(given)
  expect(isWellFormedApiKey(key)).toBe(true)
  expect(record).toStrictEqual({ ...given, hash: hashSecret(key), shown: key.slice(0, 9) })
})

const now = new Date('2026-06-01T12:00:00Z')
const before = new Date(now.getTime() - 1)
const after = new Date(now.getTime() + 1)
const { record } = issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date('2026-01-01') })
const key: ApiKey = { ...record, id: 1n, deprecatedUses: 0n }

test.each<[string, Partial<ApiKey>, ReturnType<typeof whyInvalid>]>([
  ['without an expiry is accepted', {}, undefined],
  ['that expires later is accepted', { expiresAt: after }, undefined],
  ['that expires at this moment is refused', { expiresAt: now }, 'expired'],
  ['that was revoked and has expired is reported as revoked', { revokedAt: before, expiresAt: before }, 'revoked'],
  // Another instance's clock may be ahead: a revocation is valid at once.
  ['that was revoked in the future is refused', { revokedAt: after }, 'revoked'],
])('a stored key %s', (_what, part, refusal) => {
  expect(whyInvalid({ ...key, ...part }, now)).toBe(refusal)
})
