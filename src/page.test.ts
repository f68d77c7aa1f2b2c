import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { invalid } from './field.ts'
import { int64Max, int64Min } from './int64.ts'
import { cursorFor, pageLimit, writeCursor } from './page.ts'

test('a limit is read in decimal digits from 1 to 100, and refused, not clamped, otherwise', () => {
  for (const limit of [1, 9, 20, 99, 100]) expect(pageLimit.read(String(limit))).toBe(limit)
  const refused = ['', '0', '01', '-1', '101', '999', '1000', '1.0', '1e1', '+5', ' 5', '5\n', '0x5', '５', 'abc']
  expect(refused.filter(text => pageLimit.read(text) !== undefined)).toEqual([])
  expect(invalid('limit', '0', pageLimit)).toBe('limit is "0": expected an integer from 1 to 100')
  expect(pageLimit.schema).toEqual({ type: 'integer', minimum: 1, maximum: 100, default: 20 })
})

const statuses = ['available', 'pending', 'sold', undefined] as const
const anyId = fc.bigInt({ min: int64Min, max: int64Max })
const anyStatus = fc.constantFrom(...statuses)
const sold = writeCursor(20n, 'sold')

// A client may use a cursor across an upgrade of the service.
test.each<[string, bigint, (typeof statuses)[number]]>([
  ['AQAAAAAAAAAUPIb-1w', 20n, undefined],
  ['AQAAAAAAAAAU3r1BKQ', 20n, 'sold'],
  ['AX__________-iOzEA', int64Max, 'available'],
  ['AYAAAAAAAAAAfhUz3g', int64Min, undefined],
])('%s is the cursor after %p in every version', (text, after, status) => {
  expect(writeCursor(after, status)).toBe(text)
  expect(cursorFor(status).read(text)).toBe(after)
})

test('a cursor gives its id for its status, and for no other; a link needs no escaping', () => {
  fc.assert(
    fc.property(anyId, anyStatus, (after, status) => {
      const cursor = writeCursor(after, status)
      expect(cursor).toMatch(/^[A-Za-z0-9_-]{18}$/)
      for (const asked of statuses) {
        expect(cursorFor(asked).read(cursor)).toBe(asked === status ? after : undefined)
      }
    }),
  )
})

test('a cursor with one character changed or removed, with padding, in plain base64, empty or long is refused', () => {
  const refused = [`${sold}==`, 'AX//////////+iOzEA', 'AQAAAAAAAAAUAAAAAA', '', 'A'.repeat(100_000)]
  for (let position = 0; position < sold.length; position++) {
    for (const char of ['', ...'AZaz09-_+/= '.replace(sold[position] ?? '', '')]) {
      refused.push(sold.slice(0, position) + char + sold.slice(position + 1))
    }
  }
  for (const status of statuses) expect(refused.filter(text => cursorFor(status).read(text))).toEqual([])
})
