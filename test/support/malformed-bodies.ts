import {
  added,
  animal,
  chunk,
  chunked,
  encoded,
  get,
  lastChunk,
  listed,
  type MalformedRow,
  post,
  refused,
  sized,
} from './malformed-bytes.ts'

const right = animal.length
const size = right.toString(16)
const withLengths = (...lengths: readonly (string | number)[]) => post(lengths.map(sized).join(''), animal)

const lengths: readonly MalformedRow[] = [
  ['Content-Length and Transfer-Encoding', post(sized(right) + chunked, chunk(animal) + lastChunk), refused],
  [
    'Transfer-Encoding, then Content-Length',
    post(chunked + sized(right), chunk(animal) + lastChunk),
    refused,
  ],
  ['the same Content-Length twice', withLengths(right, right), added],
  ['two Content-Lengths, the shorter first', withLengths(2, right), refused],
  ['two Content-Lengths, the longer first', withLengths(right, 2), refused],
  ['a list of equal lengths', withLengths(`${right}, ${right}`), refused],
  ['a length with a plus', withLengths(`+${right}`), refused],
  ['a negative length', withLengths('-1'), refused],
  ['a hexadecimal length', withLengths(`0x${size}`), refused],
  ['a length with a space in it', withLengths('2 9'), refused],
  ['a length with a fraction', withLengths(`${right}.0`), refused],
  ['a length with a letter behind', withLengths(`${right}a`), refused],
  ['a length with zeros before', withLengths(`000${right}`), added],
  ['an empty length', withLengths(''), refused],
  ['a length with white space around', withLengths(`  ${right}\t`), added],
  ['a length beyond 64 bits', withLengths('99999999999999999999999'), refused],
  ['a length that wraps to the right one', withLengths((2n ** 64n + BigInt(right)).toString()), refused],
  ['a length above our limit', withLengths(65_537), '413 body_too_large, stuck'],
  ['a length above the body', withLengths(right + 1), 'nothing, waiting'],
  ['no length, so that the body is a request', post('', animal), '400 missing_body; 400 empty, closed'],
  ['a length of 0, so that the body is a request', withLengths(0), '400 missing_body; 400 empty, closed'],
  // The runtime finds the line end while the animal is being stored, and its answer comes first.
  ['a line end behind a POST', `${post(sized(right), animal)}\r\n`, refused, '201; 400 empty, closed'],
  [
    'a line end behind a POST that closes',
    `${post(`${sized(right)}Connection: close\r\n`, animal)}\r\n`,
    '201, closed',
  ],
  ['a GET with a body', get(sized(right)) + animal, listed],
]

/** One chunk, its size line as given. */
const sizedChunk = (line: string) => post(chunked, `${line}${animal}\r\n${lastChunk}`)

const chunks: readonly MalformedRow[] = [
  ['sound chunks', post(chunked, chunk(animal.slice(0, 9)) + chunk(animal.slice(9)) + lastChunk), added],
  ['a chunk size that is no number', sizedChunk('zz\r\n'), refused],
  ['a negative chunk size', sizedChunk('-1\r\n'), refused],
  ['a chunk size with 0x', sizedChunk(`0x${size}\r\n`), refused],
  ['a chunk size with a plus', sizedChunk(`+${size}\r\n`), refused],
  ['a chunk size with a space before', sizedChunk(` ${size}\r\n`), refused],
  ['a chunk size with a space behind', sizedChunk(`${size} \r\n`), refused],
  ['an empty chunk size', sizedChunk('\r\n'), refused],
  ['a chunk size with many zeros before', sizedChunk(`${'0'.repeat(40)}${size}\r\n`), added],
  ['a chunk size beyond 64 bits', sizedChunk('fffffffffffffffff\r\n'), refused],
  ['a chunk size that wraps to the right one', sizedChunk(`100000000000000${size}\r\n`), refused],
  ['a chunk extension', sizedChunk(`${size};a=b\r\n`), added],
  ['a chunk extension of 17 KB', sizedChunk(`${size};a=${'b'.repeat(17_000)}\r\n`), '413 empty, closed'],
  ['a line end inside a chunk extension', sizedChunk(`${size};a="\r\n"\r\n`), refused],
  ['a chunk extension ended by a bare LF', sizedChunk(`${size};a\n`), refused],
  ['a chunk size ended by a bare LF', sizedChunk(`${size}\n`), refused],
  ['a chunk size ended by a bare CR', sizedChunk(`${size}\r`), refused],
  ['a chunk without a line end', post(chunked, `${size}\r\n${animal}${lastChunk}`), refused],
  ['a chunk ended by a bare LF', post(chunked, `${size}\r\n${animal}\n${lastChunk}`), refused],
  ['a chunk longer than its size', sizedChunk('5\r\n'), refused],
  ['chunks that break off', post(chunked, chunk(animal).slice(0, 9)), 'nothing, waiting'],
  ['chunks without a last one', post(chunked, chunk(animal)), 'nothing, waiting'],
  // The runtime does not take trailers, and finds them only after the body has gone to us.
  [
    'a trailer',
    post(chunked, `${chunk(animal)}0\r\nX-Trailer: 1\r\n\r\n`),
    refused,
    '201; 400 empty, closed',
  ],
  [
    'a length as a trailer',
    post(chunked, `${chunk(animal)}0\r\n${sized(5)}\r\n`),
    refused,
    '201; 400 empty, closed',
  ],
]

const encodedAs = (encoding: string) => post(encoded(encoding), chunk(animal) + lastChunk)

const encodings: readonly MalformedRow[] = [
  ['Transfer-Encoding: CHUNKED', encodedAs('CHUNKED'), added],
  ['Transfer-Encoding: xchunked', encodedAs('xchunked'), refused],
  ['Transfer-Encoding: identity', encodedAs('identity'), refused],
  ['Transfer-Encoding: chunked, identity', encodedAs('chunked, identity'), refused],
  ['Transfer-Encoding: gzip, chunked', encodedAs('gzip, chunked'), refused],
  ['Transfer-Encoding: chunked, chunked', encodedAs('chunked, chunked'), refused],
  ['Transfer-Encoding: chunked, twice', post(chunked + chunked, chunk(animal) + lastChunk), refused],
  ['Transfer-Encoding twice, differing', encodedAs('chunked\r\nTransfer-Encoding: identity'), refused],
  ['Transfer-Encoding in quotes', encodedAs('"chunked"'), refused],
  ['an empty Transfer-Encoding', encodedAs(''), refused],
  ['Transfer-Encoding behind a vertical tab', encodedAs('\x0bchunked'), refused],
  ['Transfer-Encoding with a space before its colon', encodedAs('chunked').replace('ing:', 'ing :'), refused],
  ['Transfer-Encoding on HTTP/1.0', encodedAs('chunked').replace('HTTP/1.1', 'HTTP/1.0'), refused],
]

export const malformedBodies = [...lengths, ...chunks, ...encodings]
