import { describe, expect, test } from 'bun:test'
import { readExpiry, readKeyOptions } from './keys.ts'
import { UsageError } from './output.ts'

const now = new Date('2026-06-15T12:00:00.000Z')

describe('a key expires', () => {
  test.each([
    ['1m', '2026-06-15T12:01:00.000Z'],
    ['12h', '2026-06-16T00:00:00.000Z'],
    ['90d', '2026-09-13T12:00:00.000Z'],
    ['4w', '2026-07-13T12:00:00.000Z'],
    ['1y', '2027-06-15T12:00:00.000Z'],
    ['99999y', '+101959-01-23T12:00:00.000Z'],
    ['2026-06-16', '2026-06-16T00:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['2026-06-15T12:01Z', '2026-06-15T12:01:00.000Z'],
    ['2026-06-15T12:00:01Z', '2026-06-15T12:00:01.000Z'],
    ['9999-12-31', '9999-12-31T00:00:00.000Z'],
  ])('%s: at %s', (text, end) => {
    expect(readExpiry(text, now)?.toISOString()).toBe(end)
  })

  test.each([
    ...[
      '',
      ' ',
      'never',
      'tomorrow',
      '90',
      'd',
      '0d',
      '01d',
      '-1d',
      '+1d',
      '1.5d',
      '1e3d',
      '100000d',
      '1 d',
      ' 1d',
    ],
    ...['1d ', '1d\n', '1D', '1s', '1mo', '1d12h', '90days', '2030', '2030-01', '2030-1-31', '30-01-31'],
    ...['2030-01-32', '2030-02-29', '2030-04-31', '2030-13-01', '2030-00-01', '2030-01-00', '2030/01/31'],
    ...['31.01.2030', '+002030-01-31', '2030-01-31T12Z', '2030-01-31T24:00Z', '2030-01-31T12:60Z'],
    ...['2030-01-31T12:00:60Z', '2030-02-29T12:00Z', '2030-01-31 12:00Z', '2030-01-31T12:00+02:00'],
    // Without a time zone it would mean another moment on every machine.
    ...['2030-01-31t12:00z', '2030-01-31T12:00'],
    // Not in the future.
    ...['0000-01-01', '2026-06-14', '2026-06-15', '2026-06-15T11:59:59Z', '2026-06-15T12:00Z'],
  ])('%j is refused', text => {
    expect(readExpiry(text, now)).toBeUndefined()
  })
})

describe('options of keys create', () => {
  const till = { name: 'till', createdAt: now }

  test.each([
    [{}, { permission: 'read-write' }],
    [{ '--permission': 'metrics' }, { permission: 'metrics' }],
    [{ '--read-only': 'true' }, { permission: 'read-only' }],
    [{ '--read-only': 'true', '--permission': 'read-only' }, { permission: 'read-only' }],
    [{ '--expires': '12h' }, { permission: 'read-write', expiresAt: new Date('2026-06-16T00:00:00.000Z') }],
  ])('%p is a key with %p', (flags, options) => {
    expect<unknown>(readKeyOptions({ '--name': 'till', ...flags }, now)).toEqual({ ...till, ...options })
  })

  const name = 'expected 1 to 100 characters on one line, not beginning with a dash'
  test.each<[Record<string, string>, string]>([
    [{}, `--name is missing: ${name}`],
    [{ '--name': '' }, `--name is "": ${name}`],
    [{ '--name': ' ' }, `--name is " ": ${name}`],
    [{ '--name': 'a\nb' }, `--name is "a\\nb": ${name}`],
    [{ '--name': '-x' }, `--name is "-x": ${name}`],
    [{ '--name': 'x'.repeat(101) }, `--name is "${'x'.repeat(40)}…": ${name}`],
    [
      { '--name': 'till', '--expires': '90' },
      '--expires is "90": expected a time from now such as 12h, 90d, 4w or 1y, or a future date such as 2030-01-31',
    ],
    [
      { '--name': 'till', '--permission': 'all' },
      '--permission is "all": expected read-write, read-only or metrics',
    ],
    [
      { '--name': 'till', '--permission': 'metrics', '--read-only': 'true' },
      '--read-only contradicts --permission metrics: remove one of them',
    ],
  ])('%p is refused', (flags, problem) => {
    expect(() => readKeyOptions(flags, now)).toThrow(new UsageError(problem))
  })
})
