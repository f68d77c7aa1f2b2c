import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { petLines } from '../json.ts'
import type { Pet } from '../pet.ts'
import { batchPetsMax, type ImportIds } from '../store.ts'
import { InvalidLine, lineBytesMax, readLines, readPetLines } from './ndjson.ts'

const utf8 = new TextEncoder()

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

/** All items, or those before an invalid line and its problem. */
async function collect<T>(items: AsyncIterable<T>) {
  const found: T[] = []
  try {
    for await (const item of items) found.push(item)
    return { found }
  } catch (error) {
    if (!(error instanceof InvalidLine)) throw error
    return { found, problem: error.message }
  }
}

async function readAll(bytes: Uint8Array, size = 7) {
  const { found: lines, ...rest } = await collect(readLines(inChunks(bytes, size)))
  return { lines, ...rest }
}

describe('lines', () => {
  test('end with a line feed only, in chunks of any size', async () => {
    const unit = fc.constantFrom('a', '\n', '\r', 'é', '犬', '😀', '\ufeff', '\u2028', '\u2029', '\u0085')
    await fc.assert(
      fc.asyncProperty(fc.string({ unit, maxLength: 60 }), fc.integer({ min: 1, max: 9 }), async (text, size) => {
        const { lines } = await readAll(utf8.encode(text), size)
        const expected = text.split('\n')
        if (text.endsWith('\n') || text === '') expected.pop()
        expect(lines).toEqual(expected)
      }),
    )
  })

  test.each([
    ['a byte that begins no character', [0xff]],
    ['an incomplete character', [0xe7, 0x8a]],
  ])('before %s are read, then that line is refused', async (_, invalid) => {
    const bytes = Uint8Array.from([...utf8.encode('one\ntwo\n'), ...invalid, ...utf8.encode('\nfour')])
    for (const size of [1, 5, 100]) {
      expect(await readAll(bytes, size)).toEqual({ lines: ['one', 'two'], problem: 'line 3: it is not valid UTF-8' })
    }
  })

  test('of 64 KiB are read; one byte more is refused', async () => {
    for (const character of ['a', 'é', '犬']) {
      const bytes = utf8.encode(character).length
      const longest = character.repeat(Math.floor(lineBytesMax / bytes)) + 'a'.repeat(lineBytesMax % bytes)
      expect((await readAll(utf8.encode(`${longest}\n${longest}`), 50_000)).lines).toEqual([longest, longest])
      const refused = { lines: ['first'], problem: 'line 2: it has more than 65536 bytes' }
      expect(await readAll(utf8.encode(`first\n${longest}a\nlast`), 50_000)).toEqual(refused)
    }
  })

  test('without an end are refused before they fill the memory', async () => {
    let sent = 0
    async function* endless() {
      for (const chunk = utf8.encode('a'.repeat(1_000)); ; sent += 1_000) yield chunk
    }
    const reading = Array.fromAsync(readLines(endless()))
    await expect(reading).rejects.toThrow('line 1: it has more than 65536 bytes')
    expect(sent).toBeLessThan(2 * lineBytesMax)
  })
})

const rex = (id: number | string) => `{"id":${id},"name":"Rex","categoryId":7}`

describe('a line', () => {
  const readLine = (line: string, ids: ImportIds) => collect(readPetLines(inChunks(utf8.encode(line), 65_536), ids))

  test.each<Pet>([
    { id: 1n, name: 'Rex', categoryId: 7n },
    { id: 9007199254740993n, name: '犬 "\\ \u2028\u0001', categoryId: -9223372036854775808n, status: 'sold' },
    { id: 9223372035854775807n, name: 'x'.repeat(1_000), categoryId: 9223372036854775807n, status: 'pending' },
  ])('is read as it was written: %p', async pet => {
    expect(petLines([pet])).toEndWith('}\n')
    expect(await readLine(petLines([pet]), 'keep')).toEqual({ found: [[pet]] })
  })

  test.each([
    '{"name":"Rex","categoryId":7}',
    ' {"categoryId":7.0, "name":"Rex"}\r',
    '{"id":9223372036854775807,"name":"Rex","categoryId":7,"status":"available"}',
  ])('%s is an animal that gets a new id', async line => {
    expect(await readLine(line, 'new')).toMatchObject({ found: [[{ name: 'Rex', categoryId: 7n }]] })
  })

  const id = 'expected an integer from 1 to 9223372036854775807'
  test.each<[string, string]>([
    ['{"name":"Rex","categoryId":07}', 'it is not JSON: '],
    [`${rex(1)} ${rex(2)}`, 'it is not JSON: '],
    ['[]', 'it is […]: expected an object with name and categoryId'],
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
      const read = await readLine(line, ids)
      expect(read).toEqual({ found: [], problem: expect.stringContaining(`line 1: ${problem}`) })
      expect(read.problem).not.toContain('; ')
    }
  })

  test('with several problems is refused with all of them', async () => {
    const { problem = '' } = await readLine('{"id":0,"age":3}', 'new')
    const starts = ['line 1: id is 0: ', 'name is missing: ', 'categoryId is missing: ', 'unknown property "age": ']
    expect(problem.split('; ')).toEqual(starts.map(start => expect.stringContaining(start)))
  })
})

describe('many lines', () => {
  async function read(text: string, ids: ImportIds = 'new') {
    const { found, problem } = await collect(readPetLines(inChunks(utf8.encode(text), 65_536), ids))
    return problem ?? found.map(({ length }) => length)
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

  test.each<[string, string, string]>([
    ['a blank line between', `${rex(1)}\n\n\n${rex(2)}`, '2: it is blank'],
    ['a blank line at the start', `\n${rex(1)}`, '1: it is blank'],
    ['a second byte order mark', `\ufeff${rex(1)}\n\ufeff${rex(2)}`, '2: it is not JSON'],
    ['an array over several lines', `[\n${rex(1)},\n${rex(2)}\n]`, '1: it is not JSON'],
    ['an invalid line', `${rex(1)}\r\n${rex(2)}\r\n{}\r\n{}`, '3: id is missing'],
    ['ids that do not ascend', [3, 7, 7, 2].map(rex).join('\n'), '3: id is 7 after 7'],
  ])('with %s are refused there', async (_, text, problem) => {
    expect(await read(text, 'keep')).toStartWith(`line ${problem}`)
  })

  test('need no ascending ids if they get new ones', async () => {
    expect(await read([3, 7, 7, 2].map(rex).join('\n'), 'new')).toEqual([4])
  })
})
