import { describe, expect, test } from 'bun:test'
import type { Pet } from '../pet.ts'
import { batchPetsMax, type ImportIds } from '../store.ts'
import { BadLine } from './lines.ts'
import { petLines, readPetLine, readPetLines } from './pet-lines.ts'

const good = (id: number) => `{"id":${id},"name":"Rex","categoryId":7}`

async function read(text: string, ids: ImportIds = 'new') {
  async function* chunks() {
    yield new TextEncoder().encode(text)
  }
  const batches: number[] = []
  try {
    for await (const pets of readPetLines(chunks(), ids)) batches.push(pets.length)
    return batches
  } catch (error) {
    if (!(error instanceof BadLine)) throw error
    return `${error.line}: ${error.message}`
  }
}

describe('a line', () => {
  test.each<Pet>([
    { id: 1n, name: 'Rex', categoryId: 7n },
    { id: 9007199254740993n, name: '犬 "\\ \u2028\u0001', categoryId: -9223372036854775808n, status: 'sold' },
    {
      id: 9223372035854775807n,
      name: 'x'.repeat(1_000),
      categoryId: 9223372036854775807n,
      status: 'pending',
    },
  ])('is read as it was written: %p', pet => {
    const line = petLines([pet])
    expect(line).toEndWith('}\n')
    expect(readPetLine(line, 'keep', 0n)).toEqual({ ok: true, pet })
  })

  test.each([
    '{"name":"Rex","categoryId":7}',
    ' {"categoryId":7.0, "name":"Rex"}\r',
    '{"id":9223372036854775807,"name":"Rex","categoryId":7e0,"status":"available"}',
    '{"id":1e3,"name":"\\u0052ex","categoryId":7}',
  ])('%s is an animal that gets a new id', line => {
    expect(readPetLine(line, 'new', 99n)).toMatchObject({ ok: true, pet: { name: 'Rex', categoryId: 7n } })
  })

  test.each<[string, RegExp]>([
    ['{"name":"Rex","categoryId":7', /^Cannot read it as JSON: /],
    ['{"name":"Rex","categoryId":07}', /^Cannot read it as JSON: /],
    [`${good(1)} ${good(2)}`, /^Cannot read it as JSON: /],
    [`${'['.repeat(65)}${']'.repeat(65)}`, /nested more than 64 deep/],
    ['[]', /^Cannot read it \[…\]: expected an object with name and categoryId$/],
    ['null', /^Cannot read it null: expected an object/],
    ['9007199254740993', /^Cannot read it 9007199254740993: expected an object/],
    ['{"name":"Rex"}', /^categoryId is missing: expected a whole number/],
    ['{"categoryId":7}', /^name is missing: expected text/],
    ['{"name":" ","categoryId":7}', /^Cannot read name " ": expected text/],
    ['{"name":"\\ud800","categoryId":7}', /^Cannot read name .*unpaired surrogate$/],
    ['{"name":"Rex","categoryId":9223372036854775808}', /^Cannot read categoryId 9223372036854775808: /],
    ['{"name":"Rex","categoryId":"7"}', /^Cannot read categoryId "7": /],
    ['{"name":"Rex","categoryId":7,"status":"lost"}', /^Cannot read status "lost": expected one of /],
    ['{"name":"Rex","categoryId":7,"status":null}', /^Cannot read status null: /],
    [
      '{"name":"Rex","categoryId":7,"age":3}',
      /^Unknown property "age": expected only id, name, categoryId, status$/,
    ],
    ['{"__proto__":{},"name":"Rex","categoryId":7}', /^Unknown property "__proto__"/],
    [
      '{"id":0,"name":"Rex","categoryId":7}',
      /^Cannot read id 0: expected a whole number from 1 to 9223372036854775807$/,
    ],
    ['{"id":-1,"name":"Rex","categoryId":7}', /^Cannot read id -1: /],
    ['{"id":1.5,"name":"Rex","categoryId":7}', /^Cannot read id 1.5: /],
    ['{"id":"1","name":"Rex","categoryId":7}', /^Cannot read id "1": /],
    ['{"id":null,"name":"Rex","categoryId":7}', /^Cannot read id null: /],
    ['{"id":9223372036854775808,"name":"Rex","categoryId":7}', /^Cannot read id 9223372036854775808: /],
    [
      '{"id":0,"age":3}',
      /^Cannot read id 0: .*; name is missing: .*; categoryId is missing: .*; Unknown property "age"/,
    ],
  ])('%s is refused', (line, message) => {
    for (const ids of ['new', 'keep'] as const) {
      const read = readPetLine(line, ids, 0n)
      const problems = read.ok ? [] : read.problems
      // Where ids are kept, a line without one has one more problem.
      expect(problems.filter(problem => !problem.startsWith('id is missing')).join('; ')).toMatch(message)
    }
  })

  test.each<[string, bigint, RegExp]>([
    [
      '{"name":"Rex","categoryId":7}',
      0n,
      /^id is missing: expected a whole number from 1 to 9223372035854775807/,
    ],
    [good(5), 5n, /^Cannot keep id 5 after id 5: expected ids that rise$/],
    [good(5), 6n, /^Cannot keep id 5 after id 6: /],
    [
      '{"id":9223372035854775808,"name":"Rex","categoryId":7}',
      0n,
      /^Cannot read id 9223372035854775808: .*9223372035854775807, so that ids are left for later animals$/,
    ],
  ])('%s after id %p cannot keep its id', (line, before, message) => {
    const read = readPetLine(line, 'keep', before)
    expect(read.ok ? '' : read.problems.join()).toMatch(message)
    expect(readPetLine(line, 'new', before).ok).toBe(true)
  })
})

describe('many lines', () => {
  test('come in batches', async () => {
    const text = Array.from({ length: batchPetsMax + 1 }, (_, i) => good(i + 1)).join('\n')
    expect(await read(text, 'keep')).toEqual([batchPetsMax, 1])
    expect(await read('')).toEqual([])
  })

  test.each([
    ['one line end', '\n'],
    ['none', ''],
    ['a blank line', '\n\n'],
    ['blank lines with white space', '\r\n \t\r\n\r\n  '],
  ])('may end with %s', async (_, end) => {
    expect(await read(`${good(1)}\n${good(2)}${end}`, 'keep')).toEqual([2])
  })

  test.each<[string, string, string]>([
    ['a blank line between', `${good(1)}\n\n\n${good(2)}`, '2: it is blank: expected an animal'],
    ['a blank line at the beginning', `\n${good(1)}`, '1: it is blank'],
    ['a second byte order mark', `\ufeff${good(1)}\n\ufeff${good(2)}`, '2: Cannot read it as JSON'],
    ['an array over several lines', `[\n${good(1)},\n${good(2)}\n]`, '1: Cannot read it as JSON'],
    ['a bad line', `${good(1)}\r\n${good(2)}\r\n{}\r\n{}`, '3: name is missing'],
  ])('with %s are refused there', async (_, text, problem) => {
    expect(await read(text)).toStartWith(problem)
  })

  test('whose ids are kept have to rise; those that get new ones do not', async () => {
    const text = [3, 7, 7, 2].map(good).join('\n')
    expect(await read(text, 'keep')).toBe('3: Cannot keep id 7 after id 7: expected ids that rise')
    expect(await read(text, 'new')).toEqual([4])
  })
})
