import { describe, expect, test } from 'bun:test'
import { readExpiry } from './expiry.ts'

const now = new Date('2026-06-15T12:00:00.000Z')

describe('a key ends', () => {
  test.each([
    ['1m', '2026-06-15T12:01:00.000Z'],
    ['12h', '2026-06-16T00:00:00.000Z'],
    ['1d', '2026-06-16T12:00:00.000Z'],
    ['90d', '2026-09-13T12:00:00.000Z'],
    ['4w', '2026-07-13T12:00:00.000Z'],
    ['1y', '2027-06-15T12:00:00.000Z'],
    ['2026-06-16', '2026-06-16T00:00:00.000Z'],
    ['2030-01-31', '2030-01-31T00:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['2026-06-15T12:01Z', '2026-06-15T12:01:00.000Z'],
    ['2026-06-15T12:00:01Z', '2026-06-15T12:00:01.000Z'],
    ['2030-01-31T23:59:59Z', '2030-01-31T23:59:59.000Z'],
    ['9999-12-31', '9999-12-31T00:00:00.000Z'],
  ])('%s is %s', (text, end) => {
    expect(readExpiry(text, now)?.toISOString()).toBe(end)
  })

  test.each(['m', 'h', 'd', 'w', 'y'])('99999%s is still a date that can be written', unit => {
    expect(readExpiry(`99999${unit}`, now)?.getTime()).toBeGreaterThan(now.getTime())
  })
})

describe('refused as an end', () => {
  test.each([
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
    '1d ',
    '1d\n',
    '1D',
    '1s',
    '1mo',
    '1d12h',
    '90days',
    '2030',
    '2030-01',
    '2030-1-31',
    '30-01-31',
    '2030-01-32',
    '2030-02-29',
    '2030-02-31',
    '2030-04-31',
    '2030-13-01',
    '2030-00-01',
    '2030-01-00',
    '2030/01/31',
    '31.01.2030',
    '01/31/2030',
    '+002030-01-31',
    '2030-01-31T12Z',
    '2030-01-31T24:00Z',
    '2030-01-31T25:00Z',
    '2030-01-31T12:60Z',
    '2030-01-31T12:00:60Z',
    '2030-02-29T12:00Z',
    '2030-01-31 12:00Z',
    '2030-01-31T12:00+02:00',
    '2030-01-31t12:00z',
  ])('%j is none of the forms', text => {
    expect(readExpiry(text, now)).toBeUndefined()
  })

  // Without a zone it would mean another moment on every machine.
  test('a time without Z is none of the forms', () => {
    expect(readExpiry('2030-01-31T12:00', now)).toBeUndefined()
  })

  test.each([
    '0000-01-01',
    '1999-12-31',
    '2026-06-14',
    '2026-06-15',
    '2026-06-15T11:59:59Z',
    '2026-06-15T12:00Z',
  ])('%s is not in the future', text => {
    expect(readExpiry(text, now)).toBeUndefined()
  })
})
