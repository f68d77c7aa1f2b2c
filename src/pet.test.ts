import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readJson } from './json.ts'
import { type NewPet, type PetChanges, petName, readNewPet, readPetChanges } from './pet.ts'

function readJsonPet(text: string, strict = false) {
  const parsed = readJson(text)
  if (!parsed.ok) throw new Error(`${text} is not JSON: ${parsed.problem}`)
  return readNewPet(parsed.value, strict)
}

function listProblems(text: string, strict = false): readonly string[] {
  const read = readJsonPet(text, strict)
  return read.ok ? [] : read.problems
}

describe('a name', () => {
  test.each([
    ['a single emoji', '😀'],
    ['white space around a letter', ' \ta\n'],
    ['a zero-width space', '\u200b'],
    ['control characters other than U+0000', 'a\u0001\u007f'],
    ['composed and decomposed accents', 'e\u0301\u00e9'],
    ['1,000 emoji', '😀'.repeat(1_000)],
    ['999 letters and one emoji', `${'a'.repeat(999)}😀`],
  ])('is stored exactly: %s', (_what, name) => {
    expect(petName.read(name)).toBe(name)
  })

  const tooLong = 'is too long: expected 1 to 1,000 characters'
  const blank = 'is blank: expected at least one visible character'
  const unstorable = 'contains U+0000 or an unpaired surrogate: remove it'
  test.each<[string, unknown, string]>([
    ['the empty text', '', 'is empty: expected 1 to 1,000 characters'],
    ['spaces, tabs and line ends', ' \t\r\n\v\f', blank],
    ['other white space', '\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\ufeff', blank],
    ['U+0000 among letters', 'Re\u0000x', unstorable],
    ['the first half of an emoji', '\ud83d', unstorable],
    ['the halves of an emoji in the wrong order', '\ude00\ud83d', unstorable],
    ['1,001 emoji', '😀'.repeat(1_001), tooLong],
    ['a million letters', 'a'.repeat(1_000_000), tooLong],
    ['a number', 5, 'is not a string: expected 1 to 1,000 characters'],
  ])('is refused: %s', (_what, name, problem) => {
    expect(petName.read(name)).toBeUndefined()
    expect(petName.problem?.(name)).toBe(problem)
  })

  test('is valid exactly if it is well-formed and matches the published schema, with or without the u flag', () => {
    const { minLength, maxLength, pattern } = petName.schema
    const unit = fc.oneof(fc.constantFrom(' ', '\u00a0', '\ufeff', '\n', '\0', 'a', '😀', '\ud83d'), fc.string())
    const lengths = fc.integer({ min: 990, max: 1_010 })
    const texts = fc.oneof(
      fc.string({ unit, maxLength: 6 }),
      fc.tuple(fc.constantFrom(' ', 'a', '😀'), lengths).map(([char, length]) => char.repeat(length)),
    )
    fc.assert(
      fc.property(texts, fc.constantFrom('', 'u'), (text, flags) => {
        const chars = [...text].length
        const published =
          chars >= Number(minLength) && chars <= Number(maxLength) && new RegExp(String(pattern), flags).test(text)
        expect(petName.read(text) === text).toBe(published && text.isWellFormed())
      }),
      { numRuns: 1_000 },
    )
    // Another pattern must compile in other languages too, and take linear time.
    expect(petName.schema).toEqual({
      ...{ type: 'string', minLength: 1, maxLength: 1_000 },
      pattern: '^\\s*[^\\s\\x00][^\\x00]*$',
    })
  })
})

describe('a new animal', () => {
  test.each<[string, NewPet]>([
    ['{"name":"Rex","categoryId":7}', { name: 'Rex', categoryId: 7n }],
    ['{"status":"sold","categoryId":-1,"name":" x "}', { name: ' x ', categoryId: -1n, status: 'sold' }],
    ['{"name":"Rex","categoryId":7,"id":99}', { name: 'Rex', categoryId: 7n }],
  ])('%s is read', (text, pet) => {
    expect(readJsonPet(text)).toStrictEqual({ ok: true, pet })
  })

  test.each([
    ['null', 'the body is null'],
    ['12345678901234567890', 'the body is 12345678901234567890'],
    ['[{"name":"Rex","categoryId":7}]', 'the body is […]'],
    ['{"categoryId":7}', 'name is missing'],
    ['{"name":"Rex"}', 'categoryId is missing'],
    ['{"Name":"Rex","name":5,"categoryId":7}', 'name is not a string'],
    ['{"name":"Rex","categoryId":null}', 'categoryId is null'],
    ['{"name":"Rex","categoryId":1e400}', 'categoryId is 1e400'],
    ['{"name":"Rex","categoryId":7,"status":null}', 'status is null'],
    ['{"name":"Rex","categoryId":7,"status":"lost"}', 'status is "lost"'],
    ['{"__proto__":{"name":"Rex"},"categoryId":7}', 'name is missing'],
  ])('%s is refused: %s', (text, problem) => {
    expect(listProblems(text)).toEqual([expect.stringContaining(`${problem}: expected `)])
  })

  test('is refused with all its problems at once', () => {
    const text = '{"name":" ","categoryId":1.5,"status":"lost","id":1,"__proto__":2}'
    const problems = [
      'name is blank: expected at least one visible character',
      'categoryId is 1.5: expected a 64-bit integer',
      'status is "lost": expected available, pending or sold',
    ]
    expect(listProblems(text)).toEqual(problems)
    expect(listProblems(text, true)).toEqual([
      ...problems,
      'unknown property "id": expected name, categoryId or status',
      'unknown property "__proto__": expected name, categoryId or status',
    ])
    expect([listProblems('{}').length, listProblems('[]', true).length]).toEqual([2, 1])
  })
})

describe('changes of an animal', () => {
  const read = (text: string, strict = false) => {
    const parsed = readJson(text)
    return readPetChanges(parsed.ok ? parsed.value : undefined, strict)
  }

  test.each<[string, PetChanges]>([
    ['{}', {}],
    ['{"name":" x "}', { name: ' x ' }],
    ['{"categoryId":9223372036854775807}', { categoryId: 2n ** 63n - 1n }],
    ['{"status":"sold","id":7}', { status: 'sold' }],
    ['{"status":null,"name":"Rex","categoryId":1e3}', { status: null, name: 'Rex', categoryId: 1_000n }],
  ])('%s are read', (text, changes) => {
    expect(read(text)).toEqual({ ok: true, changes })
  })

  test.each([
    ['[]', 'the body is […]: expected a JSON object'],
    ['{"name":null}', 'name is not a string: expected 1 to 1,000 characters'],
    ['{"categoryId":null}', 'categoryId is null: expected a 64-bit integer'],
    ['{"status":"lost"}', 'status is "lost": expected available, pending or sold, or null for none'],
    ['{"Name":"Rex"}', 'unknown property "Name": expected name, categoryId or status'],
  ])('%s are refused in strict handling: %s', (text, problem) => {
    expect(read(text, true)).toEqual({ ok: false, problems: [problem] })
  })
})
