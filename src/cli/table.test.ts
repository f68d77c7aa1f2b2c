import { expect, test } from 'bun:test'
import { table } from './table.ts'

test('a column is as wide as its widest cell, with two spaces between', () => {
  const rows = [
    ['till', 'read-write', 'never'],
    ['a longer name', 'read-only', '2030'],
  ]
  expect(table(['NAME', 'ACCESS', 'EXPIRES'], rows)).toBe(
    [
      'NAME           ACCESS      EXPIRES',
      'till           read-write  never',
      'a longer name  read-only   2030',
      '',
    ].join('\n'),
  )
})

test('without rows there is only the head', () => {
  expect(table(['NAME', 'KEY'], [])).toBe('NAME  KEY\n')
})

test.each([
  ['wide characters', '犬', '犬    x'],
  ['emoji', '😀', '😀    x'],
  ['combining accents', 'e\u0301', 'e\u0301     x'],
])('%s take the room that a terminal gives them', (_what, name, line) => {
  expect(table(['NAME', 'X'], [[name, 'x']])).toBe(`NAME  X\n${line}\n`)
})

test('no line ends in white space', () => {
  const rows = [
    ['till', ''],
    ['', ''],
  ]
  expect(table(['NAME', 'LAST USED'], rows)).toBe('NAME  LAST USED\ntill\n\n')
})

test('a row may have fewer cells than the head', () => {
  expect(table(['A', 'B'], [['1'], []])).toBe('A  B\n1\n\n')
})
