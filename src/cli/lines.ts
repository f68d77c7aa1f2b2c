/** Bytes of a line, at most, as of a request's body. */
export const lineBytesMax = 64 * 1024

/** What is wrong with a line; the first one has number 1. */
export class BadLine extends Error {
  override readonly name = 'BadLine'
  readonly line: number

  constructor(line: number, why: string) {
    super(why)
    this.line = line
  }
}

const lineFeed = 0x0a

/**
 * Lines of UTF-8 text, many at a time. Only a line feed ends one: a carriage return before it stays, white space to JSON. A
 * byte order mark in front of everything is left out. Lines before a {@link BadLine} are handed on before it is thrown.
 */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  let rest = new Uint8Array()
  let number = 1
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(lineFeed)
    // A line without an end is not gathered for ever.
    if (end === -1 && rest.length > lineBytesMax) break
    const bytes = Buffer.concat([rest, chunk])
    const whole = end === -1 ? 0 : rest.length + end + 1
    rest = bytes.subarray(whole)
    if (whole === 0) continue
    number += yield* linesOf(bytes.subarray(0, whole - 1), number)
  }
  if (rest.length > 0) yield* linesOf(rest, number)
}

/** Hands on the lines of these bytes, and says how many they were. */
function* linesOf(bytes: Uint8Array, number: number): Generator<readonly string[], number> {
  // At once, where nothing can be wrong with them: that is several times faster than one by one.
  const lines = decode(bytes)?.split('\n')
  if (lines?.every(isSurelyShort)) {
    yield number === 1 ? withoutMark(lines) : lines
    return lines.length
  }
  return yield* oneByOne(bytes, number)
}

function* oneByOne(bytes: Uint8Array, number: number): Generator<readonly string[], number> {
  let line = number
  for (let start = 0; start <= bytes.length; line++) {
    const found = bytes.indexOf(lineFeed, start)
    const end = found === -1 ? bytes.length : found
    if (end - start > lineBytesMax) throw new BadLine(line, `it has more than ${lineBytesMax} bytes`)
    const text = decode(bytes.subarray(start, end))
    if (text === undefined) throw new BadLine(line, 'it has bytes that are not UTF-8')
    yield line === 1 ? withoutMark([text]) : [text]
    start = end + 1
  }
  return line - number
}

/** A UTF-16 unit stands for 3 bytes of UTF-8 at most. */
function isSurelyShort(line: string): boolean {
  return line.length * 3 <= lineBytesMax
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

function withoutMark([first = '', ...others]: readonly string[]): readonly string[] {
  return [first.replace(/^\ufeff/, ''), ...others]
}
