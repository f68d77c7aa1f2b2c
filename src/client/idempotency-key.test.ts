import { expect, test } from 'bun:test'
import { newIdempotencyKey, readIdempotencyKey, uuidOf } from './idempotency-key.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('each key is a UUID of its own', () => {
  const keys = Array.from({ length: 1_000 }, newIdempotencyKey)
  expect(new Set(keys).size).toBe(keys.length)
  for (const key of keys) expect(key).toMatch(uuid)
})

test('where a page may not use randomUUID, random bytes make one', () => {
  expect(uuidOf(new Uint8Array(16))).toBe('00000000-0000-4000-8000-000000000000')
  expect(uuidOf(new Uint8Array(16).fill(255))).toBe('ffffffff-ffff-4fff-bfff-ffffffffffff')
  expect(uuidOf(crypto.getRandomValues(new Uint8Array(16)))).toMatch(uuid)
})

test.each(['a', 'order-4711', '"quoted"', '~'.repeat(255)])('%p may be used', key => {
  expect(readIdempotencyKey(key)).toBe(key)
})

test.each(['', ' ', 'a b', 'ä', 'a\r\nx: y', '~'.repeat(256)])('%p may not', key => {
  expect(() => readIdempotencyKey(key)).toThrow(TypeError)
})
