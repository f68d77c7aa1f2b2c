import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createRateLimiter } from '../../src/http/rate-limit.ts'
import { type Service, startService } from '../support/service.ts'

describe('without PETSTORE_RATE_LIMIT', () => {
  test('no answer speaks of a rate', async () => {
    await using service = await startService()
    const { headers } = await service.call('/v1/pets')
    expect([headers.get('ratelimit'), headers.get('ratelimit-policy')]).toEqual([null, null])
  })
})

describe('with PETSTORE_RATE_LIMIT=3/s', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService({ rateLimit: { requests: 3, seconds: 1 } })
  })
  afterAll(() => service[Symbol.asyncDispose]())

  test('each answer says what is left, and the fourth in a second is 429', async () => {
    const key = await service.newKey()
    const paths = ['/v1/pets', '/v1/nothing', '/v1/pets?limit=0']
    for (const [index, path] of paths.entries()) {
      const { status, headers } = await service.call(path, { key })
      expect(status).not.toBe(429)
      expect(headers.get('ratelimit-policy')).toBe('"default";q=3;w=1')
      expect(headers.get('ratelimit')).toBe(`"default";r=${2 - index};t=1`)
    }
    const before = (await service.stores.pets.list({ limit: 100 })).pets.length
    const body = '{"name":"Rex","categoryId":1}'
    const { status, json, headers } = await service.call('/v1/pets', { key, method: 'POST', body })
    expect({ status, code: json.code }).toEqual({ status: 429, code: 'rate_limited' })
    expect(headers.get('retry-after')).toBe('1')
    expect(headers.get('ratelimit')).toBe('"default";r=0;t=1')
    expect((await service.stores.pets.list({ limit: 100 })).pets).toHaveLength(before)
  })

  test('a window that has just begun ends in a second, never in two', async () => {
    const limiter = createRateLimiter({ requests: 1, seconds: 1 })
    const ends = Array.from({ length: 20_000 }, (_, index) => {
      const { headers } = limiter.count(String(index))
      return headers['RateLimit']
    })
    expect(new Set(ends)).toEqual(new Set(['"default";r=0;t=1']))
  })

  test('one key does not use up the rate of another', async () => {
    const [busy, other] = [await service.newKey(), await service.newKey()]
    for (let i = 0; i < 5; i++) await service.call('/v1/pets', { key: busy })
    expect((await service.call('/v1/pets', { key: other })).status).toBe(200)
  })

  test('the next second begins anew', async () => {
    const key = await service.newKey()
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) statuses.push((await service.call('/v1/pets', { key })).status)
    expect(statuses).toEqual([200, 200, 200, 429])
    await Bun.sleep(1_050)
    expect((await service.call('/v1/pets', { key })).status).toBe(200)
  })

  test('a request without a valid key is 401, however many there are', async () => {
    for (let i = 0; i < 8; i++) expect((await service.call('/v1/pets', { key: null })).status).toBe(401)
  })
})
