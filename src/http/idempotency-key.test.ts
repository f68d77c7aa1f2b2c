import { expect, test } from 'bun:test'
import { idempotencyKey } from './idempotency-key.ts'

const long = 'k'.repeat(255)

test.each([
  ['a1', 'a1'],
  ['"a1"', 'a1'],
  ['a"1', 'a"1'],
  ['\\', '\\'],
  ['"a\\"1\\\\"', 'a"1\\'],
  [long, long],
  [`"${long}"`, long],
  [`"${'\\"'.repeat(255)}"`, '"'.repeat(255)],
])('%j is the key %j', (header, key) => {
  expect(idempotencyKey.read(header)).toBe(key)
  expect(header.length).toBeLessThanOrEqual(Number(idempotencyKey.schema['maxLength']))
})

test.each([
  '',
  '"',
  '""',
  '"a',
  'a b',
  'a\t',
  'é',
  '"é"',
  '"a"b"',
  '"a\\b"',
  '"a\\"',
  `${long}k`,
  `"${long}k"`,
  7,
])('%j is no key', header => {
  expect(idempotencyKey.read(header)).toBeUndefined()
})
