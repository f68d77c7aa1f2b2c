import { expect, test } from 'bun:test'
import { type ApiKey, issueApiKey } from '../api-key.ts'
import { SetupError } from '../errors.ts'
import { findKey, readExpiry } from './keys.ts'

const now = new Date('2026-06-15T12:00:00.000Z')

test.each([
  ['1m', '2026-06-15T12:01:00.000Z'],
  ['12h', '2026-06-16T00:00:00.000Z'],
  ['90d', '2026-09-13T12:00:00.000Z'],
  ['1y', '2027-06-15T12:00:00.000Z'],
  ['99999y', '+101959-01-23T12:00:00.000Z'],
  ['2026-06-16', '2026-06-16T00:00:00.000Z'],
  ['2026-06-15T12:00:01Z', '2026-06-15T12:00:01.000Z'],
])('a key with the expiry %s expires at %s', (text, end) => {
  expect(readExpiry(text, now)?.toISOString()).toBe(end)
})

test.each([
  ...['', 'never', '90', 'd', '0d', '-1d', '1.5d', '100000d', ' 1d', '1d\n', '1D', '1s', '1d12h'],
  ...['2030-01', '2030-1-31', '2030-02-29', '2030/01/31', '2030-01-31T24:00Z', '2030-01-31T12:00+02:00'],
  // Without a time zone it would mean another moment on every machine.
  '2030-01-31T12:00',
  // Not in the future.
  ...['2026-06-14', '2026-06-15', '2026-06-15T11:59:59Z', '2026-06-15T12:00Z'],
])('an expiry of %j is refused', text => {
  expect(readExpiry(text, now)).toBeUndefined()
})

const issue = (name: string, id: bigint, revokedAt?: Date) => {
  const { key, record } = issueApiKey({ name, permission: 'read-write', createdAt: now })
  const stored: ApiKey = { ...record, id, deprecatedUses: 0n, ...(revokedAt && { revokedAt }) }
  return { key, stored }
}
const [till, old, twin, other] = [issue('till', 1n), issue('till', 2n, now), issue('twin', 3n), issue('twin', 4n)]
const keys = [till, old, twin, other].map(({ stored }) => stored)
const find = (given: string) => findKey(given, keys, 'petstore')

test('a key to revoke is found by its name, its first characters or the whole key', () => {
  for (const given of ['till', till.stored.shown, till.key]) expect(find(given)).toBe(till.stored)
  expect(find(other.key)).toBe(other.stored)
})

test.each([
  ['nobody', 'No valid key is called "nobody": petstore keys list shows all keys'],
  [old.key, `No valid key is called "${old.stored.shown}…": petstore keys list shows all keys`],
  ['twin', `2 keys are called "twin": use the first characters, ${twin.stored.shown} or ${other.stored.shown}`],
])('a key to revoke %s is refused, and no whole key is shown', (given, problem) => {
  expect(() => find(given)).toThrow(new SetupError(problem))
})
