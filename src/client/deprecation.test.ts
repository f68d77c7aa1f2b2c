import { expect, test } from 'bun:test'
import { readDeprecation } from './deprecation.ts'

const url = 'http://127.0.0.1:8080/v1/pets/1'
const deprecation = new Date('2026-11-15T00:00:00Z')
const sunset = new Date('2030-12-05T00:00:00Z')

test.each<[Record<string, string>, object]>([
  [
    { deprecation: '@1794700800', sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' },
    { deprecation, sunset, links: [] },
  ],
  [{ deprecation: 'Sun, 15 Nov 2026 00:00:00 GMT' }, { deprecation, links: [] }],
  [{ deprecation: 'true' }, { links: [] }],
  [{ deprecation: '@999999999999' }, { deprecation: new Date(999999999999000), links: [] }],
  [{ sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' }, { sunset, links: [] }],
  [{ sunset: 'some day' }, { links: [] }],
  [
    { deprecation: '@1794700800', link: '</openapi.json>; rel="deprecation"' },
    { deprecation, links: [{ rel: 'deprecation', href: 'http://127.0.0.1:8080/openapi.json' }] },
  ],
])('%p is a notice', (headers, notice) => {
  expect(readDeprecation('getPet', new Headers(headers), url)).toEqual({
    operation: 'getPet',
    links: [],
    ...notice,
  })
})

test('an answer without either header is none', () => {
  expect(readDeprecation('listPets', new Headers({ link: '</a>; rel="deprecation"' }), url)).toBeUndefined()
})
