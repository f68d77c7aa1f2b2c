import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { BadLine, lineBytesMax, readLines } from './lines.ts'

const utf8 = new TextEncoder()

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

async function read(bytes: Uint8Array, size = 7) {
  const lines: string[] = []
  try {
    for await (const some of readLines(inChunks(bytes, size))) lines.push(...some)
    return { lines }
  } catch (error) {
    if (!(error instanceof BadLine)) throw error
    return { lines, line: error.line, why: error.message }
  }
}

describe('lines', () => {
  test.each<[string, string[]]>([
    ['', []],
    ['a', ['a']],
    ['a\n', ['a']],
    ['a\nb', ['a', 'b']],
    ['\n\na\n\n', ['', '', 'a', '']],
    ['a\r\nb\r\n', ['a\r', 'b\r']],
    ['a\u2028b\u2029c\u0085d\n', ['a\u2028b\u2029c\u0085d']],
    ['\ufeffa\n\ufeffb', ['a', '\ufeffb']],
    ['\ufeff', ['']],
    ['犬\n😀\n', ['犬', '😀']],
  ])('%j is %p', async (text, lines) => {
    expect(await read(utf8.encode(text))).toEqual({ lines })
  })

  test('are the same, however the bytes come', async () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '\n', '\r', 'é', '犬', '😀', '\ufeff'),
      maxLength: 60,
    })
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 9 }), async (text, size) => {
        const { lines } = await read(utf8.encode(text), size)
        const expected = text.replace(/^\ufeff/, '').split('\n')
        if (text.endsWith('\n') || text === '') expected.pop()
        expect(lines).toEqual(expected)
      }),
    )
  })

  test.each([
    ['a byte that begins nothing', [0xff]],
    ['a character that is cut off', [0xe7, 0x8a]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['half of a surrogate pair', [0xed, 0xa0, 0x80]],
  ])('%s is not UTF-8, and the lines before it are read', async (_, wrong) => {
    const bytes = Uint8Array.from([...utf8.encode('one\ntwo\n'), ...wrong, ...utf8.encode('\nfour')])
    for (const size of [1, 5, 100]) {
      expect(await read(bytes, size)).toEqual({
        lines: ['one', 'two'],
        line: 3,
        why: 'it has bytes that are not UTF-8',
      })
    }
  })

  test('of 64 KiB are read, whatever their characters; one byte more is too many', async () => {
    for (const character of ['a', 'é', '犬']) {
      const bytes = utf8.encode(character).length
      const most = character.repeat(Math.floor(lineBytesMax / bytes)) + 'a'.repeat(lineBytesMax % bytes)
      expect(utf8.encode(most)).toHaveLength(lineBytesMax)
      expect((await read(utf8.encode(`${most}\n${most}`), 50_000)).lines).toEqual([most, most])
      expect(await read(utf8.encode(`first\n${most}a\nlast`), 50_000)).toEqual({
        lines: ['first'],
        line: 2,
        why: 'it has more than 65536 bytes',
      })
    }
  })

  test('without an end are given up, not gathered', async () => {
    let sent = 0
    async function* endless() {
      for (const chunk = utf8.encode('a'.repeat(1_000)); ; sent += 1_000) yield chunk
    }
    const reading = (async () => {
      for await (const _ of readLines(endless()));
    })()
    expect(await reading.catch(error => error.line)).toBe(1)
    expect(sent).toBeLessThan(2 * lineBytesMax)
  })
})
