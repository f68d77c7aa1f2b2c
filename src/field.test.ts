import { describe, expect, test } from 'bun:test'
import { int64, invalid, missing, oneOf, show, unknownNames } from './field.ts'
import { InexactNumber } from './int64.ts'

test('a field with a set of words reads only these, publishes them and names them in messages', () => {
  const size = oneOf(['small', 'large'])
  const sent = ['small', 'large', '', 'Small', 'small ', 'toString', 0, null, undefined, ['small']]
  expect(sent.map(size.read).filter(read => read !== undefined)).toEqual(['small', 'large'])
  expect(size.schema).toEqual({ type: 'string', enum: ['small', 'large'] })
  expect(size.expected).toBe('small or large')
})

describe('a value in a message', () => {
  test.each<[unknown, string]>([
    ['say "hi"', '"say \\"hi\\""'],
    ['\u0000', '"\\u0000"'],
    [-0.5, '-0.5'],
    [null, 'null'],
    [[1, 2], '[…]'],
    [{}, '{…}'],
    [new InexactNumber('1e400'), '1e400'],
    // At most 40 characters.
    ['x'.repeat(40), `"${'x'.repeat(40)}"`],
    ['x'.repeat(41), `"${'x'.repeat(40)}…"`],
    [10n ** 60n, `1${'0'.repeat(39)}…`],
    [new InexactNumber('9'.repeat(60_000)), `${'9'.repeat(40)}…`],
    [`x${'😀'.repeat(30)}`, `"x${'😀'.repeat(19)}\ufffd…"`],
  ])('%#: %p is shown as %s', (value, shown) => {
    expect(show(value)).toBe(shown)
  })
})

describe('a message about a field', () => {
  test('says that a field is missing', () => {
    expect(missing('categoryId', int64)).toBe('categoryId is missing: expected a 64-bit integer')
    expect(int64.schema).toEqual({ type: 'integer', format: 'int64' })
  })

  test.each<[unknown, string]>([
    [new InexactNumber('9'.repeat(60_000)), 'is too large: expected at most 9223372036854775807'],
    [new InexactNumber('-9223372036854775809'), 'is too small: expected at least -9223372036854775808'],
    [new InexactNumber('9223372036854775807.5'), 'is 9223372036854775807.5: expected a 64-bit integer'],
    ['9223372036854775808', 'is "9223372036854775808": expected a 64-bit integer'],
    [[5], 'is […]: expected a 64-bit integer'],
    [1.5, 'is 1.5: expected a 64-bit integer'],
  ])('says how an integer is out of range: %p', (value, problem) => {
    expect(int64.read(value)).toBeUndefined()
    expect(invalid('categoryId', value, int64)).toBe(`categoryId ${problem}`)
  })
})

describe('unknown names', () => {
  test.each(['Name', 'name ', '', '__proto__', 'constructor', 'length'])('%j is not name', sent => {
    expect(unknownNames('property', [sent], ['name'])).toHaveLength(1)
  })

  test('20 are named, and further ones are counted', () => {
    const names = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`)
    const last = 'unknown parameter "p19": this operation takes no parameters'
    expect(unknownNames('parameter', names(20), []).slice(19)).toEqual([last])
    expect(unknownNames('parameter', names(23), []).slice(19)).toEqual([last, 'and 3 more'])
  })
})
