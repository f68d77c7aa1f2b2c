import { afterAll, afterEach, describe, expect, setSystemTime, test } from 'bun:test'
import { generateApiKey, issueApiKey } from '../../src/api-key.ts'
import { until } from '../support/process.ts'
import { type Answer, type CallInit, startService } from '../support/service.ts'

const environmentKey = 'from-the-environment!'
const service = await startService({ environmentKey, limits: { verifiedForMs: 100 } })
await service.stores.pets.create({ name: 'Tom', categoryId: 1n })
afterAll(() => service[Symbol.asyncDispose]())
afterEach(() => void setSystemTime())

const rex = '{"name":"Rex","categoryId":1}'
const animals = async () => (await service.stores.pets.list({ limit: 100 })).pets.length
const refusalOf = ({ status, json }: Answer) => [status, json.code]
const challengeOf = ({ headers }: Answer) => headers.get('www-authenticate') ?? ''
const expectInvalid = (answer: Answer, why: string) => {
  expect(refusalOf(answer)).toEqual([401, 'invalid_api_key'])
  const form = /^Bearer realm="petstore", error="invalid_token", error_description="([^"\\]+)"$/
  expect(form.exec(challengeOf(answer))?.[1]).toContain(why)
}

/** A key in the store, with its record. */
async function newRecord(name: string) {
  const { key, record } = issueApiKey({ name, permission: 'read-write', createdAt: new Date() })
  const { id } = await service.stores.keys.create(record)
  return { key, id, hash: record.hash }
}

test('only the Authorization header is a credential: 401 with a plain challenge', async () => {
  const { key } = service
  const names = 'x-api-key cookie proxy-authorization api-key'.split(' ')
  const headers = Object.fromEntries(names.map(name => [name, `Bearer ${key}`]))
  const query = 'api_key access_token key token authorization'.replaceAll(/(\w+) ?/g, `$1=${key}&`)
  for (const authorization of [
    {},
    { authorization: 'bearer   ' },
    { authorization: 'BearerX' },
    { authorization: ',' },
  ]) {
    const sent = { ...headers, ...authorization }
    const answer = await service.call(`/v1/pets?${query}`, { key: null, headers: sent })
    expect([...refusalOf(answer), challengeOf(answer)]).toEqual([401, 'missing_api_key', 'Bearer realm="petstore"'])
  }
})

describe('a key', () => {
  test.each([
    ['unknown', generateApiKey()],
    ['6,000 characters long', 'a'.repeat(6_000)],
    ["nearly the environment's", `${environmentKey.slice(0, -1)}?`],
    ...[` ${service.key}`, `, Bearer ${service.key}`, '\u00a0', '\u00a0x', '\u0085'].map(after => [
      `followed by ${JSON.stringify(after.slice(0, 9))}`,
      `${service.key}${after}`,
    ]),
  ])('that is %s is refused, and not repeated', async (_, key = '') => {
    const answer = await service.call('/v1/pets', { key })
    expectInvalid(answer, ': ')
    expect(answer.text + challengeOf(answer)).not.toContain(key.slice(0, 20))
  })

  test('that expires is refused from that moment on, though it was verified just before', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000)
    const key = await service.newKey({ expiresAt })
    expect((await service.call('/v1/pets', { key })).status).toBe(200)
    setSystemTime(expiresAt)
    expectInvalid(await service.call('/v1/pets', { key }), 'expired')
  })

  test('that is revoked is refused after a moment', async () => {
    const { key, id } = await newRecord('leaked')
    expect((await service.call('/v1/pets', { key })).status).toBe(200)
    await service.stores.keys.revoke(id, new Date())
    const answer = await until('the refusal', async () => {
      const tried = await service.call('/v1/pets', { key })
      return tried.status === 200 ? undefined : tried
    })
    expectInvalid(answer, 'revoked')
  })

  test.each([
    ['read-only', 'GET', '/v1/pets', 200, undefined],
    ['read-only', 'GET', '/v1/pets/1', 200, undefined],
    ['read-only', 'POST', '/v1/pets', 403, 'read_only_key'],
    ['metrics', 'GET', '/v1/pets', 403, 'insufficient_permission'],
    ['metrics', 'GET', '/v1/pets/1', 403, 'insufficient_permission'],
    ['metrics', 'POST', '/v1/pets', 403, 'insufficient_permission'],
    ['metrics', 'GET', '/v1/nothing', 404, 'not_found'],
    ['metrics', 'DELETE', '/v1/pets', 405, 'method_not_allowed'],
  ] as const)('with the permission %s: %s %s is %p', async (permission, method, path, status, code) => {
    const key = await service.newKey({ permission })
    const before = await animals()
    const answer = await service.call(path, { key, method, ...(method === 'POST' && { body: rex }) })
    expect(refusalOf(answer)).toEqual([status, code])
    expect(challengeOf(answer).includes('error="insufficient_scope"')).toBe(status === 403)
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

test('a rate limit is counted on every response; one request too many is 429, for this key only', async () => {
  const unlimited = await service.call('/v1/pets')
  expect([...unlimited.headers.keys()].filter(name => name.startsWith('ratelimit'))).toEqual([])
  await using strict = await startService({ rateLimit: { requests: 3, seconds: 60 } })
  const [key, other] = [await strict.newKey(), await strict.newKey()]
  for (const [index, path] of ['/v1/pets', '/v1/nothing', '/v1/pets?limit=0'].entries()) {
    const { status, headers } = await strict.call(path, { key })
    expect(status).not.toBe(429)
    expect(headers.get('ratelimit-policy')).toBe('"default";q=3;w=60')
    expect(headers.get('ratelimit')).toStartWith(`"default";r=${2 - index};t=`)
  }
  const answer = await strict.call('/v1/pets', { key, method: 'POST', body: rex })
  expect(refusalOf(answer)).toEqual([429, 'rate_limited'])
  expect(answer.headers.get('retry-after')).toMatch(/^(60|59|58)$/)
  expect(answer.headers.get('ratelimit')).toStartWith('"default";r=0;t=')
  expect((await strict.stores.pets.list({ limit: 100 })).pets).toEqual([])
  expect((await strict.call('/v1/pets', { key: other })).status).toBe(200)
  // Requests without a valid key are not counted.
  for (let i = 0; i < 8; i++) expect((await strict.call('/v1/pets', { key: null })).status).toBe(401)
})
