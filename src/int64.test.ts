import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { InexactNumber, int64Max, int64Min, int64Of, parseInt64 } from './int64.ts'
import { nestingMax, parseJson } from './json.ts'

const anyInt64 = fc.bigInt({ min: int64Min, max: int64Max })

describe('an integer in JSON', () => {
  /** Reads it as a body is read, so that the digits that were sent are checked. */
  function readInt64(text: string): bigint | undefined {
    const parsed = parseJson(text)
    if (!parsed.ok) throw new Error(`${text} is not JSON: ${parsed.problem}`)
    return int64Of(parsed.value)
  }

  test.each<[bigint, string[]]>([
    [0n, ['0', '-0', '-0.0', '0e1000000000', '0.000000000000000000000']],
    [1n, ['1', '1.0', '10e-1', '0.001e3', '0.00000000000000000001e20']],
    [12n, ['1200e-2', '1.2e1']],
    [1000n, ['1e3', '1E+3']],
    [-1000n, ['-1e3']],
    [9007199254740991n, ['9007199254740991']],
    [9007199254740993n, ['9007199254740993', '9007199254740993.0', '9.007199254740993e15']],
    [-9007199254740993n, ['-9007199254740993']],
    [int64Max, ['9223372036854775807', '9223372036854775807.000', '9.223372036854775807e18']],
    [int64Min, ['-9223372036854775808']],
    [10n ** 18n, ['1e18', '1000000000000000000000e-3']],
  ])('%p is read exactly in each spelling: %j', (value, spellings) => {
    for (const text of spellings) expect([text, readInt64(text)]).toEqual([text, value])
  })

  test.each([
    ...['9223372036854775808', '-9223372036854775809', '9.223372036854775808e18', '18446744073709551616'],
    ...['99999999999999999999999999999999', '1e19', '1e400', '-1e400', '1e1000000000'],
    ...['1.5', '-0.1', '15e-1', '1e-400', '1e-1000000000', '1.0000000000000000001', '0.9999999999999999999'],
    ...['123456789012345.000000000000001', '9007199254740993.1', '9223372036854775807.5'],
    ...['"1"', '""', 'true', 'null', '[1]', '{}', '{"source":"1"}'],
  ])('%s is refused', text => {
    expect(readInt64(text)).toBeUndefined()
  })

  test.each([
    ['an exponent above every double', new InexactNumber(`1e${'9'.repeat(400)}`)],
    ['an exponent below every double', new InexactNumber(`1e-${'9'.repeat(400)}`)],
    ['text before the number', new InexactNumber('x1')],
    ['text after the number', new InexactNumber('1x')],
    ['NaN', Number.NaN],
    ['a double beyond 2^53', 2 ** 53],
    ['a bigint above the range', int64Max + 1n],
    ['a bigint below the range', int64Min - 1n],
  ])('%s is refused', (_what, value) => {
    expect(int64Of(value)).toBeUndefined()
  })

  test('every int64 is read exactly in each of its spellings', () => {
    fc.assert(
      fc.property(anyInt64, fc.nat(30), (value, zeros) => {
        expect(readInt64(`${value}`)).toBe(value)
        expect(readInt64(`${value}.0${'0'.repeat(zeros)}`)).toBe(value)
        expect(readInt64(`${value * 10n ** BigInt(zeros)}e-${zeros}`)).toBe(value)
        expect(int64Of(value)).toBe(value)
      }),
      { examples: [int64Min, int64Max].map(value => [value, 0]) },
    )
  })

  test('no integer outside the range is read', () => {
    const outside = fc.oneof(fc.bigInt({ min: int64Max + 1n }), fc.bigInt({ max: int64Min - 1n }))
    fc.assert(fc.property(outside, value => expect(readInt64(`${value}`)).toBeUndefined()))
  })
})

describe('an integer in a path', () => {
  test('every int64 is read as it is written', () => {
    fc.assert(fc.property(anyInt64, value => expect(parseInt64(String(value))).toBe(value)))
    for (const value of [0n, -1n, int64Min, int64Max]) expect(parseInt64(String(value))).toBe(value)
  })

  test.each([
    ...['', '-', '-0', '+1', '01', '-01', '1.0', '1e3', '0x10', '1_000', ' 1', '1 ', '1\n', '１', 'abc', 'x0'],
    ...['9223372036854775808', '-9223372036854775809', '10000000000000000000', '9'.repeat(100)],
  ])('%j is refused: it is not the one spelling of an int64', text => {
    expect(parseInt64(text)).toBeUndefined()
  })
})

describe('a number in JSON', () => {
  test('stays exact at every depth, without a change to the values around it', () => {
    const text = '{"a":[1,{"b":9007199254740993}],"c":1e3,"d":"9007199254740993","e":null,"f":1.5}'
    const value = {
      a: [1, { b: new InexactNumber('9007199254740993') }],
      c: new InexactNumber('1e3'),
      d: '9007199254740993',
      e: null,
      f: 1.5,
    }
    expect(parseJson(text)).toEqual({ ok: true, value })
  })

  test.each<[string, unknown]>([
    ['{"a":9007199254740993,"a":5}', 5],
    ['{"a":5,"a":9007199254740993}', new InexactNumber('9007199254740993')],
    ['{"a":9007199254740992,"a":9007199254740993}', new InexactNumber('9007199254740993')],
    ['{"a":[1e3],"a":"1e3"}', '1e3'],
  ])('the last of two properties with the same name counts: %s', (text, a) => {
    expect(parseJson(text)).toEqual({ ok: true, value: { a } })
  })
})

describe('nesting', () => {
  const nested = (depth: number, open: string, inner: string, close: string) =>
    open.repeat(depth) + inner + close.repeat(depth)

  test.each([
    ['arrays', 64, '[', '', ']'],
    ['objects', 64, '{"a":', '1', '}'],
    ['arrays with exact integers inside', 64, '[', '9007199254740993', ']'],
    ['objects in arrays', 32, '[{"a":', '1', '}]'],
  ])('%s may be 64 levels deep, not deeper', (_what, depth, open, inner, close) => {
    expect(nestingMax).toBe(64)
    expect(parseJson(nested(depth, open, inner, close)).ok).toBe(true)
    const problem = 'objects and arrays are nested more than 64 levels deep'
    expect(parseJson(nested(depth + 1, open, inner, close))).toEqual({ ok: false, problem })
  })

  test.each([
    ['brackets in a string do not count', JSON.stringify('['.repeat(100)), true],
    ['nor after an escaped quote', JSON.stringify(`"${'['.repeat(100)}`), true],
    ['nor after an escaped backslash and quote', JSON.stringify(`\\"${'{'.repeat(100)}`), true],
    ['nor side by side', `[${'[],{},'.repeat(1_000)}{}]`, true],
    ['brackets count after a string that ends in a backslash', `["\\\\",${nested(64, '[', '', ']')}]`, false],
    ['a million opening brackets are refused', '['.repeat(1_000_000), false],
  ])('%s', (_what, text, ok) => {
    expect(parseJson(text).ok).toBe(ok)
  })
})

describe('JSON', () => {
  test.each(['{"__proto__":{"status":"sold"}}', '{"__proto__":{"status":"sold"},"a":1e3}'])(
    '__proto__ is a property like any other in %s',
    text => {
      const parsed = parseJson(text)
      const value = parsed.ok ? (parsed.value as object) : {}
      expect(Object.keys(value)).toContain('__proto__')
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
      expect('status' in value).toBe(false)
    },
  )

  test.each<[string, string, number, number]>([
    ['a trailing comma on another line', '{\r\n  "a": [1,\r2,\n]}', 4, 1],
    ['a key without quotes', '{"a":1, b:2}', 1, 9],
    ['a missing brace, before blank lines', '{"a":{}\n \n', 1, 8],
    ['two commas', '[1,,2]', 1, 4],
    ['a brace too many, and a no-break space', '{"a":"b"}}\u00a0', 1, 10],
    ['a string without an end, after characters of two code units', '{"😀é":"x\ny"}', 1, 7],
    ['a short escape', '["a", "\\u12"]', 1, 7],
    ['a word of another language', '{"a":None}', 1, 6],
    ['a leading zero', '{"a":[], "b":01}', 1, 15],
    ['nothing but white space', ' \n ', 1, 1],
  ])('the position of %s is known', (_, text, line, column) => {
    expect(parseJson(text)).toEqual({ ok: false, problem: expect.any(String), at: { line, column } })
  })

  test('the position is behind everything that is JSON', () => {
    const valid = '[1E5,2e-5,-3.25e+3,0,"\\u00e9\\u00E9x\\n\\"yz",true,null'
    const json = fc.json({ depthSize: 'medium' }).map(text => `[${text}`)
    fc.assert(
      fc.property(json, text => {
        expect(parseJson(`${text} ?`)).toMatchObject({ at: { line: 1, column: [...text].length + 2 } })
      }),
      { examples: [[valid]] },
    )
  })

  test('the reason has whole characters, and says if text follows the value', () => {
    expect(parseJson('{😀')).toMatchObject({ problem: "Unrecognized token '\ufffd'" })
    expect(parseJson('{"a":1}}')).toMatchObject({ problem: 'Unexpected text after the value' })
  })

  test('is accepted as by JSON.parse, and otherwise refused with a reason', () => {
    const refused = [
      ...['', ' ', '{', '[1,]', '{"a":1,}', "{'a':1}", '{a:1}', '01', '+1', '.5', '1.', '1e', '0x10', 'NaN'],
      ...['undefined', 'True', '"a\nb"', '"\\x41"', '"a', '1 2', '// 1\n1', '[1]]', ']', '\ufeff1', '[1e3'],
    ]
    const cut = fc.json().map(json => json.slice(0, -1))
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string(), cut), sent => {
        const parsed = parseJson(sent)
        if (parsed.ok) return expect(() => JSON.parse(sent)).not.toThrow()
        expect(() => JSON.parse(sent)).toThrow(SyntaxError)
        expect(parsed.problem).toMatch(/^(?!JSON Parse error)./)
      }),
      { examples: refused.map(text => [text]) },
    )
    expect(refused.filter(text => parseJson(text).ok)).toEqual([])
  })
})
