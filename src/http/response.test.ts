import { expect, test } from 'bun:test'
import { json, problem, withHeaders } from './response.ts'

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

test('headers added to one response do not appear in another', () => {
  const shared = json(200, '[]')
  const closing = withHeaders(shared, { Connection: 'close', 'Cache-Control': 'no-cache' })
  expect(closing).toMatchObject({ status: 200, body: '[]' })
  expect([closing.headers.get('connection'), closing.headers.get('cache-control')]).toEqual(['close', 'no-cache'])
  expect([shared.headers.get('connection'), json(200, '{}').headers.get('connection')]).toEqual([null, null])
  expect(json(200, '{}').headers.get('cache-control')).toBe('no-store')
})
