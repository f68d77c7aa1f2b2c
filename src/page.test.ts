import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { int64Max, int64Min } from './int64.ts'
import { cursorFor, cursorSchema, pageLimit, writeCursor } from './page.ts'

describe('a limit', () => {
  test('is read in decimal digits, and refused, not clamped, otherwise', () => {
    for (const limit of [1, 9, 20, 99, 100]) expect(pageLimit.read(String(limit))).toBe(limit)
    const refused = ['', '0', '01', '-1', '101', '999', '1000', '1.0', '1e1', '+5', ' 5', '5\n', '0x5', '５', 'abc']
    expect(refused.filter(text => pageLimit.read(text) !== undefined)).toEqual([])
  })

  test('is published as 1 to 100, with 20 as the default', () => {
    expect(pageLimit.schema).toEqual({ type: 'integer', minimum: 1, maximum: 100, default: 20 })
  })
})

describe('a cursor', () => {
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

  test('gives its id for its status, and for no other; a link needs no escaping', () => {
    expect(cursorSchema).toEqual({ type: 'string', minLength: 1, maxLength: 256 })
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

  test('with any one character changed or removed is refused', () => {
    const visible = Array.from({ length: 0x5f }, (_, index) => String.fromCharCode(0x20 + index))
    for (let position = 0; position < sold.length; position++) {
      for (const char of ['', ...visible.filter(char => char !== sold[position])]) {
        const changed = sold.slice(0, position) + char + sold.slice(position + 1)
        expect(cursorFor('sold').read(changed)).toBeUndefined()
      }
    }
  })

  test('with padding, in plain base64, with another checksum, empty or long is refused', () => {
    const refused = [`${sold}==`, 'AX//////////+iOzEA', 'AQAAAAAAAAAUAAAAAA', '', 'A'.repeat(100_000)]
    for (const status of statuses) expect(refused.filter(text => cursorFor(status).read(text))).toEqual([])
  })
})
