import { describe, expect, test } from 'bun:test'
import {
  type ApiKey,
  generateApiKey,
  hashApiKey,
  issueApiKey,
  isWellFormedApiKey,
  refusalOf,
  shownPart,
} from './api-key.ts'

// Computed outside this program: keys that were issued must stay keys.
const wellFormed = [
  'pets_0000000000000000000000000000003Vt3vM',
  'pets_Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz9Zz94bh7mq',
  'pets_abcdefghijklmnopqrstuvwxyz01231KF4IA',
] as const
const [zeros] = wellFormed

describe('the form of a key', () => {
  test.each(wellFormed)('%s is one of ours', key => {
    expect(isWellFormedApiKey(key)).toBe(true)
  })

  test('a generated key is pets_ and 36 letters or digits, and well formed', () => {
    for (let i = 0; i < 200; i++) {
      const key = generateApiKey()
      expect(key).toMatch(/^pets_[0-9A-Za-z]{36}$/)
      expect(isWellFormedApiKey(key)).toBe(true)
    }
  })

  test('no two generated keys are alike', () => {
    expect(new Set(Array.from({ length: 1_000 }, generateApiKey)).size).toBe(1_000)
  })

  test.each([
    ['nothing', ''],
    ['the prefix alone', 'pets_'],
    ['a key without its prefix', zeros.slice(5)],
    ['a key without its checksum', zeros.slice(0, -6)],
    ['the prefix in capitals', zeros.replace('pets', 'PETS')],
    ['another prefix', zeros.replace('pets_', 'cats_')],
    ['a key with its last character missing', zeros.slice(0, -1)],
    ['a key with one character more', `${zeros}0`],
    ['a key with one zero more inside', zeros.replace('pets_', 'pets_0')],
    ['white space before', ` ${zeros}`],
    ['white space after', `${zeros} `],
    ['a line end after', `${zeros}\n`],
    ['two keys', zeros + zeros],
    ['a checksum of zeros', `pets_${'0'.repeat(36)}`],
    ['another prefix under a right checksum', 'cats_0000000000000000000000000000004HQw2U'],
    ['a hyphen under a right checksum', 'pets_00000000000000000000000000000-42mzrd'],
    ['29 characters under a right checksum', 'pets_0000000000000000000000000000011cX7l'],
    ['letters from elsewhere', zeros.replace('0', '０')],
    ['a long text', 'pets_'.repeat(10_000)],
  ])('%s is refused', (_what, key) => {
    expect(isWellFormedApiKey(key)).toBe(false)
  })
})

describe('a mistyped key', () => {
  test.each(wellFormed)('%s with any one character changed is refused', key => {
    for (let position = 0; position < key.length; position++) {
      for (let code = 0x20; code < 0x7f; code++) {
        const char = String.fromCharCode(code)
        if (char === key[position]) continue
        expect(isWellFormedApiKey(key.slice(0, position) + char + key.slice(position + 1))).toBe(false)
      }
    }
  })

  test.each(wellFormed)('%s with two neighbours swapped is refused', key => {
    for (let position = 0; position + 1 < key.length; position++) {
      const [first, second] = key.slice(position, position + 2)
      const swapped = `${key.slice(0, position)}${second}${first}${key.slice(position + 2)}`
      expect(isWellFormedApiKey(swapped)).toBe(first === second)
    }
  })
})

describe('what is kept of a key', () => {
  test('its SHA-256, in hexadecimal', () => {
    expect(hashApiKey(zeros)).toBe('a34b78330970b24b57387d54f92bb35fae1c4d0f86b68f5bc5cdd2c4f91b78d9')
  })

  test('its prefix and four characters are shown, never more', () => {
    expect(shownPart('pets_abcdefghijklmnopqrstuvwxyz01231KF4IA')).toBe('pets_abcd')
    expect(shownPart('pets_ab')).toBe('pets_ab')
  })

  test('an issued key is kept by its hash and its shown part, without the key itself', () => {
    const createdAt = new Date('2026-01-01')
    const expiresAt = new Date('2027-01-01')
    const { key, record } = issueApiKey({ name: 'till', permission: 'read-only', createdAt, expiresAt })
    expect(isWellFormedApiKey(key)).toBe(true)
    expect(record).toStrictEqual({
      name: 'till',
      permission: 'read-only',
      createdAt,
      expiresAt,
      hash: hashApiKey(key),
      shown: key.slice(0, 9),
    })
    expect(JSON.stringify(record)).not.toContain(key.slice(9))
  })
})

describe('a key that the store knows', () => {
  const now = new Date('2026-06-01T12:00:00Z')
  const before = new Date(now.getTime() - 1)
  const after = new Date(now.getTime() + 1)
  const key: ApiKey = {
    id: 1n,
    name: 'till',
    hash: hashApiKey(zeros),
    shown: shownPart(zeros),
    permission: 'read-write',
    createdAt: new Date('2026-01-01'),
    deprecatedUses: 0n,
  }

  test.each<[string, Partial<ApiKey>, ReturnType<typeof refusalOf>]>([
    ['without an end is accepted', {}, undefined],
    ['that ends later is accepted', { expiresAt: after }, undefined],
    ['that ends this very moment has expired', { expiresAt: now }, 'expired'],
    ['that ended before has expired', { expiresAt: before }, 'expired'],
    ['that was revoked stays revoked', { revokedAt: before }, 'revoked'],
    [
      'that was revoked and has expired is called revoked',
      { revokedAt: before, expiresAt: before },
      'revoked',
    ],
    ['that was revoked before its end is revoked', { revokedAt: before, expiresAt: after }, 'revoked'],
    // Another instance's clock may be ahead: a revocation holds at once.
    ['that was revoked in the future is revoked', { revokedAt: after }, 'revoked'],
  ])('one %s', (_what, part, why) => {
    expect(refusalOf({ ...key, ...part }, now)).toBe(why)
  })
})
