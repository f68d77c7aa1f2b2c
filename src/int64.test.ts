import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { int64 } from './field.ts'
import { InexactNumber, int64Max, int64Min, parseInt64, parseJson } from './int64.ts'

/** As a body is read: through our JSON parser, so that the digits that were sent are the ones judged. */
function readJsonInt64(text: string): bigint | undefined {
  const parsed = parseJson(text)
  if (!parsed.ok) throw new Error(`${text} is not JSON: ${parsed.problem}`)
  return int64.read(parsed.value)
}

const anyInt64 = fc.bigInt({ min: int64Min, max: int64Max })

describe('int64', () => {
  test.each<[string, bigint]>([
    ['0', 0n],
    ['-0', 0n],
    ['-0.0', 0n],
    ['0e1000000000', 0n],
    ['0.000000000000000000000', 0n],
    ['7', 7n],
    ['-7', -7n],
    ['1.0', 1n],
    ['1e3', 1000n],
    ['1E+3', 1000n],
    ['-1e3', -1000n],
    ['1.5e1', 15n],
    ['10e-1', 1n],
    ['1200e-2', 12n],
    ['0.001e3', 1n],
    ['9007199254740991', 9007199254740991n],
    ['9007199254740992', 9007199254740992n],
    ['9007199254740993', 9007199254740993n],
    ['9007199254740993.0', 9007199254740993n],
    ['9.007199254740993e15', 9007199254740993n],
    ['-9007199254740993', -9007199254740993n],
    ['9223372036854775807', int64Max],
    ['9223372036854775807.000', int64Max],
    ['9.223372036854775807e18', int64Max],
    ['9223372036854775806', int64Max - 1n],
    ['-9223372036854775808', int64Min],
    ['-9223372036854775807', int64Min + 1n],
    ['1e18', 10n ** 18n],
    ['1000000000000000000000e-3', 10n ** 18n],
  ])('int64 reads %s', (text, value) => {
    expect(readJsonInt64(text)).toBe(value)
  })

  test.each([
    '9223372036854775808',
    '-9223372036854775809',
    '9.223372036854775808e18',
    '9223372036854775807.5',
    '18446744073709551616',
    '99999999999999999999999999999999',
    '1e19',
    '1e400',
    '-1e400',
    '1e-400',
    '1e1000000000',
    '1e-1000000000',
    '1.5',
    '-0.1',
    '15e-1',
    '1.0000000000000000001',
    '0.9999999999999999999',
    '123456789012345.000000000000001',
    '9007199254740993.1',
    '"1"',
    '""',
    'true',
    'false',
    'null',
    '[1]',
    '{}',
    '{"source":"1"}',
  ])('int64 refuses %s', text => {
    expect(readJsonInt64(text)).toBeUndefined()
  })

  test.each([
    ['undefined', undefined],
    ['a huge exponent that is itself no double', new InexactNumber(`1e${'9'.repeat(400)}`)],
    ['a tiny exponent that is itself no double', new InexactNumber(`1e-${'9'.repeat(400)}`)],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['a double beyond 2^53', 2 ** 53],
    ['a bigint above the range', int64Max + 1n],
    ['a bigint below the range', int64Min - 1n],
  ])('int64 refuses %s', (_what, value) => {
    expect(int64.read(value)).toBeUndefined()
  })

  test('every int64 is read exactly, however it is spelt', () => {
    fc.assert(
      fc.property(anyInt64, fc.nat(30), (value, zeros) => {
        expect(readJsonInt64(`${value}`)).toBe(value)
        expect(readJsonInt64(`${value}.0${'0'.repeat(zeros)}`)).toBe(value)
        expect(readJsonInt64(`${value * 10n ** BigInt(zeros)}e-${zeros}`)).toBe(value)
      }),
    )
  })

  test('no integer outside the range is read as one inside', () => {
    const outside = fc.oneof(fc.bigInt({ min: int64Max + 1n }), fc.bigInt({ max: int64Min - 1n }))
    fc.assert(fc.property(outside, value => expect(readJsonInt64(`${value}`)).toBeUndefined()))
  })

  test('what is expected names both ends of the range', () => {
    expect(int64.expected).toBe('a whole number from -9223372036854775808 to 9223372036854775807')
  })
})

describe('an int64 in a path', () => {
  test.each<[string, bigint]>([
    ['0', 0n],
    ['1', 1n],
    ['-1', -1n],
    ['9007199254740993', 9007199254740993n],
    ['9223372036854775807', int64Max],
    ['-9223372036854775808', int64Min],
  ])('%s is read', (text, value) => {
    expect(parseInt64(text)).toBe(value)
  })

  test.each([
    '',
    '-',
    '-0',
    '+1',
    '01',
    '-01',
    '1.0',
    '1e3',
    '0x10',
    '1_000',
    ' 1',
    '1 ',
    '1\n',
    '１',
    'abc',
    '9223372036854775808',
    '-9223372036854775809',
    '10000000000000000000',
  ])('%j is refused: it is not the one spelling of an int64', text => {
    expect(parseInt64(text)).toBeUndefined()
  })

  test('every int64 survives being written and read', () => {
    fc.assert(fc.property(anyInt64, value => expect(parseInt64(String(value))).toBe(value)))
  })
})
