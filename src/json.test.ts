import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { InexactNumber, int64Max, int64Min } from './int64.ts'
import { petsToJson, petToJson, readJson } from './json.ts'
import { type Pet, petName, readNewPet } from './pet.ts'

const [large, thousand] = ['9007199254740993', '1e3'].map(source => new InexactNumber(source))
test.each<[string, unknown]>([
  ['{"a":[1,{"b":9007199254740993}],"c":"1e3","d":null}', { a: [1, { b: large }], c: '1e3', d: null }],
  ['{"a":1e3,"b":1.5}', { a: thousand, b: 1.5 }],
  ['{"a":9007199254740993,"a":5}', { a: 5 }],
  ['{"a":9007199254740992,"a":9007199254740993}', { a: large }],
  ['{"a":[1e3],"a":"1e3"}', { a: '1e3' }],
])('%s is read with exact numbers; the last of two properties with the same name counts', (text, value) => {
  expect(readJson(text)).toEqual({ ok: true, value })
})

test.each([
  ['arrays in 64 levels are read', `${'['.repeat(64)}9007199254740993${']'.repeat(64)}`, true],
  ['objects in 64 levels are read', `${'{"a":'.repeat(64)}1${'}'.repeat(64)}`, true],
  ['arrays in 65 levels are refused', '['.repeat(65) + ']'.repeat(65), false],
  ['objects in 65 levels are refused', `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`, false],
  ['brackets in a string do not count', JSON.stringify('['.repeat(100)), true],
  ['nor after an escaped quote', JSON.stringify(`"${'['.repeat(100)}`), true],
  ['nor after an escaped backslash and quote', JSON.stringify(`\\"${'{'.repeat(100)}`), true],
  ['nor side by side', `[${'[],{},'.repeat(1_000)}{}]`, true],
  ['brackets count after a string that ends in a backslash', `["\\\\",${'['.repeat(64)}${']'.repeat(64)}]`, false],
  ['a million opening brackets are refused', '['.repeat(1_000_000), false],
])('%s', (_what, text, ok) => {
  const read = readJson(text)
  expect(read.ok || read.problem).toBe(ok || 'objects and arrays are nested more than 64 levels deep')
})

const withProto = ['{"__proto__":{"status":"sold"}}', '{"__proto__":{"status":"sold"},"a":1e3}']
test.each(withProto)('__proto__ is a property like any other in %s', text => {
  const parsed = readJson(text)
  const value = parsed.ok ? (parsed.value as object) : {}
  expect(Object.keys(value)).toContain('__proto__')
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
})

test.each<[string, string, number, number]>([
  ['a trailing comma on another line', '{\r\n  "a": [1,\r2,\n]}', 4, 1],
  ['a key without quotes', '{"a":1, b:2}', 1, 9],
  ['a missing brace, before blank lines', '{"a":{}\n \n', 1, 8],
  ['a string without an end, after characters of two code units', '{"😀é":"x\ny"}', 1, 7],
  ['nothing but white space', ' \n ', 1, 1],
])('the position of the mistake is known: %s', (_, text, line, column) => {
  expect(readJson(text)).toEqual({ ok: false, problem: expect.any(String), at: { line, column } })
})

test('the position of a mistake is behind everything that is JSON', () => {
  const property = fc.property(fc.json({ depthSize: 'medium' }), json => {
    expect(readJson(`[${json} ?`)).toMatchObject({ at: { line: 1, column: [...json].length + 3 } })
  })
  fc.assert(property, { examples: [['1E5,2e-5,-3.25e+3,0,"\\u00e9\\u00E9x\\n\\"yz",true,null']] })
})

test('the reason of a refusal has whole characters, and says if text follows the value', () => {
  expect(readJson('{😀')).toMatchObject({ problem: "Unrecognized token '\ufffd'" })
  expect(readJson('{"a":1}}')).toMatchObject({ problem: 'Unexpected text after the value' })
})

test('JSON is accepted as by JSON.parse, and otherwise refused with a reason', () => {
  const refused = ['', '{', '[1,]', "{'a':1}", '01', '1.', 'NaN', '"a\nb"', '1 2', '// 1\n1', '\ufeff1', '[1e3']
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

test.each<[Pet, string]>([
  [{ id: 1n, name: 'Rex', categoryId: 7n }, '{"id":1,"name":"Rex","categoryId":7}'],
  [
    { id: int64Max, name: '"\\\n', categoryId: int64Min, status: 'sold' },
    '{"id":9223372036854775807,"name":"\\"\\\\\\n","categoryId":-9223372036854775808,"status":"sold"}',
  ],
])('an animal as JSON has exact integers, an escaped name, and a status only if it was sent: %#', (pet, json) => {
  expect([petToJson(pet), petsToJson([pet, pet])]).toEqual([json, `[${json},${json}]`])
})

test('an animal as JSON can be read again', () => {
  const int = fc.bigInt({ min: int64Min, max: int64Max })
  const anyText = fc.array(fc.integer({ min: 0, max: 0x10ffff })).map(codes => String.fromCodePoint(...codes))
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
