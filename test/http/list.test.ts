import { afterAll, expect, test } from 'bun:test'
import { startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())
const statuses = ['available', 'pending', 'sold', undefined] as const
for (let id = 1; id <= 24; id++) {
  const status = statuses[(id - 1) % 4]
  await service.stores.pets.create({ name: `Animal ${id}`, categoryId: BigInt(id), ...(status && { status }) })
}

test('an empty store gives an empty array without a Link', async () => {
  await using empty = await startService()
  const { status, text, headers } = await empty.call('/v1/pets')
  expect({ status, text, link: headers.get('link') }).toEqual({ status: 200, text: '[]', link: null })
})

test('a list has 20 animals by default, without a status if they have none', async () => {
  const { json, text } = await service.call('/v1/pets')
  expect(json).toHaveLength(20)
  expect(text).toEndWith('{"id":20,"name":"Animal 20","categoryId":20}]')
})

test('a page leads to the next one by its Link and by its cursor; the limit may change on the way', async () => {
  const { json, headers } = await service.call('/v1/pets?status=sold&limit=3')
  expect(json).toMatchObject([{ id: 3 }, { id: 7 }, { id: 11 }])
  const cursor = headers.get('x-next-cursor')
  expect(cursor).toMatch(/^[\w-]+$/)
  expect(headers.get('link')).toBe(`</v1/pets?limit=3&status=sold&cursor=${cursor}>; rel="next"`)
  const last = await service.call(`/v1/pets?limit=5&status=sold&cursor=${cursor}`)
  expect(last.json).toMatchObject([{ id: 15 }, { id: 19 }, { id: 23 }])
  expect([last.headers.get('link'), last.headers.get('x-next-cursor')]).toEqual([null, null])
})

test.each([
  ['limit=0&status=lost&cursor=x', 'invalid_request', /^limit is "0": [^;]+; status is "lost": [^;]+; cursor is "x": /],
  [
    'cursor=',
    'invalid_cursor',
    /^cursor is "": expected the X-Next-Cursor of a page of this list, with the same status$/,
  ],
])('a list with ?%s is refused, and every problem is named', async (query, code, message) => {
  const { status, json } = await service.call(`/v1/pets?${query}`)
  expect([status, json.code]).toEqual([400, code])
  expect(json.message).toMatch(message)
})
