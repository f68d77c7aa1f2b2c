import { expect, test } from 'bun:test'
import { errorReply } from './response.ts'

test('an error response has the code, the message without keys, and the status', () => {
  const { status, body } = errorReply('rate_limited', 'Too many requests of pets_abcdefghijklmnopqrstuvwxyz01231KF4IA')
  const expected = { code: 'rate_limited', message: 'Too many requests of pets_abcd…', status: 429 }
  expect([status, JSON.parse(String(body))]).toEqual([429, expected])
})
