import { expect, test } from 'bun:test'
import { errorReply, Refusal } from './response.ts'

test('an error response has the code, the message and the status', () => {
  const { status, body } = errorReply('rate_limited', 'Too many')
  expect([status, JSON.parse(String(body))]).toEqual([429, { code: 'rate_limited', message: 'Too many', status: 429 }])
})

test('a refusal without a message has the meaning of its code, and the action', () => {
  const message = 'The body is not valid JSON in UTF-8. Correct the body'
  expect(new Refusal('invalid_json').message).toBe(message)
})
