import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { int64Max, int64Min, parseJson } from './int64.ts'
import { type Pet, petName, petStatus, petToJson, readNewPet } from './pet.ts'

function readJsonPet(text: string, strict = false) {
  const parsed = parseJson(text)
  if (!parsed.ok) throw new Error(`${text} is not JSON: ${parsed.problem}`)
  return readNewPet(parsed.value, strict)
}

function problemsOf(text: string, strict = false): readonly string[] {
  const read = readJsonPet(text, strict)
  return read.ok ? [] : read.problems
}

describe('name', () => {
  test.each([
    ['one letter', 'a'],
    ['a single emoji', '😀'],
    ['white space around a letter', ' \ta\n'],
    ['a zero-width space, which is not white space', '\u200b'],
    ['control characters other than U+0000', 'a\u0001\u007f'],
    ['an accent as it was sent, composed or not', 'e\u0301\u00e9'],
    ['right-to-left text', 'כלב'],
    ['1,000 letters', 'a'.repeat(1_000)],
    ['1,000 emoji', '😀'.repeat(1_000)],
    ['999 letters and one emoji', `${'a'.repeat(999)}😀`],
    ['quotes and backslashes', '"\\'],
  ])('kept exactly: %s', (_what, name) => {
    expect(petName.read(name)).toBe(name)
  })

  test.each([
    ['nothing', ''],
    ['a space', ' '],
    ['tabs and line ends', '\t\r\n\v\f'],
    ['no-break spaces', '\u00a0\u00a0'],
    ['an ideographic space', '\u3000'],
    ['a byte order mark', '\ufeff'],
    ['line and paragraph separators', '\u2028\u2029'],
    ['every kind of white space together', ' \u00a0\u1680\u2003\u202f\u205f\u3000\ufeff'],
    ['U+0000', '\u0000'],
    ['U+0000 among letters', 'Re\u0000x'],
    ['the first half of an emoji', '\ud83d'],
    ['the second half of an emoji', 'Rex \ude00'],
    ['the halves of an emoji in the wrong order', '\ude00\ud83d'],
    ['a half beside a whole emoji', '😀\ud83d'],
    ['1,001 letters', 'a'.repeat(1_001)],
    ['1,001 emoji', '😀'.repeat(1_001)],
    ['1,000 letters and one emoji', `${'a'.repeat(1_000)}😀`],
    ['a million letters', 'a'.repeat(1_000_000)],
    ['a number', 5],
    ['true', true],
    ['null', null],
    ['a list', ['Rex']],
    ['an object', {}],
  ])('refused: %s', (_what, name) => {
    expect(petName.read(name)).toBeUndefined()
  })

  test('what is checked is what is published', () => {
    const { minLength, maxLength, pattern, not } = petName.schema
    const unstorable = new RegExp((not as { pattern: string }).pattern, 'u')
    const anyText = fc.string({
      unit: fc.oneof(fc.constantFrom(' ', '\u00a0', '\u0000', '\ud83d'), fc.string()),
    })
    fc.assert(
      fc.property(anyText, text => {
        const chars = [...text].length
        const published =
          chars >= Number(minLength) &&
          chars <= Number(maxLength) &&
          new RegExp(String(pattern), 'u').test(text) &&
          !unstorable.test(text)
        expect(petName.read(text) === text).toBe(published)
      }),
    )
  })
})

describe('status', () => {
  test.each(['available', 'pending', 'sold'] as const)('%s is read', status => {
    expect(petStatus.read(status)).toBe(status)
  })

  test.each(['', 'lost', 'Sold', 'SOLD', ' sold', 'sold,pending', null, 0, false, {}])(
    '%j is refused',
    status => {
      expect(petStatus.read(status)).toBeUndefined()
    },
  )
})

describe('a new animal', () => {
  test.each<[string, object]>([
    ['{"name":"Rex","categoryId":7}', { name: 'Rex', categoryId: 7n }],
    ['{"name":"Rex","categoryId":7,"status":"sold"}', { name: 'Rex', categoryId: 7n, status: 'sold' }],
    [
      '{"status":"pending","categoryId":-1,"name":" x "}',
      { name: ' x ', categoryId: -1n, status: 'pending' },
    ],
    ['{"name":"Rex","categoryId":9007199254740993}', { name: 'Rex', categoryId: 9007199254740993n }],
    ['{"name":"Rex","categoryId":1e3}', { name: 'Rex', categoryId: 1000n }],
    ['{"name":"Rex","categoryId":0}', { name: 'Rex', categoryId: 0n }],
  ])('%s is read', (text, pet) => {
    expect(readJsonPet(text)).toStrictEqual({ ok: true, pet } as ReturnType<typeof readNewPet>)
    expect(readJsonPet(text, true)).toStrictEqual({ ok: true, pet } as ReturnType<typeof readNewPet>)
  })

  test('a status that was not sent stays absent', () => {
    const read = readJsonPet('{"name":"Rex","categoryId":7}')
    expect(read.ok && Object.keys(read.pet)).toEqual(['name', 'categoryId'])
  })

  test.each<[string, string]>([
    ['null', 'null'],
    ['true', 'true'],
    ['5', '5'],
    ['1e3', '1e3'],
    ['12345678901234567890', '12345678901234567890'],
    ['"Rex"', '"Rex"'],
    ['[]', '[…]'],
    ['[{"name":"Rex","categoryId":7}]', '[…]'],
  ])('the body %s is no animal', (text, shown) => {
    const problem = `Cannot read the body ${shown}: expected an object with name and categoryId`
    expect(problemsOf(text)).toEqual([problem])
    expect(problemsOf(text, true)).toEqual([problem])
  })

  test.each([
    ['{"categoryId":7}', 'name is missing'],
    ['{"name":"Rex"}', 'categoryId is missing'],
    ['{"name":null,"categoryId":7}', 'Cannot read name null'],
    ['{"name":"","categoryId":7}', 'Cannot read name ""'],
    ['{"Name":"Rex","name":5,"categoryId":7}', 'Cannot read name 5'],
    ['{"name":"Rex","categoryId":null}', 'Cannot read categoryId null'],
    ['{"name":"Rex","categoryId":"7"}', 'Cannot read categoryId "7"'],
    ['{"name":"Rex","categoryId":1.5}', 'Cannot read categoryId 1.5'],
    ['{"name":"Rex","categoryId":9223372036854775808}', 'Cannot read categoryId 9223372036854775808'],
    ['{"name":"Rex","categoryId":1e400}', 'Cannot read categoryId 1e400'],
    ['{"name":"Rex","categoryId":7,"status":null}', 'Cannot read status null'],
    ['{"name":"Rex","categoryId":7,"status":"lost"}', 'Cannot read status "lost"'],
    ['{"__proto__":{"name":"Rex"},"categoryId":7}', 'name is missing'],
  ])('%s is refused: %s', (text, problem) => {
    expect(problemsOf(text)).toEqual([expect.stringMatching(new RegExp(`^${problem}: expected `))])
  })

  test('every problem is told, not just the first', () => {
    const text = '{"name":" ","categoryId":1.5,"status":"lost","id":1,"__proto__":2}'
    const broken = [
      `Cannot read name " ": expected ${petName.expected}`,
      'Cannot read categoryId 1.5: expected a whole number from -9223372036854775808 to 9223372036854775807',
      'Cannot read status "lost": expected one of available, pending, sold',
    ]
    expect(problemsOf(text)).toEqual(broken)
    expect(problemsOf(text, true)).toEqual([
      ...broken,
      'Unknown property "id": expected only name, categoryId, status',
      'Unknown property "__proto__": expected only name, categoryId, status',
    ])
    expect(problemsOf('{}')).toHaveLength(2)
  })

  test('properties that an animal does not have are left out, and with strict handling they are problems', () => {
    const text = '{"name":"Rex","categoryId":7,"id":99,"colour":"brown"}'
    expect(readJsonPet(text)).toStrictEqual({ ok: true, pet: { name: 'Rex', categoryId: 7n } })
    expect(problemsOf(text, true)).toEqual([
      'Unknown property "id": expected only name, categoryId, status',
      'Unknown property "colour": expected only name, categoryId, status',
    ])
  })
})

describe('an animal as JSON', () => {
  test.each<[Pet, string]>([
    [{ id: 1n, name: 'Rex', categoryId: 7n }, '{"id":1,"name":"Rex","categoryId":7}'],
    [
      { id: int64Max, name: '"\\\n', categoryId: int64Min, status: 'sold' },
      '{"id":9223372036854775807,"name":"\\"\\\\\\n","categoryId":-9223372036854775808,"status":"sold"}',
    ],
  ])('case %#: integers digit for digit, the name escaped, no status where there is none', (pet, json) => {
    expect(petToJson(pet)).toBe(json)
  })

  test('every animal that we write can be read again', () => {
    const codePoint = fc.integer({ min: 0, max: 0x10ffff })
    const anyText = fc.array(codePoint).map(codes => String.fromCodePoint(...codes))
    const int = fc.bigInt({ min: int64Min, max: int64Max })
    const name = anyText.filter(text => petName.read(text) !== undefined)
    const status = fc.constantFrom('available', 'pending', 'sold', undefined)
    fc.assert(
      fc.property(int, name, int, status, (id, name, categoryId, status) => {
        const pet = { name, categoryId, ...(status && { status }) }
        expect(readJsonPet(petToJson({ id, ...pet }))).toStrictEqual({ ok: true, pet })
      }),
    )
  })
})
