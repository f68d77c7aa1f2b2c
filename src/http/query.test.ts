import { describe, expect, test } from 'bun:test'
import { pageLimit } from '../page.ts'
import { petStatus } from '../pet.ts'
import { parseQuery } from './query.ts'

const known = ['limit', 'status']

/** As listPets reads it. */
function read(text: string, only?: readonly string[]) {
  const query = parseQuery(text, only)
  const limit = query.read('limit', pageLimit)
  const status = query.read('status', petStatus)
  return { limit, status, problems: query.problems }
}

describe('a sound query', () => {
  test.each<[string, ReturnType<typeof petStatus.read>, number | undefined]>([
    ['', undefined, undefined],
    ['&', undefined, undefined],
    ['limit=5', undefined, 5],
    ['status=sold', 'sold', undefined],
    ['limit=100&status=available', 'available', 100],
    ['status=available&&limit=1&', 'available', 1],
    ['status=s%6Fld', 'sold', undefined],
    ['%6Cimit=7', undefined, 7],
  ])('"%s" is read', (text, status, limit) => {
    for (const only of [undefined, known]) {
      expect(read(text, only)).toEqual({ limit, status, problems: [] })
    }
  })
})

describe('a broken query', () => {
  test.each([
    ['limit=', 'Cannot read limit "": expected a whole number from 1 to 100'],
    ['limit', 'Cannot read limit "": expected a whole number from 1 to 100'],
    ['limit=0', 'Cannot read limit "0": expected a whole number from 1 to 100'],
    ['limit=101', 'Cannot read limit "101": expected a whole number from 1 to 100'],
    ['limit=abc', 'Cannot read limit "abc": expected a whole number from 1 to 100'],
    ['limit=%205', 'Cannot read limit " 5": expected a whole number from 1 to 100'],
    ['limit=+5', 'Cannot read limit " 5": expected a whole number from 1 to 100'],
    ['limit=5;status=sold', 'Cannot read limit "5;status=sold": expected a whole number from 1 to 100'],
    ['status=', 'Cannot read status "": expected one of available, pending, sold'],
    ['status=lost', 'Cannot read status "lost": expected one of available, pending, sold'],
    ['status=SOLD', 'Cannot read status "SOLD": expected one of available, pending, sold'],
    ['status=sold%00', 'Cannot read status "sold\\u0000": expected one of available, pending, sold'],
    ['limit=5&limit=5', 'limit is given 2 times: expected it once'],
    ['limit=5&limit=', 'limit is given 2 times: expected it once'],
    ['status=sold&limit=5&status=sold&status=lost', 'status is given 3 times: expected it once'],
  ])('"%s" is one problem', (text, problem) => {
    expect(read(text).problems).toEqual([problem])
  })

  test('every problem is told together', () => {
    expect(read('page=2&limit=0&status=lost&page=3&offset=1', known).problems).toEqual([
      'Unknown parameter "page": expected only limit, status',
      'Unknown parameter "offset": expected only limit, status',
      'Cannot read limit "0": expected a whole number from 1 to 100',
      'Cannot read status "lost": expected one of available, pending, sold',
    ])
  })
})

describe('a parameter that nobody knows', () => {
  test.each(['page', 'Limit', 'limit%20', 'limit[]', '__proto__', 'constructor', ''])(
    '"%s" is ignored, and with strict handling it is a problem',
    name => {
      expect(read(`${name}=2&limit=5`)).toEqual({ limit: 5, status: undefined, problems: [] })
      expect(read(`${name}=2&limit=5`, known).problems).toEqual([
        `Unknown parameter "${decodeURIComponent(name)}": expected only limit, status`,
      ])
    },
  )

  test('where no parameter is known, none is expected', () => {
    expect(parseQuery('limit=5', []).problems).toEqual(['Unknown parameter "limit": expected none'])
    expect(parseQuery('', []).problems).toEqual([])
  })
})

test('one broken query leaves the next one clean', () => {
  read('limit=0&status=lost')
  expect(read('').problems).toEqual([])
})
