import { expect, test } from 'bun:test'
import { int64, invalid, missing, oneOf, show, unknownNames } from './field.ts'
import { InexactNumber } from './int64.ts'

test('a field with a set of words reads only these, publishes them and names them in messages', () => {
  const size = oneOf(['small', 'large'])
  const sent = ['small', 'large', '', 'Small', 'small ', 'toString', 0, null, undefined, ['small']]
  expect(sent.map(size.read).filter(read => read !== undefined)).toEqual(['small', 'large'])
  expect(size.schema).toEqual({ type: 'string', enum: ['small', 'large'] })
  expect(missing('size', size)).toBe('size is missing: expected small or large')
})

test.each<[unknown, string]>([
  ['say "hi"', '"say \\"hi\\""'],
  ['\u0000', '"\\u0000"'],
  [[1, 2], '[…]'],
  [{}, '{…}'],
  [new InexactNumber('1e400'), '1e400'],
  // At most 40 characters.
  ['x'.repeat(40), `"${'x'.repeat(40)}"`],
  ['x'.repeat(41), `"${'x'.repeat(40)}…"`],
  [10n ** 60n, `1${'0'.repeat(39)}…`],
  [new InexactNumber('9'.repeat(60_000)), `${'9'.repeat(40)}…`],
  [`x${'😀'.repeat(30)}`, `"x${'😀'.repeat(19)}\ufffd…"`],
])('a message shows the value %p as %s', (value, shown) => {
  expect(show(value)).toBe(shown)
})

test.each<[unknown, string]>([
  [new InexactNumber('9'.repeat(60_000)), 'is too large: expected at most 9223372036854775807'],
  [new InexactNumber('-9223372036854775809'), 'is too small: expected at least -9223372036854775808'],
  [new InexactNumber('9223372036854775807.5'), 'is 9223372036854775807.5: expected a 64-bit integer'],
])('a message about a field says how an integer is out of range: %p', (value, problem) => {
  expect(invalid('categoryId', value, int64)).toBe(`categoryId ${problem}`)
})

test('20 unknown names are named, and further ones are counted', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`)
  const last = 'unknown parameter "p19": this operation takes no parameters'
  expect(unknownNames('parameter', names(20), []).slice(19)).toEqual([last])
  expect(unknownNames('parameter', names(21), []).slice(19)).toEqual([last, 'and 1 more'])
  const sent = ['Name', 'name ', '', '__proto__', 'constructor', 'length', 'name']
  expect(unknownNames('property', sent, ['name', 'status'])).toHaveLength(6)
  expect(unknownNames('property', ['Name'], ['name', 'status'])).toEqual([
    'unknown property "Name": expected name or status',
  ])
})
