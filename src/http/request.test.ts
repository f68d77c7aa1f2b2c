import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { pageLimit } from '../page.ts'
import { type PetStatus, petStatus } from '../pet.ts'
import { parameters } from './operations.ts'
import { IncomingRequest, idempotencyKey, prefersStrict, Query, requestId, splitUrl } from './request.ts'

test.each([
  ['https://pets.example.com/v1/pets?limit=5&status=sold', '/v1/pets', 'limit=5&status=sold'],
  ['http://[::1]:8080/v1/pets', '/v1/pets', ''],
  ['http://a/?a=/v1/pets', '/', 'a=/v1/pets'],
  ['http://a/v1/pets??limit=5', '/v1/pets', '?limit=5'],
  ['http://a/v1/pets?limit=5#top', '/v1/pets', 'limit=5'],
  ['http://a/v1#a?b', '/v1', ''],
  ['http://a//b/v1', '//b/v1', ''],
  ['http://a/v1/../p%65ts%2F1?status=s%6Fld', '/v1/../p%65ts%2F1', 'status=s%6Fld'],
  ['/v1/pets?limit=5', '/v1/pets', 'limit=5'],
  ['/http://a/b', '/http://a/b', ''],
])('%s has the path %s and the query "%s"', (url, path, query) => {
  expect(splitUrl(url)).toEqual({ path, query })
})

describe('a request id', () => {
  const generated = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
  const key = 'a-key-from-outside-0123456789'

  test.each([
    ...['a', '7', '123e4567-e89b-42d3-a456-426614174000', 'Root=1-67891233-abcdef012345678912345678'],
    ...['trace/span:7@host~1.2_3+x==', 'x'.repeat(128)],
  ])('%s of the client is used', id => {
    expect(requestId(id, 'Bearer a7x', undefined)).toBe(id)
  })

  test.each([
    ...['', 'a b', ' a', 'a\n', 'a\r\nSet-Cookie: b=c', 'a\tb', 'a\u0000', '"a"', 'a,b', 'a;b', '<script>'],
    ...['$(id)', '%0a', 'é', '😀', '\u001b[31m', 'x'.repeat(129)],
  ])('%j is unsafe and is replaced', id => {
    expect(requestId(id, 'Bearer a7x', undefined)).toMatch(generated)
  })

  test('is generated for each request without one', () => {
    expect(requestId(null, null, undefined)).toMatch(generated)
    expect(requestId(null, null, undefined)).not.toBe(requestId(null, null, undefined))
  })

  const idOf = (sent: string, authorization: string, environmentKey: string | undefined) => {
    const headers = { 'x-request-id': sent, ...(authorization && { authorization }) }
    return new IncomingRequest(new Request('http://a/', { headers }), environmentKey).id
  }
  const slashed = 'first-part/second-part'

  test.each<[string, string, string, string | undefined]>([
    ['the sent key after several spaces', key, `Bearer   ${key}`, undefined],
    ['the sent key after a tab', key, `Bearer\t${key}`, undefined],
    ['a key that was sent without a scheme', key, key, undefined],
    ['12 characters of the sent key inside other text', `id=${key.slice(3, 15)}.`, `Bearer ${key}`, undefined],
    ['the last 12 characters of the sent key', `id=${key.slice(-12)}`, `Bearer ${key}`, undefined],
    ['a sent key with a slash between letters', `a${slashed}b`, `Bearer ${slashed}`, undefined],
    ['the end of the first 300 characters', 'y'.repeat(12), `Bearer ${'x'.repeat(288)}${'y'.repeat(90)}`, undefined],
    ['the environment key inside other text', `id=${key}.`, 'Bearer another', key],
    ['the start of a stored key', `id=pets_${'x'.repeat(12)}`, '', undefined],
  ])('never repeats %s', (_what, id, authorization, environmentKey) => {
    expect(idOf(id, authorization, environmentKey)).toMatch(generated)
  })

  test.each<[string, string, string, string | undefined]>([
    ['11 characters of the sent key', key.slice(3, 14), `Bearer ${key}`, undefined],
    ['a part of the environment key, which would confirm a guess', key.slice(1), 'Bearer another', key],
    ['the key of another request', key, 'Bearer another-key-altogether', undefined],
    ['11 characters of a stored key', `pets_${'x'.repeat(11)}`, '', undefined],
    ['what follows 300 characters of a token', 'y'.repeat(12), `Bearer ${'x'.repeat(289)}${'y'.repeat(90)}`, undefined],
  ])('may be %s', (_what, id, authorization, environmentKey) => {
    expect(idOf(id, authorization, environmentKey)).toBe(id)
  })
})

describe('a query', () => {
  /** Reads it as listPets does. */
  function read(text: string, { strict = false } = {}) {
    const query = new Query(text)
    if (strict) query.refuseUnknown([parameters.limit, parameters.status, parameters.prefer])
    const limit = query.read('limit', pageLimit)
    const status = query.read('status', petStatus)
    return { limit, status, problems: query.problems }
  }

  test.each<[string, PetStatus | undefined, number | undefined]>([
    ['', undefined, undefined],
    ['limit=5', undefined, 5],
    ['status=available&&limit=100&', 'available', 100],
    ['status=s%6Fld', 'sold', undefined],
    ['%6Cimit=7', undefined, 7],
  ])('"%s" is read', (text, status, limit) => {
    for (const strict of [false, true]) {
      expect(read(text, { strict })).toEqual({ limit, status, problems: [] })
    }
  })

  test.each([
    ['limit=', 'limit is "": expected an integer from 1 to 100'],
    ['limit=+5', 'limit is " 5": expected an integer from 1 to 100'],
    ['limit=5;status=sold', 'limit is "5;status=sold": expected an integer from 1 to 100'],
    ['status=sold%00', 'status is "sold\\u0000": expected available, pending or sold'],
    ['status=sold&limit=5&status=sold&status=lost', 'status occurs 3 times: expected once'],
  ])('"%s" has one problem: %s', (text, problem) => {
    expect(read(text).problems).toEqual([problem])
  })

  test('has all its problems reported together, each once', () => {
    expect(read('page=2&limit=0&page=3&offset=1', { strict: true }).problems).toEqual([
      'unknown parameter "page": expected limit or status',
      'unknown parameter "offset": expected limit or status',
      'limit is "0": expected an integer from 1 to 100',
    ])
  })
})

describe('a Prefer header', () => {
  test.each([
    ...['handling=strict', 'HANDLING=strict', 'handling=Strict', 'handling="strict"', 'handling="STRICT"'],
    ...[' handling = strict ', 'handling=strict; reason=test', 'respond-async,handling=strict,wait=10'],
    ...['wait=10,,handling=strict', 'note="a, handling=lenient", handling=strict', 'handling  =  strict'],
    ...['return=minimal; handling=lenient, handling=strict', 'handling=strict, handling=lenient'],
    ...['a="\\"", handling=strict', `handling=strict${' '.repeat(1_009)}`],
  ])('%j asks for strict handling', header => {
    expect(prefersStrict(header)).toBe(true)
  })

  test.each([
    ...[null, '', ' ', ',', '=', 'strict', 'handling', 'handling=', 'handling=""', 'handling=lenient'],
    ...['handling=stricter', 'handling=strict lenient', 'handling="strict', "handling='strict'"],
    ...['handling="xstrict"', 'handling="a\\"strict"', 'handling="strictx"', 'handling, handling=strict'],
    ...['handling=lenient, handling=strict', 'xhandling=strict', 'handling-x=strict'],
    ...['return=minimal; handling=strict', 'note="handling=strict"', 'note="a, handling=strict"'],
    ...[`handling=strict${' '.repeat(1_010)}`],
  ])('%j does not ask for strict handling', header => {
    expect(prefersStrict(header)).toBe(false)
  })
})

describe('an Idempotency-Key header', () => {
  const long = 'k'.repeat(255)

  test.each([
    ['"a1"', 'a1'],
    ['a"1"', 'a"1"'],
    ['"a\\"1\\\\"', 'a"1\\'],
    [long, long],
    [`"${long}"`, long],
    [`"${'\\"'.repeat(127)}a"`, `${'"'.repeat(127)}a`],
  ])('%j is the key %j', (header, key) => {
    expect(idempotencyKey.read(header)).toBe(key)
  })

  test.each([
    ...['', '"', '""', '"a', 'a b', 'a\t', 'é', '"é"', '"a"b"', '"a\\b"', '"a\\"'],
    ...[`${long}k`, `"${long}k"`, `"${'\\"'.repeat(128)}"`],
  ])('%j is refused', header => {
    expect(idempotencyKey.read(header)).toBeUndefined()
  })

  test('is valid exactly if it matches the published schema', () => {
    const { type, minLength, maxLength, pattern } = idempotencyKey.schema
    expect({ type, minLength, maxLength }).toEqual({ type: 'string', minLength: 1, maxLength: 257 })
    const unit = fc.constantFrom('"', '\\', 'a', '9', '!', '~', ' ', 'é')
    const texts = fc.oneof(
      fc.string({ unit, maxLength: 8 }),
      fc.string({ unit, maxLength: 4 }).map(text => `"${text}"`),
      fc.integer({ min: 250, max: 300 }).map(length => 'k'.repeat(length)),
      fc.integer({ min: 250, max: 300 }).map(length => `"${'k'.repeat(length)}"`),
      fc.integer({ min: 120, max: 300 }).map(length => `"${'\\"'.repeat(length)}"`),
    )
    fc.assert(
      fc.property(texts, text => {
        const published = text.length <= Number(maxLength) && new RegExp(String(pattern), 'u').test(text)
        expect(idempotencyKey.read(text) !== undefined).toBe(published)
      }),
      { numRuns: 1_000 },
    )
  })
})
