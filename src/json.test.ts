import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { InexactNumber, int64Max, int64Min } from './int64.ts'
import { petsToJson, petToJson, readJson } from './json.ts'
import { type Pet, petName, readNewPet } from './pet.ts'

describe('a number in JSON', () => {
  test('stays exact at every depth, without a change to the values around it', () => {
    const text = '{"a":[1,{"b":9007199254740993}],"c":1e3,"d":"9007199254740993","e":null,"f":1.5}'
    const [b, c] = [new InexactNumber('9007199254740993'), new InexactNumber('1e3')]
    const value = { a: [1, { b }], c, d: '9007199254740993', e: null, f: 1.5 }
    expect(readJson(text)).toEqual({ ok: true, value })
  })

  test.each<[string, unknown]>([
    ['{"a":9007199254740993,"a":5}', 5],
    ['{"a":5,"a":9007199254740993}', new InexactNumber('9007199254740993')],
    ['{"a":9007199254740992,"a":9007199254740993}', new InexactNumber('9007199254740993')],
    ['{"a":[1e3],"a":"1e3"}', '1e3'],
  ])('the last of two properties with the same name counts: %s', (text, a) => {
    expect(readJson(text)).toEqual({ ok: true, value: { a } })
  })
})

describe('nesting', () => {
  test.each([
    ['arrays', '[', '9007199254740993', ']'],
    ['objects', '{"a":', '1', '}'],
  ])('%s may be 64 levels deep, not deeper', (_what, open, inner, close) => {
    expect(readJson(open.repeat(64) + inner + close.repeat(64)).ok).toBe(true)
    const problem = 'objects and arrays are nested more than 64 levels deep'
    expect(readJson(open.repeat(65) + inner + close.repeat(65))).toEqual({ ok: false, problem })
  })

  test.each([
    ['brackets in a string do not count', JSON.stringify('['.repeat(100)), true],
    ['nor after an escaped quote', JSON.stringify(`"${'['.repeat(100)}`), true],
    ['nor after an escaped backslash and quote', JSON.stringify(`\\"${'{'.repeat(100)}`), true],
    ['nor side by side', `[${'[],{},'.repeat(1_000)}{}]`, true],
    ['brackets count after a string that ends in a backslash', `["\\\\",${'['.repeat(64)}${']'.repeat(64)}]`, false],
    ['a million opening brackets are refused', '['.repeat(1_000_000), false],
  ])('%s', (_what, text, ok) => {
    expect(readJson(text).ok).toBe(ok)
  })
})

describe('JSON', () => {
  const texts = ['{"__proto__":{"status":"sold"}}', '{"__proto__":{"status":"sold"},"a":1e3}']
  test.each(texts)('__proto__ is a property like any other in %s', text => {
    const parsed = readJson(text)
    const value = parsed.ok ? (parsed.value as object) : {}
    expect(Object.keys(value)).toContain('__proto__')
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  test.each<[string, string, number, number]>([
    ['a trailing comma on another line', '{\r\n  "a": [1,\r2,\n]}', 4, 1],
    ['a key without quotes', '{"a":1, b:2}', 1, 9],
    ['a missing brace, before blank lines', '{"a":{}\n \n', 1, 8],
    ['two commas', '[1,,2]', 1, 4],
    ['a string without an end, after characters of two code units', '{"😀é":"x\ny"}', 1, 7],
    ['nothing but white space', ' \n ', 1, 1],
  ])('the position of %s is known', (_, text, line, column) => {
    expect(readJson(text)).toEqual({ ok: false, problem: expect.any(String), at: { line, column } })
  })

  test('the position is behind everything that is JSON', () => {
    const valid = '[1E5,2e-5,-3.25e+3,0,"\\u00e9\\u00E9x\\n\\"yz",true,null'
    const json = fc.json({ depthSize: 'medium' }).map(text => `[${text}`)
    fc.assert(
      fc.property(json, text => {
        expect(readJson(`${text} ?`)).toMatchObject({ at: { line: 1, column: [...text].length + 2 } })
      }),
      { examples: [[valid]] },
    )
  })

  test('the reason has whole characters, and says if text follows the value', () => {
    expect(readJson('{😀')).toMatchObject({ problem: "Unrecognized token '\ufffd'" })
    expect(readJson('{"a":1}}')).toMatchObject({ problem: 'Unexpected text after the value' })
  })

  test('is accepted as by JSON.parse, and otherwise refused with a reason', () => {
    const refused = [
      '',
      '{',
      '[1,]',
      "{'a':1}",
      '01',
      '1.',
      'NaN',
      '"a\nb"',
      '"\\x41"',
      '1 2',
      '// 1\n1',
      '\ufeff1',
      '[1e3',
    ]
    const cut = fc.json().map(json => json.slice(0, -1))
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string(), cut), sent => {
        const parsed = readJson(sent)
        if (parsed.ok) return void JSON.parse(sent)
        expect(() => JSON.parse(sent)).toThrow(SyntaxError)
        expect(parsed.problem).toMatch(/^(?!JSON Parse error)./)
      }),
      { examples: refused.map(text => [text]) },
    )
  })
})

describe('an animal as JSON', () => {
  test.each<[Pet, string]>([
    [{ id: 1n, name: 'Rex', categoryId: 7n }, '{"id":1,"name":"Rex","categoryId":7}'],
    [
      { id: int64Max, name: '"\\\n', categoryId: int64Min, status: 'sold' },
      '{"id":9223372036854775807,"name":"\\"\\\\\\n","categoryId":-9223372036854775808,"status":"sold"}',
    ],
  ])('has exact integers, an escaped name, and a status only if it was sent: %#', (pet, json) => {
    expect([petToJson(pet), petsToJson([pet, pet])]).toEqual([json, `[${json},${json}]`])
  })

  test('can be read again', () => {
    const codePoint = fc.integer({ min: 0, max: 0x10ffff })
    const anyText = fc.array(codePoint).map(codes => String.fromCodePoint(...codes))
    const int = fc.bigInt({ min: int64Min, max: int64Max })
    const name = anyText.filter(text => petName.read(text) !== undefined)
    const status = fc.constantFrom('available', 'pending', 'sold', undefined)
    fc.assert(
      fc.property(int, name, int, status, (id, name, categoryId, status) => {
        const pet = { name, categoryId, ...(status && { status }) }
        const sent = readJson(petToJson({ id, ...pet }))
        expect(sent.ok && readNewPet(sent.value)).toStrictEqual({ ok: true, pet })
      }),
    )
  })
})
