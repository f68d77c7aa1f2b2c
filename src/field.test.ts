import { describe, expect, test } from 'bun:test'
import { invalid, oneOf, show, unknownNames } from './field.ts'
import { InexactNumber } from './int64.ts'

describe('one of several words', () => {
  const size = oneOf(['small', 'large'])

  test.each(['small', 'large'] as const)('%s is read', word => {
    expect(size.read(word)).toBe(word)
  })

  test.each(['', 'Small', 'small ', 'smal', 'small,large', 'toString', 0, true, null, undefined, {}])(
    '%p is refused',
    value => {
      expect(size.read(value)).toBeUndefined()
    },
  )

  test('a list of one of the words is refused', () => {
    expect(size.read(['small'])).toBeUndefined()
  })

  test('what is published and what a message says name the same words', () => {
    expect(size.schema).toEqual({ type: 'string', enum: ['small', 'large'] })
    expect(size.expected).toBe('one of small, large')
  })
})

describe('a value in a message', () => {
  test.each<[unknown, string]>([
    ['abc', '"abc"'],
    ['', '""'],
    ['say "hi"', '"say \\"hi\\""'],
    ['two\nlines', '"two\\nlines"'],
    ['\u0000', '"\\u0000"'],
    ['\ud83d', '"\\ud83d"'],
    [5, '5'],
    [-0.5, '-0.5'],
    [9223372036854775808n, '9223372036854775808'],
    [true, 'true'],
    [null, 'null'],
    [undefined, 'undefined'],
    [[1, 2], '[…]'],
    [{}, '{…}'],
  ])('%p is shown as %s', (value, shown) => {
    expect(show(value)).toBe(shown)
  })

  test('a number that a double would change is shown as it was sent', () => {
    expect(show(new InexactNumber('1e400'))).toBe('1e400')
  })

  test('40 characters are shown whole, and more are cut', () => {
    expect(show('x'.repeat(40))).toBe(`"${'x'.repeat(40)}"`)
    expect(show('x'.repeat(41))).toBe(`"${'x'.repeat(40)}…"`)
    expect(show(10n ** 60n)).toBe(`1${'0'.repeat(39)}…`)
    expect(show(new InexactNumber('9'.repeat(60_000)))).toBe(`${'9'.repeat(40)}…`)
  })

  test('a cut through a character leaves no half of it', () => {
    expect(show(`x${'😀'.repeat(30)}`)).toBe(`"x${'😀'.repeat(19)}\ufffd…"`)
  })
})

test('a problem names the field, what was found and what was expected', () => {
  expect(invalid('limit', 'abc', { expected: 'an integer from 1 to 100' })).toBe(
    'Cannot read limit "abc": expected a whole number from 1 to 100',
  )
})

describe('unknown names', () => {
  test('each is a problem of its own', () => {
    expect(unknownNames('property', ['id', 'name', 'colour'], ['name', 'status'])).toEqual([
      'Unknown property "id": expected only name, status',
      'Unknown property "colour": expected only name, status',
    ])
  })

  test('where nothing is known, none is expected', () => {
    expect(unknownNames('parameter', ['page'], [])).toEqual(['Unknown parameter "page": expected none'])
  })

  test.each(['Name', 'name ', '', '__proto__', 'constructor', 'length'])('%j is not name', sent => {
    expect(unknownNames('property', [sent], ['name'])).toHaveLength(1)
  })

  test('known names are no problem', () => {
    expect(unknownNames('property', ['status', 'name'], ['name', 'status'])).toEqual([])
    expect(unknownNames('property', [], [])).toEqual([])
  })
})
