import { afterAll, afterEach, describe, expect, setSystemTime, test } from 'bun:test'
import { generateApiKey, issueApiKey } from '../../src/api-key.ts'
import { idempotencyKey, prefersStrict } from '../../src/http/request.ts'
import { until } from '../support/process.ts'
import { type Answer, type CallInit, type Service, startService } from '../support/service.ts'

const environmentKey = 'from-the-environment!'
const verifiedForMs = 100
const service = await startService({ environmentKey, limits: { verifiedForMs } })
afterAll(() => service[Symbol.asyncDispose]())
afterEach(() => void setSystemTime())

const rex = '{"name":"Rex","categoryId":1}'
const withHeader = (authorization: string) => service.call('/v1/pets', { key: null, headers: { authorization } })
const animals = async () => (await service.stores.pets.list({ limit: 100 })).pets.length
const refusalOf = ({ status, json }: Answer) => [status, json.code]

/** A key in the store, with its record. */
async function newRecord(name: string) {
  const { key, record } = issueApiKey({ name, permission: 'read-write', createdAt: new Date() })
  const { id } = await service.stores.keys.create(record)
  return { key, id, hash: record.hash }
}

describe('a request without a credential', () => {
  test.each([
    ['POST', '/v1/pets'],
    ['GET', `/v1/pets?api_key=KEY&access_token=KEY&key=KEY&token=KEY&authorization=KEY`],
  ])('%s %s is 401 with a plain challenge', async (method, path) => {
    const answer = await service.call(path.replaceAll('KEY', service.key), { method, key: null })
    expect(refusalOf(answer)).toEqual([401, 'missing_api_key'])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="petstore"')
  })

  test.each(['Basic dXNlcjpwYXNz', 'Bearer', 'bearer   ', 'BearerX', ','])(
    '"Authorization: %s" counts as none',
    async header => {
      expect(refusalOf(await withHeader(header))).toEqual([401, 'missing_api_key'])
    },
  )

  test('no other header is a credential', async () => {
    const names = ['x-api-key', 'cookie', 'proxy-authorization', 'api-key']
    const headers = Object.fromEntries(names.map(name => [name, `Bearer ${service.key}`]))
    expect((await service.call('/v1/pets', { key: null, headers })).status).toBe(401)
  })
})

describe('a key', () => {
  test('from the environment is accepted besides those in the store', async () => {
    const body = rex
    expect((await service.call('/v1/pets', { key: environmentKey })).status).toBe(200)
    expect((await service.call('/v1/pets', { key: environmentKey, method: 'POST', body })).status).toBe(201)
  })

  test.each([
    ['unknown', generateApiKey()],
    ['mistyped', 'pets_000000000000000000000000000000000000'],
    ['of another kind', 'sk_live_1234567890abcdef'],
    ['6,000 characters long', 'a'.repeat(6000)],
    ["nearly the environment's", `${environmentKey.slice(0, -1)}?`],
  ])('that is %s is refused', async (_, key) => {
    const answer = await service.call('/v1/pets', { key })
    expect(refusalOf(answer)).toEqual([401, 'invalid_api_key'])
    const challenge = answer.headers.get('www-authenticate')
    expect(challenge).toMatch(/^Bearer realm="petstore", error="invalid_token", error_description="[^"\\]+"$/)
    expect(answer.text + challenge).not.toContain(key)
  })

  test.each([' KEY', ', Bearer KEY', '\u00a0', '\u00a0x', '\u0085'])('followed by %j is refused', async after => {
    const { status } = await withHeader(`Bearer ${service.key}${after.replace('KEY', service.key)}`)
    expect(status).toBe(401)
  })

  test('that expires is refused from that moment on, though it was verified just before', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000)
    const key = await service.newKey({ expiresAt })
    expect((await service.call('/v1/pets', { key })).status).toBe(200)
    setSystemTime(expiresAt)
    const answer = await service.call('/v1/pets', { key })
    expect(refusalOf(answer)).toEqual([401, 'invalid_api_key'])
    expect(answer.headers.get('www-authenticate')).toContain('expired')
  })

  test('that is revoked is refused after a moment, though the clock was set back', async () => {
    const { key, id } = await newRecord('leaked')
    expect((await service.call('/v1/pets', { key })).status).toBe(200)
    await service.stores.keys.revoke(id, new Date())
    setSystemTime(new Date(Date.now() - 3_600_000))
    const answer = await until('the refusal', async () => {
      const tried = await service.call('/v1/pets', { key })
      return tried.status === 200 ? undefined : tried
    })
    expect(refusalOf(answer)).toEqual([401, 'invalid_api_key'])
    expect(answer.headers.get('www-authenticate')).toContain('revoked')
  })

  test('that may only read lists and fetches, and is 403 on POST', async () => {
    const key = await service.newKey({ permission: 'read-only' })
    const { id } = await service.stores.pets.create({ name: 'Rex', categoryId: 1n })
    expect((await service.call('/v1/pets', { key })).status).toBe(200)
    expect((await service.call(`/v1/pets/${id}`, { key })).status).toBe(200)
    const before = await animals()
    const answer = await service.call('/v1/pets', { key, method: 'POST', body: rex })
    expect(refusalOf(answer)).toEqual([403, 'read_only_key'])
    expect(answer.headers.get('www-authenticate')).toStartWith('Bearer realm="petstore", error="insufficient_scope"')
    expect(await animals()).toBe(before)
  })

  test.each([
    ['/v1/pets', 'GET', 403, 'insufficient_permission'],
    ['/v1/pets/1', 'GET', 403, 'insufficient_permission'],
    ['/v1/pets', 'POST', 403, 'insufficient_permission'],
    ['/v1/nothing', 'GET', 404, 'not_found'],
    ['/v1/pets', 'DELETE', 405, 'method_not_allowed'],
  ])('for the metrics gets, for %s %s, %p', async (path, method, status, code) => {
    const key = await service.newKey({ permission: 'metrics' })
    const before = await animals()
    const answer = await service.call(path, { key, method, ...(method === 'POST' && { body: rex }) })
    expect(refusalOf(answer)).toEqual([status, code])
    const challenge = answer.headers.get('www-authenticate') ?? ''
    expect(challenge.includes('error="insufficient_scope"')).toBe(status === 403)
    expect(await animals()).toBe(before)
  })

  test('is recorded as used, and its deprecated calls are counted, at the next flush', async () => {
    const { key, hash } = await newRecord('counted')
    for (const path of ['/v1/pets', '/v1/pets/1', '/v1/pets/999']) await service.call(path, { key })
    expect((await service.stores.keys.find(hash))?.lastUsedAt).toBeUndefined()
    await service.flush()
    const found = await service.stores.keys.find(hash)
    expect(found?.deprecatedUses).toBe(2n)
    expect(Date.now() - Number(found?.lastUsedAt)).toBeLessThan(10_000)
    await service.flush()
    expect((await service.stores.keys.find(hash))?.deprecatedUses).toBe(2n)
  })

  test('that was just verified is not looked up again, a mistyped one never, and one after many spaces always', async () => {
    let lookUps = 0
    const { keys } = service.stores
    const find: typeof keys.find = hash => {
      lookUps++
      return keys.find(hash)
    }
    await using counted = await startService({ keys: { ...keys, find } })
    const { key } = service
    for (let i = 0; i < 20; i++) await counted.call('/v1/pets', { key })
    expect(lookUps).toBe(1)
    for (let i = 0; i < 5; i++) await counted.call('/v1/pets', { key: `${key.slice(0, -1)}!` })
    await counted.call('/v1/pets', { key: `${key.slice(0, 10)}${key.slice(11)}0` })
    expect(lookUps).toBe(1)
    // Otherwise one key with ever more spaces before it would fill the memory.
    for (let i = 0; i < 3; i++) await counted.call('/v1/pets', { key: `${' '.repeat(400)}${key}` })
    expect(lookUps).toBe(4)
  })
})

describe('a key in the wrong place', () => {
  test.each<[string, (key: string) => CallInit & { path?: string }]>([
    ['a parameter', key => ({ path: `/v1/pets?limit=${key}` })],
    ['a path', key => ({ path: `/v1/pets/${key}` })],
    ['another path', key => ({ path: `/v1/${key}` })],
    ['a request id', key => ({ headers: { 'x-request-id': key } })],
    ['a body', key => ({ method: 'POST', body: key })],
    ['a media type', key => ({ method: 'POST', body: '{}', headers: { 'content-type': key } })],
  ])('is not repeated by the response: %s', async (_, place) => {
    const { path = '/v1/pets', ...init } = place(service.key)
    const { text, headers } = await service.call(path, init)
    expect(text + JSON.stringify([...headers])).not.toContain(service.key.slice(0, 20))
  })

  test('is not stored as an Idempotency-Key', async () => {
    const headers = { 'idempotency-key': service.key }
    expect((await service.call('/v1/pets', { method: 'POST', body: rex, headers })).status).toBe(201)
    expect(await service.database.holds('Rex')).toBe(true)
    expect(await service.database.holds(service.key)).toBe(false)
  })
})

/** 16 KB is the longest header that reaches us. Checked in quadratic time, one would take hundreds of milliseconds. */
test.each<[string, (chars: number) => string]>([
  ['spaces', chars => `Bearer x${' '.repeat(chars)}y`],
  ['spaces before the key', chars => `Bearer${' '.repeat(chars)}`],
  ['quotes', chars => '"'.repeat(chars)],
  ['escaped quotes', chars => '\\"'.repeat(chars / 2)],
  ['quotes and backslashes', chars => '"\\'.repeat(chars / 2)],
  ['a preference and spaces', chars => `handling=a${' '.repeat(chars)}b`],
  ['commas', chars => ','.repeat(chars)],
])('a header of many %s is checked in linear time', async (_, make) => {
  const judges = [prefersStrict, idempotencyKey.read]
  for (const judge of judges) {
    const msFor = (header: string) => {
      const startedMs = performance.now()
      for (let i = 0; i < 5; i++) judge(header)
      return performance.now() - startedMs
    }
    msFor(make(250))
    // 64 times as long: linear time is 64 times as long, quadratic time 4,096 times.
    expect(msFor(make(16_000)) / Math.max(0.05, msFor(make(250)))).toBeLessThan(600)
  }
  const startedMs = performance.now()
  for (let i = 0; i < 20; i++) expect((await withHeader(make(15_000))).status).toBe(401)
  expect(performance.now() - startedMs).toBeLessThan(1_000)
})

describe('a rate limit', () => {
  const limited = (requests: number) => startService({ rateLimit: { requests, seconds: 1 } })
  const add = (of: Service, key: string) => of.call('/v1/pets', { key, method: 'POST', body: rex })

  test('is not mentioned if none is configured', async () => {
    const { headers } = await service.call('/v1/pets')
    expect([headers.get('ratelimit'), headers.get('ratelimit-policy')]).toEqual([null, null])
  })

  test('of 3 in a second is counted on every response; the fourth is 429, for this key only', async () => {
    await using strict = await limited(3)
    const [key, other] = [await strict.newKey(), await strict.newKey()]
    for (const [index, path] of ['/v1/pets', '/v1/nothing', '/v1/pets?limit=0'].entries()) {
      const { status, headers } = await strict.call(path, { key })
      expect(status).not.toBe(429)
      expect(headers.get('ratelimit-policy')).toBe('"default";q=3;w=1')
      expect(headers.get('ratelimit')).toBe(`"default";r=${2 - index};t=1`)
    }
    const answer = await add(strict, key)
    expect(refusalOf(answer)).toEqual([429, 'rate_limited'])
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(answer.headers.get('ratelimit')).toBe('"default";r=0;t=1')
    expect((await strict.stores.pets.list({ limit: 100 })).pets).toEqual([])
    expect((await strict.call('/v1/pets', { key: other })).status).toBe(200)
  })

  test('starts again after a second, though the clock was set back, and a window never ends in two', async () => {
    await using strict = await limited(1)
    const key = await strict.newKey()
    expect((await strict.call('/v1/pets', { key })).status).toBe(200)
    setSystemTime(new Date(Date.now() - 3_600_000))
    const statuses = new Set<number>()
    const ends = new Set<string | null>()
    await until('another window', async () => {
      const { status, headers } = await strict.call('/v1/pets', { key })
      statuses.add(status)
      ends.add(headers.get('ratelimit'))
      return status === 200 || undefined
    })
    expect([...statuses]).toEqual([429, 200])
    expect([...ends]).toEqual(['"default";r=0;t=1'])
  })

  test('does not count requests without a valid key: they are 401, however many', async () => {
    await using strict = await limited(3)
    for (let i = 0; i < 8; i++) expect((await strict.call('/v1/pets', { key: null })).status).toBe(401)
  })
})
