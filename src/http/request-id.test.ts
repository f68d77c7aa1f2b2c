import { describe, expect, test } from 'bun:test'
import { requestIdOf } from './request-id.ts'

const ours = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe("the client's own request id is kept", () => {
  test.each([
    'a',
    '7',
    '123e4567-e89b-42d3-a456-426614174000',
    'Root=1-67891233-abcdef012345678912345678',
    'trace/span:7@host~1.2_3+x==',
    'x'.repeat(128),
  ])('%s', id => {
    expect(requestIdOf(id, 'Bearer a7x')).toBe(id)
  })
})

describe('a request id that is not safe to repeat is replaced', () => {
  test.each([
    '',
    ' ',
    'a b',
    ' a',
    'a\n',
    'a\r\nSet-Cookie: b=c',
    'a\tb',
    'a\u0000',
    '"a"',
    'a,b',
    'a;b',
    '<script>',
    '$(id)',
    '%0a',
    'é',
    '😀',
    '\u001b[31m',
    'x'.repeat(129),
  ])('%j', id => {
    expect(requestIdOf(id, 'Bearer a7x')).toMatch(ours)
  })
})

test('without one, every request gets its own', () => {
  expect(requestIdOf(null, null)).toMatch(ours)
  expect(requestIdOf(null, null)).not.toBe(requestIdOf(null, null))
})

test('a key that was sent as a request id is not repeated', () => {
  const key = 'a-key-from-outside-0123456789'
  expect(requestIdOf(key, `Bearer ${key}`)).toMatch(ours)
  expect(requestIdOf(key, 'Bearer another-key-altogether')).toBe(key)
  expect(requestIdOf(`pets_${'x'.repeat(36)}`, null)).toMatch(ours)
})

test.each([
  ['the key from the environment', 'a-key-from-outside-0123456789'],
  ['it inside of something else', 'id=a-key-from-outside-0123456789.'],
  ['a long part of it', 'key-from-outside-01'],
])('%s is not repeated, with or without a credential', (_, id) => {
  const environmentKey = 'a-key-from-outside-0123456789'
  expect(requestIdOf(id, null, environmentKey)).toMatch(ours)
  expect(requestIdOf(id, 'Bearer another-key-altogether', environmentKey)).toMatch(ours)
  expect(requestIdOf(`of-${id}`, `Bearer ${id}`)).toMatch(ours)
})

test('a short part of a key is an id like any other', () => {
  expect(requestIdOf('outside', null, 'a-key-from-outside-0123456789')).toBe('outside')
})
