import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service[Symbol.asyncDispose]())

const statuses = ['available', 'pending', 'sold', undefined] as const

/** Follows the Link header from page to page, as a client would. */
async function walk(from: string): Promise<{ pages: number; ids: number[] }> {
  const ids: number[] = []
  let pages = 0
  for (let path: string | undefined = from; path; ) {
    const { json, headers } = await service.call(path)
    ids.push(...json.map(({ id }: { id: number }) => id))
    pages++
    path = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
  }
  return { pages, ids }
}

describe('GET /v1/pets of an empty store', () => {
  test('is an empty array without a Link', async () => {
    await using empty = await startService()
    const { status, text, headers } = await empty.call('/v1/pets')
    expect({ status, text, link: headers.get('link') }).toEqual({ status: 200, text: '[]', link: null })
  })
})

describe('GET /v1/pets', () => {
  const animals = 107
  beforeAll(async () => {
    for (let i = 0; i < animals; i++) {
      const status = statuses[i % 4]
      await service.stores.pets.create({
        name: `Animal ${i}`,
        categoryId: BigInt(i),
        ...(status && { status }),
      })
    }
  })

  test('gives 20 animals where no limit is asked for, in ascending order of id', async () => {
    const { json } = await service.call('/v1/pets')
    expect(json.map(({ id }: { id: number }) => id)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
  })

  test.each([1, 20, 99, 100])('gives at most limit=%p animals', async limit => {
    expect((await service.call(`/v1/pets?limit=${limit}`)).json).toHaveLength(limit)
  })

  test.each(['available', 'pending', 'sold'])('with status=%s gives only those', async status => {
    const { json } = await service.call(`/v1/pets?status=${status}&limit=100`)
    expect(json.length).toBeGreaterThan(20)
    expect(new Set(json.map((pet: { status: string }) => pet.status))).toEqual(new Set([status]))
  })

  test('shows an animal that was added without a status without one', async () => {
    const { text } = await service.call('/v1/pets?limit=4')
    expect(text).toEndWith('{"id":4,"name":"Animal 3","categoryId":3}]')
  })

  test.each([1, 7, 20, 100])('leads through all animals by its links, %p at a time', async limit => {
    const { ids, pages } = await walk(`/v1/pets?limit=${limit}`)
    expect(ids).toEqual(Array.from({ length: animals }, (_, i) => i + 1))
    expect(pages).toBe(Math.ceil(animals / limit))
  })

  test('leads through the animals of one status by its links', async () => {
    const { ids } = await walk('/v1/pets?limit=5&status=pending')
    expect(ids).toEqual(Array.from({ length: 27 }, (_, i) => i * 4 + 2))
  })

  test('has a link that carries limit, status and a cursor, relative to the host', async () => {
    const { headers } = await service.call('/v1/pets?status=sold&limit=3')
    expect(headers.get('link')).toMatch(/^<\/v1\/pets\?limit=3&status=sold&cursor=[\w-]+>; rel="next"$/)
  })

  test('has no link where the page ends with the last animal', async () => {
    const { headers } = await service.call('/v1/pets?status=sold&limit=27')
    expect(headers.get('link')).toBeNull()
  })

  test('lets the limit change on the way', async () => {
    const { headers } = await service.call('/v1/pets?limit=2')
    const next = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1]?.replace('limit=2', 'limit=3') ?? ''
    expect((await service.call(next)).json.map(({ id }: { id: number }) => id)).toEqual([3, 4, 5])
  })

  test('does not care about encoded names and values', async () => {
    expect((await service.call('/v1/pets?%6cimit=%31')).json).toHaveLength(1)
  })

  test.each([
    ['limit=0', 'limit "0"'],
    ['limit=101', 'limit "101"'],
    ['limit=-1', 'limit "-1"'],
    ['limit=abc', 'limit "abc"'],
    ['limit=', 'limit ""'],
    ['limit', 'limit ""'],
    ['limit=1.0', 'limit "1.0"'],
    ['limit=1e1', 'limit "1e1"'],
    ['limit=010', 'limit "010"'],
    ['limit=%2B5', 'limit "+5"'],
    ['limit=%205', 'limit " 5"'],
    ['limit=٣', 'limit "٣"'],
    ['limit=99999999999999999999', 'limit "99999999999999999999"'],
    ['limit=1&limit=2', 'limit is given 2 times'],
    ['limit=5&limit=5', 'limit is given 2 times'],
    ['status=lost', 'status "lost"'],
    ['status=', 'status ""'],
    ['status=Available', 'status "Available"'],
    ['status=available&status=sold', 'status is given 2 times'],
    ['status=available,sold', 'status "available,sold"'],
    ['status=%00', 'status "\\u0000"'],
    ['status=%ff', 'status "�"'],
  ])('refuses ?%s and names it', async (query, named) => {
    const { status, json } = await service.call(`/v1/pets?${query}`)
    expect({ status, code: json.code }).toEqual({ status: 400, code: 'invalid_request' })
    expect(json.message).toContain(named)
  })

  test('names every parameter that is wrong, not just the first', async () => {
    const { json } = await service.call('/v1/pets?limit=0&status=lost&cursor=x')
    expect(json.message).toContain('limit "0"')
    expect(json.message).toContain('status "lost"')
    expect(json.message).toContain('cursor "x"')
    expect(json.code).toBe('invalid_request')
  })

  test.each(['x', '', 'AAAAAAAAAAAAAAAAAA', '%00', '12', 'a'.repeat(6000), 'AQAAAAAAAAABAAAAAA=='])(
    'refuses the cursor "%s", which it never made',
    async cursor => {
      const { status, json } = await service.call(`/v1/pets?cursor=${cursor}`)
      expect({ status, code: json.code }).toEqual({ status: 400, code: 'invalid_cursor' })
      expect(json.message.length).toBeLessThan(200)
    },
  )

  test.each(['', '&status=available'])(
    'refuses a cursor that was made for another status (then "%s")',
    async other => {
      const { headers } = await service.call('/v1/pets?limit=2&status=sold')
      const cursor = /cursor=([\w-]+)/.exec(headers.get('link') ?? '')?.[1]
      const { status, json } = await service.call(`/v1/pets?limit=2&cursor=${cursor}${other}`)
      expect({ status, code: json.code }).toEqual({ status: 400, code: 'invalid_cursor' })
    },
  )

  test('ignores parameters that it does not know, twice or empty too', async () => {
    const { status, json } = await service.call('/v1/pets?limit=2&offset=50&offset=&__proto__=1&Limit=9')
    expect({ status, length: json.length }).toEqual({ status: 200, length: 2 })
  })
})

describe('GET /v1/pets while animals are added', () => {
  test('shows each animal once, and those that came on the way', async () => {
    await using busy = await startService()
    const add = () => busy.stores.pets.create({ name: 'New', categoryId: 1n })
    for (let i = 0; i < 12; i++) await add()
    const ids: number[] = []
    let added = 12
    for (let path: string | undefined = '/v1/pets?limit=5'; path; ) {
      const { json, headers } = await busy.call(path)
      ids.push(...json.map(({ id }: { id: number }) => id))
      if (added < 20) {
        await add()
        added++
      }
      path = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1]
    }
    expect(ids).toEqual(Array.from({ length: ids.length }, (_, i) => i + 1))
    expect(ids.length).toBeGreaterThan(12)
  })
})
