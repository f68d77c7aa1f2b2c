import { describe, expect, test } from 'bun:test'
import { int64, invalid, missing, oneOf, oneOfText, show, unknownNames } from './field.ts'
import { InexactNumber } from './int64.ts'

describe('a field with a set of words', () => {
  const size = oneOf(['small', 'large'])

  test.each(['small', 'large'] as const)('reads %s', word => {
    expect(size.read(word)).toBe(word)
  })

  test.each([
    ...['', 'Small', 'small ', 'smal', 'small,large', 'toString'],
    ...[0, true, null, undefined, {}, [['small']]],
  ])('refuses %p', value => {
    expect(size.read(value)).toBeUndefined()
  })

  test('publishes the words and names them in messages', () => {
    expect(size.schema).toEqual({ type: 'string', enum: ['small', 'large'] })
    expect(size.expected).toBe('small or large')
  })

  test.each<[readonly string[], string]>([
    [['a'], 'a'],
    [['a', 'b'], 'a or b'],
    [['a', 'b', 'c'], 'a, b or c'],
  ])('names %j as "%s"', (words, text) => {
    expect(oneOfText(words)).toBe(text)
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
    [-0.5, '-0.5'],
    [9223372036854775808n, '9223372036854775808'],
    [true, 'true'],
    [null, 'null'],
    [undefined, 'undefined'],
    [[1, 2], '[…]'],
    [{}, '{…}'],
    [new InexactNumber('1e400'), '1e400'],
  ])('%p is shown as %s', (value, shown) => {
    expect(show(value)).toBe(shown)
  })

  test.each([
    ['40 characters are shown', 'x'.repeat(40), `"${'x'.repeat(40)}"`],
    ['the 41st character is cut', 'x'.repeat(41), `"${'x'.repeat(40)}…"`],
    ['a long integer is cut', 10n ** 60n, `1${'0'.repeat(39)}…`],
    ['a long inexact number is cut', new InexactNumber('9'.repeat(60_000)), `${'9'.repeat(40)}…`],
    ['half a character is replaced', `x${'😀'.repeat(30)}`, `"x${'😀'.repeat(19)}\ufffd…"`],
  ])('%s', (_what, value, shown) => {
    expect(show(value)).toBe(shown)
  })
})

describe('a message about a field', () => {
  test('names the field, the value and a valid one', () => {
    const message = 'limit is "abc": expected an integer from 1 to 100'
    expect(invalid('limit', 'abc', { expected: 'an integer from 1 to 100' })).toBe(message)
  })

  test('uses the words of the field if it has its own', () => {
    expect(invalid('name', '', { expected: 'text', problem: value => `is "${value}"!` })).toBe('name is ""!')
  })

  test('says that a field is missing', () => {
    expect(missing('categoryId', int64)).toBe('categoryId is missing: expected a 64-bit integer')
    expect(int64.schema).toEqual({ type: 'integer', format: 'int64' })
  })
})

describe('unknown names', () => {
  test.each<[string, string[], string[], string[]]>([
    [
      'each is one problem',
      ['id', 'name', 'colour'],
      ['name', 'status'],
      ['unknown property "id": expected name or status', 'unknown property "colour": expected name or status'],
    ],
    ['without known names, none is expected', ['page'], [], ['unknown property "page": expected none']],
    ['known names are no problem', ['status', 'name'], ['name', 'status'], []],
  ])('%s', (_what, sent, known, problems) => {
    expect(unknownNames('property', sent, known)).toEqual(problems)
  })

  test.each(['Name', 'name ', '', '__proto__', 'constructor', 'length'])('%j is not name', sent => {
    expect(unknownNames('property', [sent], ['name'])).toHaveLength(1)
  })

  test('20 are named, and further ones are counted', () => {
    const names = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`)
    expect(unknownNames('parameter', names(20), [])).toHaveLength(20)
    expect(unknownNames('parameter', names(20), []).at(-1)).toBe('unknown parameter "p19": expected none')
    expect(unknownNames('parameter', names(23), []).slice(19)).toEqual([
      'unknown parameter "p19": expected none',
      'and 3 more',
    ])
  })
})
