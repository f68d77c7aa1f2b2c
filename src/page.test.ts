import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { int64Max, int64Min } from './int64.ts'
import { cursorFor, pageLimit, writeCursor } from './page.ts'

describe('limit', () => {
  test.each<[string, number]>([
    ['1', 1],
    ['9', 9],
    ['20', 20],
    ['99', 99],
    ['100', 100],
  ])('%s is read', (text, limit) => {
    expect(pageLimit.read(text)).toBe(limit)
  })

  test.each([
    '',
    '0',
    '00',
    '01',
    '-1',
    '101',
    '999',
    '1000',
    '1.0',
    '1.5',
    '1e1',
    '+5',
    ' 5',
    '5 ',
    '5\n',
    '0x5',
    '５',
    'abc',
    'null',
    '99999999999999999999',
    5,
    5n,
    null,
    true,
  ])('limit %p is refused, never clamped', value => {
    expect(pageLimit.read(value)).toBeUndefined()
  })

  test('what is published is 1 to 100, and 20 by default', () => {
    expect(pageLimit.schema).toEqual({ type: 'integer', minimum: 1, maximum: 100, default: 20 })
    expect(pageLimit.expected).toBe('a whole number from 1 to 100')
  })
})

describe('cursor', () => {
  const statuses = ['available', 'pending', 'sold', undefined] as const
  const anyId = fc.bigInt({ min: int64Min, max: int64Max })
  const anyStatus = fc.constantFrom(...statuses)
  const sold = writeCursor(20n, 'sold')

  // A client may hold a cursor while the service is upgraded under it.
  test.each<[string, bigint, (typeof statuses)[number]]>([
    ['AQAAAAAAAAAUPIb-1w', 20n, undefined],
    ['AQAAAAAAAAAU3r1BKQ', 20n, 'sold'],
    ['AX__________-iOzEA', int64Max, 'available'],
    ['AYAAAAAAAAAAfhUz3g', int64Min, undefined],
  ])('%s stays the cursor after %p', (text, after, status) => {
    expect(writeCursor(after, status)).toBe(text)
    expect(cursorFor(status).read(text)).toBe(after)
  })

  test('every id comes back from its cursor, for its status and for no other', () => {
    fc.assert(
      fc.property(anyId, anyStatus, (after, status) => {
        const cursor = writeCursor(after, status)
        for (const asked of statuses) {
          expect(cursorFor(asked).read(cursor)).toBe(asked === status ? after : undefined)
        }
      }),
    )
  })

  test('a cursor is as published, so that it needs no escaping in a link', () => {
    const published = new RegExp(String(cursorFor(undefined).schema['pattern']), 'u')
    fc.assert(
      fc.property(anyId, anyStatus, (after, status) => expect(writeCursor(after, status)).toMatch(published)),
    )
  })

  test('a cursor with any one character changed is refused', () => {
    for (let position = 0; position < sold.length; position++) {
      for (let code = 0x20; code < 0x7f; code++) {
        const char = String.fromCharCode(code)
        if (char === sold[position]) continue
        const changed = sold.slice(0, position) + char + sold.slice(position + 1)
        expect(cursorFor('sold').read(changed)).toBeUndefined()
      }
    }
  })

  test('a cursor with any one character dropped is refused', () => {
    for (let position = 0; position < sold.length; position++) {
      expect(cursorFor('sold').read(sold.slice(0, position) + sold.slice(position + 1))).toBeUndefined()
    }
  })

  test.each([
    ['nothing', ''],
    ['a word', 'abc'],
    ['an id', '20'],
    ['padding after it', `${sold}==`],
    ['white space before it', ` ${sold}`],
    ['a line end after it', `${sold}\n`],
    ['one character more', `${sold}A`],
    ['it twice', sold + sold],
    ['plain base64', 'AX//////////+iOzEA'],
    ['another version', `Ag${sold.slice(2)}`],
    ['a checksum of zeros', 'AQAAAAAAAAAUAAAAAA'],
    ['a long text', 'A'.repeat(100_000)],
    ['a number', 20],
    ['a bigint', 20n],
    ['null', null],
  ])('%s is no cursor', (_what, value) => {
    for (const status of statuses) expect(cursorFor(status).read(value)).toBeUndefined()
  })

  test('no other text is a cursor', () => {
    const text = fc.oneof(fc.string(), fc.base64String(), fc.string({ minLength: 18, maxLength: 18 }))
    fc.assert(fc.property(text, anyStatus, (text, status) => cursorFor(status).read(text) === undefined))
  })
})
