import { expect, test } from 'bun:test'
import { visible } from './output.ts'
import { startProgress, table } from './terminal.ts'

test('table columns are as wide as their widest cell, as a terminal shows it', () => {
  const rows = ['till|read-write|never', 'a longer name||', '犬|x', '😀|x', 'e\u0301|x'].map(row => row.split('|'))
  expect(table(['NAME', 'ACCESS', 'EXPIRES'], rows)).toBe(`\
NAME           ACCESS      EXPIRES
till           read-write  never
a longer name
犬             x
😀             x
e\u0301              x
`)
  expect(table(['NAME', 'KEY'], [])).toBe('NAME  KEY\n')
})

test.each([
  ['犬 😀 é 👩‍👧 back\\slash', '犬 😀 é 👩‍👧 back\\slash'],
  ['two\nlines\ttab\r', 'two\\u000alines\\u0009tab\\u000d'],
  ['\u007f\u009b\u202e\u2028', '\\u007f\\u009b\\u202e\\u2028'],
])('%j is shown as %s', (text, shown) => {
  expect(visible(text)).toBe(shown)
})

test.each([
  ['on a terminal', true, true, 'Copying 0 %\rCopying 50 %\r\u001b[K'],
  ['elsewhere', false, true, 'Copying\n'],
  ['without a known total', true, false, 'Copying\n'],
])('progress %s', (_, isStyled, isTotalKnown, expected) => {
  let written = ''
  const err = (text: string) => {
    written += text
  }
  {
    using progress = startProgress('Copying', { err, isStyled }, isTotalKnown)
    for (const fraction of [0.001, 0.5, 0.501]) progress.update(fraction)
  }
  expect(written.replace(/^\r/, '')).toBe(expected)
})
