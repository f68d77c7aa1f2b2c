import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { batchPetsMax, type ImportedPet, type ImportIds } from '../store-contract.ts'
import { InvalidLines, lineBytesMax, readLines, readPetLines } from './ndjson.ts'

const utf8 = new TextEncoder()

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

const readAll = (bytes: Uint8Array, size = 7) => Array.fromAsync(readLines(inChunks(bytes, size)))

/** The batches, and the problems of invalid lines. */
async function readPets(text: string, ids: ImportIds) {
  const found: (readonly ImportedPet[])[] = []
  try {
    for await (const pets of readPetLines(inChunks(utf8.encode(text), 65_536), ids)) found.push(pets)
    return { found, problems: [], count: 0 }
  } catch (error) {
    if (!(error instanceof InvalidLines)) throw error
    return { found, problems: error.problems, count: error.count }
  }
}

describe('lines', () => {
  test('end with a line feed only, in chunks of any size', async () => {
    const unit = fc.constantFrom('a', '\n', '\r', 'é', '犬', '😀', '\ufeff', '\u2028', '\u2029', '\u0085')
    await fc.assert(
      fc.asyncProperty(fc.string({ unit, maxLength: 60 }), fc.integer({ min: 1, max: 9 }), async (text, size) => {
        const expected = text.split('\n')
        if (text.endsWith('\n') || text === '') expected.pop()
        expect(await readAll(utf8.encode(text), size)).toEqual(expected)
      }),
    )
  })

  test.each([
    ['a byte that begins no character', [0xff]],
    ['an incomplete character', [0xe7, 0x8a]],
  ])('with %s are refused, and those around them are read', async (_, invalid) => {
    const bytes = Uint8Array.from([...utf8.encode('one\n'), ...invalid, ...utf8.encode('\nthree')])
    const expected = ['one', { problem: 'it is not valid UTF-8' }, 'three']
    for (const size of [1, 5, 100]) expect(await readAll(bytes, size)).toEqual(expected)
  })

  test('of 64 KiB are read; one byte more is refused', async () => {
    const tooLong = { problem: 'it has more than 65536 bytes' }
    for (const character of ['a', 'é', '犬']) {
      const bytes = utf8.encode(character).length
      const text = character.repeat(Math.floor(lineBytesMax / bytes)) + 'a'.repeat(lineBytesMax % bytes)
      expect(await readAll(utf8.encode(`${text}\n${text}`), 50_000)).toEqual([text, text])
      const lines = utf8.encode(`first\n${text}a\n${text.repeat(3)}\nlast\n${text}a`)
      for (const size of [5_000, 50_000, lines.length]) {
        expect(await readAll(lines, size)).toEqual(['first', tooLong, tooLong, 'last', tooLong])
      }
    }
  })
})

const rex = (id: number | string) => `{"id":${id},"name":"Rex","categoryId":7}`

describe('a line', () => {
  test('keeps its id, up to the highest that can be kept', async () => {
    const pet = { id: 9223372035854775807n, name: 'Rex', categoryId: 7n }
    expect(await readPets(`${rex(`${pet.id}`)}\n`, 'keep')).toMatchObject({ found: [[pet]], count: 0 })
  })

  test.each([
    '{"name":"Rex","categoryId":7}',
    ' {"categoryId":7.0, "name":"Rex"}\r',
    '{"id":9223372036854775807,"name":"Rex","categoryId":7,"status":"available"}',
  ])('%s is an animal that gets a new id', async line => {
    expect(await readPets(line, 'new')).toMatchObject({ found: [[{ name: 'Rex', categoryId: 7n }]] })
  })

  const id = 'expected an integer from 1 to 9223372036854775807'
  test.each<[string, string]>([
    ['{"name":"Rex","categoryId":7,}', 'it is not JSON: Expected a name in double quotes after the comma at column 30'],
    ['{"name":"Rex","categoryId":07}', "it is not JSON: Expected '}' at column 29"],
    [`${rex(1)} ${rex(2)}`, 'it is not JSON: '],
    ...['[]', ` [${rex(1)}]`, ...['', ' ', '\ufeff '].map(start => `${start}[${rex('1'.repeat(70_000))}]`)].map(
      (line): [string, string] => [line, 'it begins an array; '],
    ),
    ['9007199254740993', 'it is 9007199254740993: expected an object with name and categoryId'],
    ['{"id":1,"name":"Rex"}', 'categoryId is missing: '],
    ['{"id":1,"name":"Rex","categoryId":7,"age":3}', 'unknown property "age": expected id, name, categoryId or status'],
    ['{"id":1,"__proto__":{},"name":"Rex","categoryId":7}', 'unknown property "__proto__"'],
    ...['0', '-1', '1.5', '"1"', 'null', '9223372036854775808'].map((value): [string, string] => [
      rex(value),
      `id is ${value}: ${id}`,
    ]),
  ])('%s is refused', async (line, problem) => {
    for (const ids of ['new', 'keep'] as const) {
      const { found, problems, count } = await readPets(line, ids)
      expect({ found, problems, count }).toEqual({ found: [], problems: [expect.any(String)], count: 1 })
      expect(problems[0]).toStartWith(`line 1: ${problem}`)
      expect(problems[0]?.split('; ')).toHaveLength(problem.split('; ').length)
    }
  })

  test('with several problems is refused with all of them', async () => {
    const [problem = ''] = (await readPets('{"id":0,"age":3}', 'new')).problems
    const starts = ['line 1: id is 0: ', 'name is missing: ', 'categoryId is missing: ', 'unknown property "age": ']
    expect(problem.split('; ')).toEqual(starts.map(start => expect.stringContaining(start)))
  })
})

describe('many lines', () => {
  /** How many animals each batch has, or what is wrong. */
  async function read(text: string, ids: ImportIds = 'new') {
    const { found, problems, count } = await readPets(text, ids)
    return count > 0 ? problems : found.map(({ length }) => length)
  }

  test('are read in batches', async () => {
    const text = Array.from({ length: batchPetsMax + 1 }, (_, i) => rex(i + 1)).join('\n')
    expect(await read(text, 'keep')).toEqual([batchPetsMax, 1])
    expect(await read('')).toEqual([])
  })

  test.each(['\n', '', '\n\n', '\r\n \t\r\n\r\n  '])('may begin with a byte order mark, and end with %j', async end => {
    for (const mark of ['', '\ufeff']) expect(await read(`${mark}${rex(1)}\n${rex(2)}${end}`, 'keep')).toEqual([2])
    expect(await read(`\ufeff${end}`)).toEqual([])
  })

  test.each<[string, string, string[]]>([
    ['blank lines between', `${rex(1)}\n\n\n${rex(2)}`, ['2: it is blank', '3: it is blank']],
    ['a blank line at the start', `\n${rex(1)}`, ['1: it is blank']],
    ['a second byte order mark', `\ufeff${rex(1)}\n\ufeff${rex(2)}`, ['2: it is not JSON']],
    [
      'an array over several lines',
      `[\n${rex(1)},\n]`,
      ['1: it begins an array', '2: it is not JSON', '3: it is not JSON'],
    ],
    ['invalid lines', `${rex(1)}\r\n{}\r\n${rex(2)}\r\n{}`, ['2: id is missing', '4: id is missing']],
    ['a line too long', `${'x'.repeat(70_000)}\n${rex(1)}\n\ufffd`, ['1: it has more than', '3: it is not JSON']],
    ['ids that do not ascend', [3, 7, 7, 2, 8].map(rex).join('\n'), ['3: id is 7 after 7', '4: id is 2 after 7']],
    [
      'an id too high to keep',
      rex('9223372035854775808'),
      ['1: id is 9223372035854775808: expected an integer from 1'],
    ],
  ])('with %s are refused there', async (_, text, problems) => {
    const found = await read(text, 'keep')
    expect(found).toHaveLength(problems.length)
    for (const [index, problem] of problems.entries()) expect(found[index]).toStartWith(`line ${problem}`)
  })

  test('of which many are invalid: the first twenty are named, and all are counted', async () => {
    const bad = '{}\n'.repeat(30)
    const { found, problems, count } = await readPets(
      `${'{"name":"Rex","categoryId":7}\n'.repeat(batchPetsMax)}${bad}`,
      'new',
    )
    expect([found.length, problems.length, count]).toEqual([1, 20, 30])
    expect(problems.at(-1)).toStartWith(`line ${batchPetsMax + 20}: name is missing`)
  })

  test('need no ascending ids if they get new ones', async () => {
    expect(await read([3, 7, 7, 2].map(rex).join('\n'), 'new')).toEqual([4])
  })
})
