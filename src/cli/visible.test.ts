import { expect, test } from 'bun:test'
import { visible } from './visible.ts'

test.each([
  ['Rex', 'Rex'],
  ['犬 😀 é', '犬 😀 é'],
  ['👩‍👧', '👩‍👧'],
  ['back\\slash', 'back\\slash'],
  ['\u001b[31mred', '\\u001b[31mred'],
  ['two\nlines\ttab\r', 'two\\u000alines\\u0009tab\\u000d'],
  ['\u007f\u009b', '\\u007f\\u009b'],
  ['a\u2028b\u2029c', 'a\\u2028b\\u2029c'],
  ['\u202egnp.exe', '\\u202egnp.exe'],
])('%j is shown as %s', (text, shown) => {
  expect(visible(text)).toBe(shown)
})

test('JSON stays the same JSON', () => {
  const value = { name: '\u001b\u009b\u202e\n"\\' }
  expect(JSON.parse(visible(JSON.stringify(value)))).toEqual(value)
})
