import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { InexactNumber, isJsonObject, nestingMax, parseJson } from './int64.ts'

function nested(depth: number, open: string, inner: string, close: string): string {
  return open.repeat(depth) + inner + close.repeat(depth)
}

describe('numbers', () => {
  test.each<[string, number]>([
    ['0', 0],
    ['-12', -12],
    ['0.5', 0.5],
    ['1.0', 1],
    ['123456789012345', 123456789012345],
    ['-123456789012345', -123456789012345],
    ['1234567890123.5', 1234567890123.5],
  ])('%s, which a double holds, is a number', (text, value) => {
    expect(parseJson(text)).toEqual({ ok: true, value })
  })

  test.each([
    '9007199254740993',
    '-9007199254740993',
    '9007199254740993.0',
    '9223372036854775808',
    '123456789012345.000000000000001',
    '1.0000000000000000001',
    '1e3',
    '1E3',
    '1e400',
    '-1e-400',
  ])('%s keeps the text that was sent', text => {
    expect(parseJson(text)).toEqual({ ok: true, value: new InexactNumber(text) })
  })

  test('an inexact number is kept wherever it stands, and its neighbours are left alone', () => {
    const text = '{"a":[1,{"b":9007199254740993}],"c":1e3,"d":"9007199254740993","e":null}'
    const value = {
      a: [1, { b: new InexactNumber('9007199254740993') }],
      c: new InexactNumber('1e3'),
      d: '9007199254740993',
      e: null,
    }
    expect(parseJson(text)).toEqual({ ok: true, value })
  })

  test.each<[string, unknown]>([
    ['{"a":9007199254740993,"a":5}', 5],
    ['{"a":5,"a":9007199254740993}', new InexactNumber('9007199254740993')],
    ['{"a":9007199254740992,"a":9007199254740993}', new InexactNumber('9007199254740993')],
    ['{"a":[1e3],"a":"1e3"}', '1e3'],
  ])('of a property that is sent twice the last counts: %s', (text, a) => {
    expect(parseJson(text)).toEqual({ ok: true, value: { a } })
  })
})

describe('nesting', () => {
  test.each([
    ['arrays', '[', '', ']'],
    ['objects', '{"a":', '1', '}'],
    ['arrays with exact integers inside', '[', '9007199254740993', ']'],
  ])('%s may stand 64 deep, not 65', (_what, open, inner, close) => {
    expect(nestingMax).toBe(64)
    expect(parseJson(nested(64, open, inner, close)).ok).toBe(true)
    expect(parseJson(nested(65, open, inner, close))).toEqual({
      ok: false,
      problem: 'objects and arrays are nested more than 64 deep',
    })
  })

  test('objects and arrays count together', () => {
    expect(parseJson(nested(32, '[{"a":', '1', '}]')).ok).toBe(true)
    expect(parseJson(nested(33, '[{"a":', '1', '}]')).ok).toBe(false)
  })

  test('what stands side by side is not nested', () => {
    expect(parseJson(`[${'[],'.repeat(1_000)}{}]`).ok).toBe(true)
  })

  test.each([
    ['in a string', '['.repeat(100)],
    ['after an escaped quote', `"${'['.repeat(100)}`],
    ['after an escaped backslash and quote', `\\"${'{'.repeat(100)}`],
    ['in a string that ends in a backslash', `${'{'.repeat(100)}\\`],
  ])('brackets %s do not count', (_where, value) => {
    expect(parseJson(JSON.stringify([value]))).toEqual({ ok: true, value: [value] })
  })

  test('brackets after a string that ends in an escaped backslash do count', () => {
    expect(parseJson(`["\\\\",${nested(64, '[', '', ']')}]`).ok).toBe(false)
  })

  test('a text of nothing but opening brackets is refused, however long', () => {
    expect(parseJson('['.repeat(1_000_000)).ok).toBe(false)
  })
})

describe('names that mean something to JavaScript', () => {
  test.each(['{"__proto__":{"status":"sold"}}', '{"__proto__":{"status":"sold"},"a":1e3}'])(
    '%s is a property like any other',
    text => {
      const parsed = parseJson(text)
      const value = parsed.ok ? (parsed.value as object) : {}
      expect(Object.keys(value)).toContain('__proto__')
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
      expect('status' in value).toBe(false)
    },
  )
})

test.each([
  ['{}', true],
  ['{"source":"1"}', true],
  ['[]', false],
  ['null', false],
  ['"{}"', false],
  ['1', false],
  ['1e3', false],
  ['true', false],
])('%s is an object: %p', (text, expected) => {
  const parsed = parseJson(text)
  expect(parsed.ok && isJsonObject(parsed.value)).toBe(expected)
})

describe('what is not JSON', () => {
  test.each([
    '',
    ' ',
    '{',
    '[1,]',
    '{"a":1,}',
    "{'a':1}",
    '{a:1}',
    '01',
    '+1',
    '.5',
    '1.',
    '1e',
    '0x10',
    'NaN',
    'Infinity',
    'undefined',
    'True',
    '"a\nb"',
    '"\\x41"',
    '"a',
    '1 2',
    '// 1\n1',
    '[1]]',
    ']',
    '\ufeff1',
    '[1e3',
  ])('%j is refused with a reason', text => {
    const parsed = parseJson(text)
    expect(parsed.ok ? parsed.value : parsed.problem).toBeString()
    expect(parsed.ok ? '' : parsed.problem).not.toBe('')
    expect(parsed.ok ? '' : parsed.problem).not.toStartWith('JSON Parse error')
  })
})

test('whatever JSON.parse takes or refuses, so do we', () => {
  const text = fc.oneof(
    fc.json(),
    fc.string(),
    fc.json().map(json => json.slice(0, -1)),
  )
  fc.assert(
    fc.property(text, sent => {
      expect(parseJson(sent).ok).toBe(isJson(sent))
    }),
  )
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
