import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateApiKey, issueApiKey } from '../../src/api-key.ts'
import { sendRaw } from '../support/connections.ts'
import { type CallInit, type Service, startService } from '../support/service.ts'

const environmentKey = 'from-the-environment!'
let service: Service
beforeAll(async () => {
  service = await startService({ environmentKey })
})
afterAll(() => service[Symbol.asyncDispose]())

const withHeader = (authorization: string, path = '/v1/pets') =>
  service.call(path, { key: null, headers: { authorization } })

const everyOperation = [
  ['GET', '/v1/pets'],
  ['POST', '/v1/pets'],
  ['GET', '/v1/pets/1'],
] as const

describe('a request without a credential', () => {
  test.each(everyOperation)('%s %s is 401 with a plain challenge', async (method, path) => {
    const { status, json, headers } = await service.call(path, { method, key: null })
    expect({ status, code: json.code }).toEqual({ status: 401, code: 'missing_api_key' })
    expect(headers.get('www-authenticate')).toBe('Bearer realm="petstore"')
  })

  test.each([
    'Basic dXNlcjpwYXNz',
    'Token abc',
    'Bearer',
    'Bearer ',
    'bearer   ',
    'BearerX',
    'Digest realm="x"',
    ',',
  ])('"Authorization: %s" counts as none', async header => {
    const { status, json, headers } = await withHeader(header)
    expect({ status, code: json.code }).toEqual({ status: 401, code: 'missing_api_key' })
    expect(headers.get('www-authenticate')).toBe('Bearer realm="petstore"')
  })

  test.each(['api_key', 'access_token', 'key', 'token', 'authorization'])(
    '?%s=KEY is no credential',
    async name => {
      const { status, json } = await service.call(`/v1/pets?${name}=${service.key}`, { key: null })
      expect({ status, code: json.code }).toEqual({ status: 401, code: 'missing_api_key' })
    },
  )

  test.each(['x-api-key', 'cookie', 'proxy-authorization', 'api-key'])(
    'the header %s is no credential',
    async name => {
      const { status } = await service.call('/v1/pets', {
        key: null,
        headers: { [name]: `Bearer ${service.key}` },
      })
      expect(status).toBe(401)
    },
  )
})

describe('a key', () => {
  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])(
    'is accepted after the scheme written %s',
    async scheme => {
      expect((await withHeader(`${scheme} ${service.key}`)).status).toBe(200)
      expect((await withHeader(`${scheme}   ${service.key}`)).status).toBe(200)
    },
  )

  test('from the environment is accepted beside those in the store', async () => {
    expect((await service.call('/v1/pets', { key: environmentKey })).status).toBe(200)
    const body = '{"name":"Rex","categoryId":1}'
    expect((await service.call('/v1/pets', { key: environmentKey, method: 'POST', body })).status).toBe(201)
  })

  test.each([
    ['unknown', generateApiKey()],
    ['mistyped', 'pets_000000000000000000000000000000000000'],
    ['cut short', 'pets_abc'],
    ['of another kind', 'sk_live_1234567890abcdef'],
    ['6,000 characters long', 'a'.repeat(6000)],
    ['full of symbols', '!"#$%&/()=?'],
    ["nearly the environment's", `${environmentKey.slice(0, -1)}?`],
  ])('that is %s is refused', async (_, key) => {
    const { status, json, headers } = await service.call('/v1/pets', { key })
    expect({ status, code: json.code }).toEqual({ status: 401, code: 'invalid_api_key' })
    expect(headers.get('www-authenticate')).toMatch(
      /^Bearer realm="petstore", error="invalid_token", error_description="[^"\\]+"$/,
    )
    expect(JSON.stringify([json, headers.get('www-authenticate')])).not.toContain(key)
  })

  test('is refused where a second word follows', async () => {
    for (const header of [
      `Bearer ${service.key} ${service.key}`,
      `Bearer ${service.key}, Bearer ${service.key}`,
    ]) {
      const { status, json } = await withHeader(header)
      expect({ status, code: json.code }).toEqual({ status: 401, code: 'invalid_api_key' })
    }
  })

  test('is refused where two Authorization headers are sent', async () => {
    const line = `Authorization: Bearer ${service.key}\r\n`
    const answer = await sendRaw(service.port, `GET /v1/pets HTTP/1.1\r\nHost: x\r\n${line}${line}\r\n`)
    expect(answer).toStartWith('HTTP/1.1 401 ')
  })

  test('that has expired is refused, from the moment on', async () => {
    const key = await service.newKey({ expiresAt: new Date(Date.now() + 400) })
    expect((await service.call('/v1/pets', { key })).status).toBe(200)
    await Bun.sleep(450)
    const { status, json, headers } = await service.call('/v1/pets', { key })
    expect({ status, code: json.code }).toEqual({ status: 401, code: 'invalid_api_key' })
    expect(headers.get('www-authenticate')).toContain('error_description="The API key has expired"')
  })

  test('that is revoked is refused within 5 seconds', async () => {
    const { key, record } = issueApiKey({ name: 'leaked', permission: 'read-write', createdAt: new Date() })
    const { id } = await service.stores.keys.create(record)
    expect((await service.call('/v1/pets', { key })).status).toBe(200)
    await service.stores.keys.revoke(id, new Date())
    const revokedAt = Date.now()
    let answer = await service.call('/v1/pets', { key })
    while (answer.status === 200 && Date.now() - revokedAt < 5_000) {
      await Bun.sleep(100)
      answer = await service.call('/v1/pets', { key })
    }
    expect({ status: answer.status, code: answer.json.code }).toEqual({
      status: 401,
      code: 'invalid_api_key',
    })
    expect(answer.headers.get('www-authenticate')).toContain('been revoked')
  }, 10_000)

  test.each(['\u00a0', '\u00a0x', '\u0085'])('followed by %j is not the key', async after => {
    const headers = { authorization: `Bearer ${service.key}${after}` }
    const { status } = await service.call('/v1/pets', { key: null, headers })
    expect(status).toBe(401)
  })

  test('that may only read lists and fetches, and is 403 on POST', async () => {
    const key = await service.newKey({ permission: 'read-only' })
    expect((await service.call('/v1/pets', { key })).status).toBe(200)
    expect((await service.call('/v1/pets/1', { key })).status).toBe(200)
    const before = await service.stores.pets.list({ limit: 100 })
    const body = '{"name":"Rex","categoryId":1}'
    const { status, json, headers } = await service.call('/v1/pets', { key, method: 'POST', body })
    expect({ status, code: json.code }).toEqual({ status: 403, code: 'read_only_key' })
    expect(headers.get('www-authenticate')).toStartWith('Bearer realm="petstore", error="insufficient_scope"')
    expect(await service.stores.pets.list({ limit: 100 })).toEqual(before)
  })

  test('that is for the metrics is 403 under /v1, after path and method were judged', async () => {
    const key = await service.newKey({ permission: 'metrics' })
    const body = '{"name":"Rex","categoryId":1}'
    const before = await service.stores.pets.list({ limit: 100 })
    for (const [path, method, status, code] of [
      ['/v1/pets', 'GET', 403, 'insufficient_permission'],
      ['/v1/pets/1', 'GET', 403, 'insufficient_permission'],
      ['/v1/pets', 'POST', 403, 'insufficient_permission'],
      ['/v1/nothing', 'GET', 404, 'not_found'],
      ['/v1/pets', 'DELETE', 405, 'method_not_allowed'],
    ] as const) {
      const answer = await service.call(path, { key, method, ...(method === 'POST' && { body }) })
      expect([path, answer.status, answer.json.code]).toEqual([path, status, code])
      expect(answer.headers.get('www-authenticate') ?? '').toContain(
        status === 403 ? 'error="insufficient_scope"' : '',
      )
    }
    expect(await service.stores.pets.list({ limit: 100 })).toEqual(before)
  })

  test('is written down as used, and its deprecated calls are counted, at the next flush', async () => {
    const { key, record } = issueApiKey({ name: 'counted', permission: 'read-write', createdAt: new Date() })
    await service.stores.keys.create(record)
    for (const path of ['/v1/pets', '/v1/pets/1', '/v1/pets/999']) await service.call(path, { key })
    expect((await service.stores.keys.find(record.hash))?.lastUsedAt).toBeUndefined()
    await service.flush()
    const found = await service.stores.keys.find(record.hash)
    expect(found?.deprecatedUses).toBe(2n)
    expect(Date.now() - Number(found?.lastUsedAt)).toBeLessThan(10_000)
    await service.flush()
    expect((await service.stores.keys.find(record.hash))?.deprecatedUses).toBe(2n)
  })
})

describe('a key in the wrong place', () => {
  test.each([
    ['a parameter', (key: string) => ({ path: `/v1/pets?limit=${key}` })],
    ['a path', (key: string) => ({ path: `/v1/pets/${key}` })],
    ['another path', (key: string) => ({ path: `/v1/${key}` })],
    ['a request id', (key: string) => ({ path: '/v1/pets', headers: { 'x-request-id': key } })],
    ['a body', (key: string) => ({ path: '/v1/pets', method: 'POST', body: key })],
    [
      'a media type',
      (key: string) => ({ path: '/v1/pets', method: 'POST', body: '{}', headers: { 'content-type': key } }),
    ],
  ])('is not repeated by the answer: %s', async (_, place) => {
    const { path, ...init }: { path: string } & CallInit = place(service.key)
    const { text, headers } = await service.call(path, init)
    expect(text + JSON.stringify([...headers])).not.toContain(service.key.slice(0, 20))
  })

  test('is not kept as an Idempotency-Key', async () => {
    const headers = { 'idempotency-key': service.key }
    const body = '{"name":"Rex","categoryId":1}'
    expect((await service.call('/v1/pets', { method: 'POST', body, headers })).status).toBe(201)
    expect(await service.database.holds('Rex')).toBe(true)
    expect(await service.database.holds(service.key)).toBe(false)
  })
})

describe('how much a look at a key costs', () => {
  test('a key that was just verified is not looked up again, and a mistyped one never', async () => {
    let lookUps = 0
    await using own = await startService()
    const { keys } = own.stores
    const find: typeof keys.find = hash => {
      lookUps++
      return keys.find(hash)
    }
    await using counted = await startService({ keys: { ...keys, find } })
    for (let i = 0; i < 20; i++) await counted.call('/v1/pets', { key: own.key })
    expect(lookUps).toBe(1)
    for (let i = 0; i < 20; i++) await counted.call('/v1/pets', { key: `${own.key.slice(0, -1)}!` })
    await counted.call('/v1/pets', { key: `${own.key.slice(0, 10)}${own.key.slice(11)}0` })
    expect(lookUps).toBe(1)
  })
})
