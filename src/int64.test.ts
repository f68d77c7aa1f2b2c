import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { InexactNumber, int64Max, int64Min, parseInt64, readInt64 } from './int64.ts'
import { readJson } from './json.ts'

const anyInt64 = fc.bigInt({ min: int64Min, max: int64Max })

/** Reads it as a body is read, so that the digits that were sent are checked. */
function readText(text: string): bigint | undefined {
  const parsed = readJson(text)
  if (!parsed.ok) throw new Error(`${text} is not JSON: ${parsed.problem}`)
  return readInt64(parsed.value)
}

test.each<[bigint, string[]]>([
  [0n, ['0', '-0', '-0.0', '0e1000000000', '0.000000000000000000000']],
  [1n, ['1', '1.0', '10e-1', '0.001e3', '0.00000000000000000001e20']],
  [12n, ['1200e-2', '1.2e1']],
  [-1000n, ['-1e3', '-1E+3']],
  [9007199254740993n, ['9007199254740993', '9007199254740993.0', '9.007199254740993e15']],
  [int64Max, ['9223372036854775807', '9223372036854775807.000', '9.223372036854775807e18']],
  [int64Min, ['-9223372036854775808']],
])('in JSON, %p is read exactly in each spelling: %j', (value, spellings) => {
  for (const text of spellings) expect([text, readText(text)]).toEqual([text, value])
})

test.each([
  ...['9223372036854775808', '-9223372036854775809', '9.223372036854775808e18', '1e19', '-1e400', '1e1000000000'],
  ...['1.5', '-0.1', '15e-1', '1e-400', '1e-1000000000', '1.0000000000000000001', '0.9999999999999999999'],
  ...['9007199254740993.1', '9223372036854775807.5'],
  ...['"1"', '""', 'true', 'null', '[1]', '{}', '{"source":"1"}'],
])('in JSON, %s is refused', text => {
  expect(readText(text)).toBeUndefined()
})

test('in JSON, an exponent beyond every double, a double beyond 2^53 and a bigint above the range are refused', () => {
  const exponents = ['', '-'].map(sign => new InexactNumber(`1e${sign}${'9'.repeat(400)}`))
  expect([...exponents, 2 ** 53, int64Max + 1n].map(readInt64)).toEqual(Array(4).fill(undefined))
})

test('in JSON, every int64 is read exactly in each of its spellings', () => {
  fc.assert(
    fc.property(anyInt64, fc.nat(30), (value, zeros) => {
      expect(readText(`${value}`)).toBe(value)
      expect(readText(`${value}.0${'0'.repeat(zeros)}`)).toBe(value)
      expect(readText(`${value * 10n ** BigInt(zeros)}e-${zeros}`)).toBe(value)
      expect(readInt64(value)).toBe(value)
    }),
    { examples: [int64Min, int64Max].map(value => [value, 0]) },
  )
})

test('in a path, every int64 is read as it is written', () => {
  const property = fc.property(anyInt64, value => expect(parseInt64(String(value))).toBe(value))
  fc.assert(property, { examples: [[0n], [-1n], [int64Min], [int64Max]] })
})

test.each([
  ...['', '-', '-0', '+1', '01', '-01', '1.0', '1e3', '0x10', '1_000', ' 1', '1 ', '1\n', '１', 'abc', 'x0'],
  ...['9223372036854775808', '-9223372036854775809', '10000000000000000000', '9'.repeat(100)],
])('in a path, %j is refused: it is not the one spelling of an int64', text => {
  expect(parseInt64(text)).toBeUndefined()
})
