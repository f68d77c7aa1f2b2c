import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { integerOf, parseJson } from './json.ts'

function idIn(text: string): unknown {
  return integerOf((parseJson(text) as { id: unknown }).id)
}

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const anyText = fc.string({ unit: 'binary' })
/** Texts that look like what the parser is looking for. */
const baitText = fc
  .array(fc.constantFrom('id', '"', ':', ' ', '\\', ',', '}', ']', '[', '{', '-', '9007199254740993', '\n'))
  .map(parts => parts.join(''))

test('every 64-bit integer is read digit for digit, whatever stands around it', () => {
  fc.assert(
    fc.property(int64, int64, fc.oneof(anyText, baitText), fc.boolean(), (id, other, text, pretty) => {
      const gap = pretty ? '\n  ' : ''
      const name = JSON.stringify(text)
      const json = `[{${gap}"name":${gap}${name},${gap}"id":${gap}${id}${gap},"otherId":${other},"name2":${name}}]`
      const [parsed] = parseJson(json) as [Record<string, unknown>]
      expect(integerOf(parsed['id'])).toBe(id)
      expect(integerOf(parsed['otherId'])).toBe(other)
      expect([parsed['name'], parsed['name2']]).toEqual([text, text])
    }),
    { numRuns: 1_000 },
  )
})

test('strings and names of properties that look like integers stay what they are', () => {
  fc.assert(
    fc.property(fc.array(baitText), fc.dictionary(baitText, baitText), (texts, named) => {
      const value = { texts, named }
      expect(parseJson(JSON.stringify(value))).toEqual(value)
    }),
    { numRuns: 1_000 },
  )
})

describe('an integer', () => {
  test.each<[string, bigint]>([
    ['{"id":0}', 0n],
    ['{"id":-7}', -7n],
    ['{"id":7.0}', 7n],
    ['{"id":7e2}', 700n],
    ['{"id":9007199254740991}', 9007199254740991n],
    ['{"id":9007199254740993}', 9007199254740993n],
    ['{"id" : -9223372036854775808 }', -9223372036854775808n],
    ['{"id":\n9223372036854775807\n}', 9223372036854775807n],
    ['{"x\\"id":1,"id":9007199254740993}', 9007199254740993n],
  ])('is read from %s', (text, id) => {
    expect(idIn(text)).toBe(id)
  })

  test.each([
    '{"id":"7"}',
    '{"id":"9007199254740993"}',
    '{"id":["9007199254740993"]}',
    '{"id":1.5}',
    '{"id":9007199254740993.5}',
    '{"id":9.007199254740993e15}',
    '{"id":1e400}',
    '{"id":null}',
    '{"id":true}',
    '{"id":{}}',
    '{"id":[]}',
    '{}',
  ])('is not read from %s: it is none, or may have been rounded', text => {
    expect(idIn(text)).toBeUndefined()
  })
})

test.each(['{"id":00000000000000001}', '{"id":-}', '{id":9007199254740993}', '{"id":9007199254740993'])(
  '%s is refused like JSON.parse does',
  text => {
    expect(() => parseJson(text)).toThrow(SyntaxError)
  },
)
