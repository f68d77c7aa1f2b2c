import { describe, expect, test } from 'bun:test'
import { json, problem, withHeaders } from './response.ts'

describe('an error response', () => {
  test('has the code, the message and the status', () => {
    const { status, body, headers } = problem('rate_limited', 'Too many requests', { 'Retry-After': '1' })
    expect([status, JSON.parse(String(body))]).toEqual([
      429,
      { code: 'rate_limited', message: 'Too many requests', status: 429 },
    ])
    expect(Object.fromEntries(headers)).toEqual({
      'cache-control': 'no-store',
      'content-type': 'application/json',
      'retry-after': '1',
      'x-content-type-options': 'nosniff',
    })
  })

  const key = 'pets_abcdefghijklmnopqrstuvwxyz01231KF4IA'
  test.each([
    ['one key', `limit is "${key}"`, 'limit is "pets_abcd…"'],
    ['two keys', `${key} and ${key}`, 'pets_abcd… and pets_abcd…'],
    ['the first part of a key', 'pets_abcdefghijkl', 'pets_abcd…'],
    ['too little of a key to be secret', 'pets_abcdefghijk', 'pets_abcdefghijk'],
  ])('masks %s', (_what, message, shown) => {
    expect(JSON.parse(String(problem('invalid_request', message).body)).message).toBe(shown)
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
