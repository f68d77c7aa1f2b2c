import { afterAll, describe, expect, test } from 'bun:test'
import { generateApiKey } from '../../src/api-key.ts'
import { type Answer, startService } from '../support/service.ts'

const service = await startService()
await service.stores.pets.create({ name: 'Tom', categoryId: 1n })
afterAll(() => service[Symbol.asyncDispose]())

const rex = '{"name":"Rex","categoryId":1}'
const refusalOf = ({ status, json }: Answer) => [status, json.code]

test('only the Authorization header is a credential', async () => {
  const { key } = service
  const names = 'x-api-key cookie proxy-authorization api-key'.split(' ')
  const headers = Object.fromEntries(names.map(name => [name, `Bearer ${key}`]))
  const query = 'api_key access_token key token authorization'.replaceAll(/(\w+) ?/g, `$1=${key}&`)
  for (const authorization of [{}, { authorization: 'bearer   ' }, { authorization: ',' }]) {
    const answer = await service.call(`/v1/pets?${query}`, { key: null, headers: { ...headers, ...authorization } })
    expect(refusalOf(answer)).toEqual([401, 'missing_api_key'])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="petstore"')
  }
})

describe('a key', () => {
  test.each([
    ['unknown', generateApiKey()],
    ['6,000 characters long', 'a'.repeat(6_000)],
    ...['\u00a0', '\u00a0x', '\u0085'].map(after => [`followed by ${JSON.stringify(after)}`, service.key + after]),
  ])('that is %s is refused, and not repeated', async (_, key = '') => {
    const answer = await service.call('/v1/pets', { key })
    expect(refusalOf(answer)).toEqual([401, 'invalid_api_key'])
    expect(answer.text + JSON.stringify([...answer.headers])).not.toContain(key.slice(0, 20))
  })

  test.each([
    ['read-only', 'GET', '/v1/pets', 200, undefined],
    ['read-only', 'POST', '/v1/pets', 403, 'read_only_key'],
    ['read-write', 'GET', '/metrics', 403, 'insufficient_permission'],
    ['metrics', 'GET', '/v1/pets', 403, 'insufficient_permission'],
    ['metrics', 'GET', '/v1/pets/1', 403, 'insufficient_permission'],
    ['metrics', 'GET', '/v1/nothing', 404, 'not_found'],
    ['metrics', 'DELETE', '/v1/pets', 405, 'method_not_allowed'],
  ] as const)('with the permission %s: %s %s is %p', async (permission, method, path, status, code) => {
    const key = await service.newKey({ permission })
    const answer = await service.call(path, { key, method, ...(method === 'POST' && { body: rex }) })
    expect(refusalOf(answer)).toEqual([status, code])
  })

  test('is recorded as used, and its deprecated calls are counted, at the next flush', async () => {
    const key = await service.newKey({ name: 'counted' })
    const counted = async () => (await service.stores.keys.list()).find(({ name }) => name === 'counted')
    for (const path of ['/v1/pets', '/v1/pets/1', '/v1/pets/999']) await service.call(path, { key })
    expect((await counted())?.lastUsedAt).toBeUndefined()
    await service.flush()
    const { deprecatedUses, lastUsedAt } = (await counted()) ?? {}
    expect([deprecatedUses, Date.now() - Number(lastUsedAt) < 10_000]).toEqual([2n, true])
  })

  test('that is sent as an Idempotency-Key is not stored', async () => {
    const headers = { 'idempotency-key': service.key }
    expect((await service.call('/v1/pets', { method: 'POST', body: rex, headers })).status).toBe(201)
    expect(await service.database.holds('Rex')).toBe(true)
    expect(await service.database.holds(service.key)).toBe(false)
  })
})
