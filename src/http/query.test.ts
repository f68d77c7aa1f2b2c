import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { pageLimit } from '../page.ts'
import { type PetStatus, petStatus } from '../pet.ts'
import { parameters } from './operations.ts'
import { idempotencyKey, prefersStrict, Query } from './query.ts'

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
])('the query "%s" is read', (text, status, limit) => {
  for (const strict of [false, true]) expect(read(text, { strict })).toEqual({ limit, status, problems: [] })
})

test.each([
  ['limit=', 'limit is ""'],
  ['limit=+5', 'limit is " 5"'],
  ['status=sold%00', 'status is "sold\\u0000"'],
  ['status=sold&limit=5&status=sold&status=lost', 'status occurs 3 times: expected once'],
])('the query "%s" has one problem: %s', (text, problem) => {
  expect(read(text).problems).toEqual([expect.stringContaining(problem)])
})

test('the query is split as URLSearchParams does it', () => {
  const unit = fc.constantFrom('a', 'b', '=', '&', '%41', '%', '+', '?', ';', '\u00e9')
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 12 }), text => {
      const expected = new URLSearchParams(text)
      for (const name of [...expected.keys(), 'a', 'b', 'ab', '']) {
        const query = new Query(text)
        const values = expected.getAll(name)
        expect(query.readText(name)).toBe(values.length > 1 ? undefined : values[0])
        expect(query.problems).toHaveLength(values.length > 1 ? 1 : 0)
      }
    }),
    { numRuns: 5_000 },
  )
})

test('the query has all its problems reported together, each once', () => {
  const problems = ['"page": expected limit or status', '"offset"', 'limit is "0"']
  const { problems: found } = read('page=2&limit=0&page=3&offset=1', { strict: true })
  expect(found).toEqual(problems.map(problem => expect.stringContaining(problem)))
})

test.each([
  ...['handling=strict', 'HANDLING=Strict', 'handling="STRICT"', 'handling  =  strict; reason=test'],
  ...['wait=10,,handling=strict', 'note="a, handling=lenient", handling=strict', 'a="\\"", handling=strict'],
  ...['return=minimal; handling=lenient, handling=strict', 'handling=strict, handling=lenient'],
  ...[`handling=strict${' '.repeat(1_009)}`],
])('the Prefer header %j asks for strict handling', header => {
  expect(prefersStrict(header)).toBe(true)
})

test.each([
  ...[null, '', ',', 'strict', 'handling', 'handling=""', 'handling=lenient', 'handling=stricter'],
  ...['handling=strict lenient', 'handling="strict', 'handling="a\\"strict"', 'xhandling=strict'],
  ...['handling=lenient, handling=strict', 'return=minimal; handling=strict', 'note="a, handling=strict"'],
  ...[`handling=strict${' '.repeat(1_010)}`],
])('the Prefer header %j does not ask for strict handling', header => {
  expect(prefersStrict(header)).toBe(false)
})

const long = 'k'.repeat(255)

test.each([
  ['"a1"', 'a1'],
  ['a"1"', 'a"1"'],
  ['"a\\"1\\\\"', 'a"1\\'],
  [`"${long}"`, long],
])('the Idempotency-Key header %j is the key %j', (header, key) => {
  expect(idempotencyKey.read(header)).toBe(key)
})

const refused = ['', '"', '""', '"a', 'a b', 'é', '"a"b"', '"a\\b"', '"a\\"', `${long}k`, `"${long}k"`]
test.each(refused)('the Idempotency-Key header %j is refused', header => {
  expect(idempotencyKey.read(header)).toBeUndefined()
})

test('the Idempotency-Key header is valid exactly if it matches the published schema', () => {
  const { maxLength, pattern } = idempotencyKey.schema
  // Generated clients in Go and Rust have no lookaround.
  expect(pattern).not.toMatch(/\(\?[^:]/)
  const unit = fc.constantFrom('"', '\\', 'a', '9', '!', '~', ' ', 'é')
  const lengths = fc.integer({ min: 120, max: 300 })
  const texts = fc.oneof(
    fc.string({ unit, maxLength: 8 }),
    fc.string({ unit, maxLength: 4 }).map(text => `"${text}"`),
    fc.tuple(fc.constantFrom('k', '\\"'), lengths).map(([char, length]) => `"${char.repeat(length)}"`),
  )
  fc.assert(
    fc.property(texts, text => {
      const published = text.length <= Number(maxLength) && new RegExp(String(pattern), 'u').test(text)
      expect(idempotencyKey.read(text) !== undefined).toBe(published)
    }),
    { numRuns: 1_000 },
  )
})
