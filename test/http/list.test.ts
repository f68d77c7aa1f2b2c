import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const idsUpTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)
const nextIn = (headers: Headers) => /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]

/** Follows the links to the end. */
async function walk(from: string, afterPage = async () => {}) {
  const ids: number[] = []
  let pages = 0
  for (let path: string | undefined = from; path; pages++) {
    const { json, headers } = await service.call(path)
    ids.push(...(json as { id: number }[]).map(({ id }) => id))
    await afterPage()
    path = nextIn(headers)
  }
  return { pages, ids }
}

const statuses = ['available', 'pending', 'sold', undefined] as const
const add = (index: number) => {
  const status = statuses[index % 4]
  return service.stores.pets.create({ name: `Animal ${index}`, categoryId: BigInt(index), ...(status && { status }) })
}

test('an empty store gives an empty array without a Link', async () => {
  await using empty = await startService()
  const { status, text, headers } = await empty.call('/v1/pets')
  expect({ status, text, link: headers.get('link') }).toEqual({ status: 200, text: '[]', link: null })
})

describe('GET /v1/pets with 107 animals', () => {
  beforeAll(async () => {
    for (let index = 0; index < 107; index++) await add(index)
  })

  test('gives 20 animals by default, without a status if they have none', async () => {
    const { json, text } = await service.call('/v1/pets')
    expect(json).toHaveLength(20)
    expect(text).toEndWith('{"id":20,"name":"Animal 19","categoryId":19}]')
  })

  test.each([
    ['limit=7', 16, idsUpTo(107)],
    ['limit=100', 2, idsUpTo(107)],
    ['status=pending&limit=9', 3, idsUpTo(27).map(number => number * 4 - 2)],
  ])('leads through all animals by its links: %s', async (query, pages, ids) => {
    expect(await walk(`/v1/pets?${query}`)).toEqual({ pages, ids })
  })

  test('has a link with limit, status and cursor, relative to the host; the limit may change on the way', async () => {
    const { headers } = await service.call('/v1/pets?status=sold&limit=3')
    expect(headers.get('link')).toMatch(/^<\/v1\/pets\?limit=3&status=sold&cursor=[\w-]+>; rel="next"$/)
    const { json } = await service.call(nextIn(headers)?.replace('limit=3', 'limit=2') ?? '')
    expect(json).toMatchObject([{ id: 15 }, { id: 19 }])
  })

  test.each([
    ['status=%00', 'invalid_request', 'status is "\\u0000": expected available, pending or sold'],
    [
      'limit=0&status=lost&cursor=x',
      'invalid_request',
      'limit is "0": expected an integer from 1 to 100; status is "lost": expected available, pending or sold; cursor is "x": expected a cursor from the Link header of this list, with the same status',
    ],
    ['cursor=', 'invalid_cursor', 'cursor is "": expected'],
    [`cursor=${'a'.repeat(6000)}`, 'invalid_cursor', `cursor is "${'a'.repeat(40)}…": expected`],
  ])('refuses ?%s and names every problem', async (query, code, message) => {
    const { status, json } = await service.call(`/v1/pets?${query}`)
    expect({ status, code: json.code }).toEqual({ status: 400, code })
    expect(json.message).toStartWith(message)
  })

  test('shows animals that are added during a walk once', async () => {
    let index = 107
    const addMore = async () => {
      if (index < 114) await add(index++)
    }
    expect(await walk('/v1/pets?limit=10', addMore)).toEqual({ pages: 12, ids: idsUpTo(114) })
  })
})
