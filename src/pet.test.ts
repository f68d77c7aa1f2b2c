import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readJson } from './json.ts'
import { type NewPet, type PetChanges, petName, readNewPet, readPetChanges } from './pet.ts'

function parse(text: string): unknown {
  const parsed = readJson(text)
  if (!parsed.ok) throw new Error(`${text} is not JSON: ${parsed.problem}`)
  return parsed.value
}

const problemsOf = (read: ReturnType<typeof readNewPet>) => (read.ok ? [] : read.problems)

const valid = ['😀', ' \ta\n', 'a\u0001\u007f', 'e\u0301\u00e9', '😀'.repeat(1_000), `${'a'.repeat(999)}😀`]
test.each(valid)('a name is stored exactly: %j', name => {
  expect(petName.read(name)).toBe(name)
})

test.each<[string, unknown, string]>([
  ['the empty text', '', 'is empty: expected 1 to 1,000 characters'],
  ['spaces, tabs and line ends', ' \t\r\n\v\f', 'is blank: expected at least one visible character'],
  ['other white space', '\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\ufeff', 'is blank'],
  ['U+0000 among letters', 'Re\u0000x', 'contains U+0000 or an unpaired surrogate: remove it'],
  ['the first half of an emoji', '\ud83d', 'contains U+0000 or an unpaired surrogate'],
  ['the halves of an emoji in the wrong order', '\ude00\ud83d', 'contains U+0000 or an unpaired surrogate'],
  ['1,001 emoji', '😀'.repeat(1_001), 'is too long: expected 1 to 1,000 characters'],
  ['a million letters', 'a'.repeat(1_000_000), 'is too long'],
  ['a number', 5, 'is not a string: expected 1 to 1,000 characters'],
])('a name is refused: %s', (_what, name, problem) => {
  expect(petName.read(name)).toBeUndefined()
  expect(petName.problem?.(name)).toStartWith(problem)
})

test('a name is valid exactly if it is well-formed and matches the published schema, with or without the u flag', () => {
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
  // Generated clients in Go and Rust have no lookaround.
  expect(pattern).not.toContain('(?')
})

test.each<[string, NewPet]>([
  ['{"name":"Rex","categoryId":7}', { name: 'Rex', categoryId: 7n }],
  ['{"status":"sold","categoryId":-1,"name":" x "}', { name: ' x ', categoryId: -1n, status: 'sold' }],
  ['{"name":"Rex","categoryId":7,"id":99}', { name: 'Rex', categoryId: 7n }],
])('a new animal %s is read', (text, pet) => {
  expect(readNewPet(parse(text))).toStrictEqual({ ok: true, pet })
})

test.each([
  ['null', 'the body'],
  ['[{"name":"Rex","categoryId":7}]', 'the body'],
  ['{"categoryId":7}', 'name'],
  ['{"name":"Rex"}', 'categoryId'],
  ['{"Name":"Rex","name":5,"categoryId":7}', 'name'],
  ['{"name":"Rex","categoryId":1e400}', 'categoryId'],
  ['{"name":"Rex","categoryId":7,"status":null}', 'status'],
  ['{"name":"Rex","categoryId":7,"status":"lost"}', 'status'],
  ['{"__proto__":{"name":"Rex"},"categoryId":7}', 'name'],
])('a new animal %s is refused, and the problem is %s', (text, problem) => {
  expect(problemsOf(readNewPet(parse(text)))).toEqual([expect.stringMatching(new RegExp(`^${problem} `))])
})

test('a new animal is refused with all its problems at once', () => {
  const sent = parse('{"name":" ","categoryId":1.5,"status":"lost","id":1,"__proto__":2}')
  const named = ['name', 'categoryId', 'status'].map(name => expect.stringMatching(new RegExp(`^${name} `)))
  expect(problemsOf(readNewPet(sent))).toEqual(named)
  const unknown = ['id', '__proto__'].map(name => expect.stringContaining(`"${name}"`))
  expect(problemsOf(readNewPet(sent, true))).toEqual([...named, ...unknown])
})

test.each<[string, PetChanges]>([
  ['{}', {}],
  ['{"status":"sold","id":7}', { status: 'sold' }],
  ['{"status":null,"name":"Rex","categoryId":1e3}', { status: null, name: 'Rex', categoryId: 1_000n }],
])('changes %s are read', (text, changes) => {
  expect(readPetChanges(parse(text))).toEqual({ ok: true, changes })
})

test.each([
  ['[]', 'the body is […]: expected a JSON object'],
  ['{"name":null}', 'name is not a string: expected 1 to 1,000 characters'],
  ['{"categoryId":null}', 'categoryId is null: expected a 64-bit integer'],
  ['{"status":"lost"}', 'status is "lost": expected available, pending or sold, or null for none'],
  ['{"Name":"Rex"}', 'unknown property "Name": expected name, categoryId or status'],
])('changes %s are refused: %s', (text, problem) => {
  expect(readPetChanges(parse(text), true)).toEqual({ ok: false, problems: [problem] })
})
