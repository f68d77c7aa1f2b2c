import { describe, expect, test } from 'bun:test'
import { prefersStrict } from './prefer.ts'

describe('Prefer asks for strict handling', () => {
  test.each([
    'handling=strict',
    'Handling=strict',
    'HANDLING=strict',
    'handling="strict"',
    ' handling = strict ',
    'handling=strict; reason=test',
    'respond-async, handling=strict',
    'respond-async,handling=strict,wait=10',
    'return=minimal; handling=lenient, handling=strict',
    'handling=strict, handling=lenient',
    'wait=10,,handling=strict',
  ])('%s', header => {
    expect(prefersStrict(header)).toBe(true)
  })
})

describe('Prefer does not ask for strict handling', () => {
  test.each([
    '',
    ' ',
    ',',
    '=',
    'strict',
    'handling',
    'handling=',
    'handling=""',
    'handling=lenient',
    'handling=stricter',
    'handling=strict lenient',
    'handling="strict',
    "handling='strict'",
    'handling=lenient, handling=strict',
    'handling, handling=strict',
    'xhandling=strict',
    'handling-x=strict',
    'return=minimal; handling=strict',
    'note="handling=strict"',
  ])('"%s"', header => {
    expect(prefersStrict(header)).toBe(false)
  })

  test('no header', () => {
    expect(prefersStrict(null)).toBe(false)
  })
})
