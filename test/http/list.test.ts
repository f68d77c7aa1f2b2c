import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const statuses = ['available', 'pending', 'sold', undefined] as const
const idsIn = (json: readonly { id: number }[]) => json.map(({ id }) => id)
const idsUpTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)
const nextIn = (headers: Headers) => /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]

describe('GET /v1/pets', () => {
  const animals = 107
  beforeAll(async () => {
    for (let i = 0; i < animals; i++) {
      const status = statuses[i % 4]
      const pet = { name: `Animal ${i}`, categoryId: BigInt(i) }
      await service.stores.pets.create({ ...pet, ...(status && { status }) })
    }
  })

  test('gives 20 animals by default, in ascending order of id', async () => {
    expect(idsIn((await service.call('/v1/pets')).json)).toEqual(idsUpTo(20))
  })

  test('shows an animal that was added without a status without one', async () => {
    const { text } = await service.call('/v1/pets?limit=4')
    expect(text).toEndWith('{"id":4,"name":"Animal 3","categoryId":3}]')
  })

  test.each([
    ['limit=7', 16, idsUpTo(animals)],
    ['limit=100', 2, idsUpTo(animals)],
    ['status=pending&limit=9', 3, idsUpTo(27).map(number => number * 4 - 2)],
  ])('leads through all animals by its links: %s', async (query, pages, ids) => {
    const found: number[] = []
    let walked = 0
    for (let path: string | undefined = `/v1/pets?${query}`; path; walked++) {
      const { json, headers } = await service.call(path)
      found.push(...idsIn(json))
      path = nextIn(headers)
    }
    expect([walked, found]).toEqual([pages, ids])
  })

  test('has a link with limit, status and cursor, relative to the host, and none on the last page', async () => {
    const { headers } = await service.call('/v1/pets?status=sold&limit=3')
    expect(headers.get('link')).toMatch(/^<\/v1\/pets\?limit=3&status=sold&cursor=[\w-]+>; rel="next"$/)
    expect((await service.call('/v1/pets?status=sold&limit=27')).headers.get('link')).toBeNull()
  })

  test('lets the limit change on the way', async () => {
    const { headers } = await service.call('/v1/pets?limit=2')
    const next = nextIn(headers)?.replace('limit=2', 'limit=3') ?? ''
    expect(idsIn((await service.call(next)).json)).toEqual([3, 4, 5])
  })

  test('accepts encoded names and values', async () => {
    expect((await service.call('/v1/pets?%6cimit=%31')).json).toHaveLength(1)
  })

  test.each([
    ['limit=abc', 'invalid_request', 'limit is "abc": expected an integer from 1 to 100'],
    ['limit=5&limit=5', 'invalid_request', 'limit occurs 2 times: expected once'],
    ['status=%00', 'invalid_request', 'status is "\\u0000": expected available, pending or sold'],
    [
      'limit=0&status=lost&cursor=x',
      'invalid_request',
      'limit is "0": expected an integer from 1 to 100; status is "lost": expected available, pending or sold; cursor is "x": expected a cursor from the Link header of this list, with the same status',
    ],
    ['cursor=', 'invalid_cursor', 'cursor is "": expected'],
    [`cursor=${'a'.repeat(6000)}`, 'invalid_cursor', 'cursor is "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…": expected'],
  ])('refuses ?%s and names every problem', async (query, code, message) => {
    const { status, json } = await service.call(`/v1/pets?${query}`)
    expect({ status, code: json.code }).toEqual({ status: 400, code })
    expect(json.message).toStartWith(message)
  })

  test('ignores unknown parameters, also twice or empty', async () => {
    const { status, json } = await service.call('/v1/pets?limit=2&offset=50&offset=&__proto__=1&Limit=9')
    expect({ status, length: json.length }).toEqual({ status: 200, length: 2 })
  })
})

test('an empty store gives an empty array without a Link; animals added during a walk appear once', async () => {
  await using busy = await startService()
  const { status, text, headers } = await busy.call('/v1/pets')
  expect({ status, text, link: headers.get('link') }).toEqual({ status: 200, text: '[]', link: null })

  const add = () => busy.stores.pets.create({ name: 'New', categoryId: 1n })
  for (let i = 0; i < 12; i++) await add()
  const ids: number[] = []
  for (let path: string | undefined = '/v1/pets?limit=5'; path; ) {
    const page = await busy.call(path)
    ids.push(...idsIn(page.json))
    if (ids.length < 20) await add()
    path = nextIn(page.headers)
  }
  expect(ids).toEqual(idsUpTo(ids.length))
  expect(ids.length).toBeGreaterThan(12)
})
