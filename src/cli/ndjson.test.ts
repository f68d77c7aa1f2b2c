import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { SetupError } from '../errors.ts'
import { batchPetsMax, type ImportedPet, type ImportIds } from '../store-contract.ts'
import { lineBytesMax, readLines, readPetLines } from './ndjson.ts'

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

/** The batches, and the lines of the message about invalid lines. */
async function readPets(text: string | Uint8Array, ids: ImportIds = 'new', size = 65_536) {
  const found: (readonly ImportedPet[])[] = []
  try {
    for await (const pets of readPetLines(inChunks(Buffer.from(text), size), ids, 'a.ndjson')) found.push(pets)
    return { found, problems: [] }
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    return { found, problems: error.message.split('\n  ') }
  }
}

const rex = (id: number | string) => `{"id":${id},"name":"Rex","categoryId":7}`
const unnumbered = '{"name":"Rex","categoryId":7}'

test('lines end with a line feed only, in chunks of any size', async () => {
  const unit = fc.constantFrom('a', '\n', '\r', 'é', '犬', '😀', '\ufeff', '\u2028', '\u2029', '\u0085')
  await fc.assert(
    fc.asyncProperty(fc.string({ unit, maxLength: 60 }), fc.integer({ min: 1, max: 9 }), async (text, size) => {
      const expected = text.split('\n')
      if (text.endsWith('\n') || text === '') expected.pop()
      const lines = await Array.fromAsync(readLines(inChunks(Buffer.from(text), size)))
      expect(lines.map(line => Buffer.from(line).toString())).toEqual(expected)
    }),
  )
})

test('lines of 64 KiB are read; one byte more is refused, and the lines around it are read', async () => {
  const longest = ' '.repeat(lineBytesMax - unnumbered.length) + unnumbered
  const tooLong = expect.stringMatching(/^line [25]: it has more than 65536 bytes$/)
  for (const size of [5_000, 50_000, 1_000_000]) {
    const { found } = await readPets(`${longest}\n${longest}`, 'new', size)
    expect(found).toEqual([Array(2).fill({ name: 'Rex', categoryId: 7n })])
    const { problems } = await readPets(`${longest}\n ${longest}\n${longest}\n{}\n ${longest}`, 'new', size)
    expect(problems.slice(1)).toEqual([tooLong, expect.stringMatching(/^line 4: name/), tooLong])
  }
})

const kept = { name: 'Rex', categoryId: 7n }
test.each<[string, ImportIds, ImportedPet]>([
  [rex('9223372035854775807'), 'keep', { id: 9223372035854775807n, ...kept }],
  [unnumbered, 'new', kept],
  [' {"categoryId":7.0, "name":"Rex"}\r', 'new', kept],
  ['{"id":"x","name":"Rex","categoryId":7,"status":"available"}', 'new', { ...kept, status: 'available' }],
])('a line %s is an animal (ids: %s)', async (line, ids, pet) => {
  expect(await readPets(line, ids)).toEqual({ found: [[pet]], problems: [] })
})

const invalidUtf8 = Buffer.from([...Buffer.from('{"name":"'), 0xe7, 0x8a])
const id = 'expected an integer from 1 to 9223372035854775807'
test.each<[string | Buffer, ...string[]]>([
  ['{"id":1,"name":"Rex","categoryId":7,}', 'at column 37'],
  [invalidUtf8, 'it is not valid UTF-8'],
  ['[]', "it begins an array; convert it with jq -c '.[]' ("],
  ['9007199254740993', 'it is 9007199254740993: expected an object'],
  ['{"id":1,"name":"Rex"}', 'categoryId is missing: '],
  [`${rex(1).slice(0, -1)},"\u009b2J":3}`, 'unknown property "\\u009b2J"'],
  [unnumbered, `id is missing: ${id}`],
  ...['0', '1.5', '"1"', '9223372036854775808'].map((sent): [string, string] => [rex(sent), `id is ${sent}: ${id}`]),
  ['{"id":0,"age":3}', 'id is 0: ', 'name is missing: ', 'categoryId is missing: ', 'unknown property "age": '],
])('a line %s is refused with all its problems', async (line, ...starts) => {
  const { found, problems } = await readPets(line, 'keep')
  expect([found, problems.length]).toEqual([[], 2])
  const expected = starts.map(start => expect.stringContaining(start))
  expect(problems[1]?.replace('line 1: ', '').split(/; (?!convert)/)).toEqual(expected)
})

test('many lines may have blank lines and byte order marks', async () => {
  for (const blank of ['', '\n', '\r\n \t\r\n\ufeff\n  ']) {
    const { found } = await readPets(`\ufeff${blank}${rex(1)}\n${blank}${rex(2)}${blank}`, 'keep')
    expect(found.flat().map(({ id }) => id)).toEqual([1n, 2n])
  }
})

test.each<[string, string, string[]]>([
  ['an array', `[\n${rex(1)},\n]`, ['1: it begins an array', '2: it is not JSON', '3: it is not JSON']],
  ['invalid lines', `${rex(1)}\r\n{}\r\n${rex(2)}\r\n{}`, ['2: id is missing', '4: id is missing']],
  ['ids that do not ascend', [3, 7, 7, 2, 8].map(rex).join('\n'), ['3: id is 7 after 7', '4: id is 2 after 7']],
  ['a billion ids too few', rex('9223372035854775808'), ['1: id is 9223372035854775808: expected an integer']],
])('many lines with %s are refused there', async (_, text, starts) => {
  const [, ...problems] = (await readPets(text, 'keep')).problems
  expect(problems).toEqual(starts.map(start => expect.stringContaining(`line ${start}`)))
})

test('of many invalid lines, the first twenty are listed, and all are counted', async () => {
  const text = `${`${unnumbered}\n`.repeat(batchPetsMax)}${'{}\n'.repeat(30)}${`${unnumbered}\n`.repeat(batchPetsMax)}`
  const { found, problems } = await readPets(text)
  expect([found.length, problems.length]).toEqual([1, 21])
  expect(problems[0]).toEndWith('invalid lines: 30')
  expect(problems.at(-1)).toStartWith(`line ${batchPetsMax + 20}: name is missing`)
})

test('many lines need no ascending ids if they get new ones', async () => {
  expect((await readPets([3, 7, 7, 2].map(rex).join('\n'))).found.flat()).toHaveLength(4)
})
