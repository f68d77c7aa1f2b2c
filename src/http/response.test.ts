import { expect, test } from 'bun:test'
import { problem } from './response.ts'

test('an error response has the code, the message without keys, and the status', () => {
  const message = 'Too many requests of pets_abcdefghijklmnopqrstuvwxyz01231KF4IA'
  const { status, body, headers } = problem('rate_limited', message, { 'Retry-After': '1' })
  const expected = { code: 'rate_limited', message: 'Too many requests of pets_abcd…', status: 429 }
  expect([status, JSON.parse(String(body))]).toEqual([429, expected])
  expect(Object.fromEntries(headers)).toEqual({
    'cache-control': 'no-store',
    'content-type': 'application/json',
    'retry-after': '1',
    'x-content-type-options': 'nosniff',
  })
})
