import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { StoreUnavailable } from '../../src/errors.ts'
import { sendRaw } from '../support/connections.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service[Symbol.asyncDispose]())

describe('X-Request-Id', () => {
  test.each(['abc', '7f3c-42', 'a.b_c~d:e/f+g=h@i', 'x'.repeat(128)])("is the client's own: %s", async id => {
    const { headers } = await service.call('/v1/pets', { headers: { 'x-request-id': id } })
    expect(headers.get('x-request-id')).toBe(id)
  })

  test.each(['', 'x'.repeat(129), 'a b', 'a,b', '<script>', 'é', '"quoted"', 'a\tb'])(
    'is ours instead of "%s"',
    async id => {
      const { headers } = await service.call('/v1/pets', { headers: { 'x-request-id': id } })
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    },
  )

  test('is another one on every answer', async () => {
    const ids = await Promise.all(
      ['/v1/pets', '/v1/pets', '/nothing', '/openapi.json'].map(async path =>
        (await service.call(path, { key: null })).headers.get('x-request-id'),
      ),
    )
    expect(new Set(ids).size).toBe(4)
  })
})

describe('every answer under /v1', () => {
  test.each([
    ['GET', '/v1/pets', 200],
    ['GET', '/v1/pets?limit=0', 400],
    ['GET', '/v1/pets/1', 404],
    ['PUT', '/v1/pets', 405],
    ['GET', '/v1/nothing', 404],
  ])('is JSON and not to be stored or guessed at: %s %s', async (method, path, status) => {
    const answer = await service.call(path, { method, headers: { accept: 'text/html' } })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  })
})

describe('addresses', () => {
  test('are absolute where a public base address is configured', async () => {
    await using behind = await startService({ publicUrl: 'https://pets.example.com/shop/v1' })
    const created = await behind.call('/v1/pets', { method: 'POST', body: '{"name":"Rex","categoryId":1}' })
    expect(created.headers.get('location')).toBe('https://pets.example.com/shop/v1/pets/1')
    await behind.call('/v1/pets', { method: 'POST', body: '{"name":"Rex","categoryId":1}' })
    const listed = await behind.call('/v1/pets?limit=1')
    expect(listed.headers.get('link')).toStartWith('<https://pets.example.com/shop/v1/pets?limit=1&cursor=')
    const one = await behind.call('/v1/pets/1')
    expect(one.headers.get('link')).toContain('<https://pets.example.com/shop/v1/pets?status=available>')
    expect(one.headers.get('link')).toContain(
      '<https://pets.example.com/shop/openapi.json>; rel="deprecation"',
    )
  })
})

describe('the OpenAPI document', () => {
  test('is there without a key, and names this instance', async () => {
    const { status, json } = await service.call('/openapi.json', { key: null })
    expect(status).toBe(200)
    expect(json.openapi).toBe('3.1.0')
    expect(json.servers).toEqual([{ url: '/v1', description: 'This instance' }])
    expect(json.paths['/pets/{petId}'].get.deprecated).toBe(true)
  })

  test('names the production and the staging deployment where they are configured', async () => {
    const publicUrl = 'https://pets.example.com/v1'
    const stagingUrl = 'https://staging.example.com/v1'
    await using both = await startService({ publicUrl, stagingUrl })
    const { json } = await both.call('/openapi.json', { key: null })
    expect(json.servers.map(({ url }: { url: string }) => url)).toEqual(['/v1', publicUrl, stagingUrl])
  })

  test('calls an instance whose public address is the staging one staging', async () => {
    const address = 'https://staging.example.com/v1'
    await using staging = await startService({ publicUrl: address, stagingUrl: address })
    const { json } = await staging.call('/openapi.json', { key: null })
    expect(json.servers).toEqual([
      { url: '/v1', description: 'This instance' },
      { url: address, description: 'Staging' },
    ])
  })

  test('takes only GET and HEAD', async () => {
    const { status, headers } = await service.call('/openapi.json', { method: 'POST', key: null })
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})

describe('a fault', () => {
  test('of the store is 503 with Retry-After, and the log has the cause', async () => {
    const fail = () => {
      throw new StoreUnavailable('SQLite: SQLITE_FULL')
    }
    await using broken = await startService({
      pets: { list: fail, create: fail, createOnce: fail, get: fail, deleteExpiredKeys: fail },
    })
    for (const [path, init] of [
      ['/v1/pets', {}],
      ['/v1/pets/1', {}],
      ['/v1/pets', { method: 'POST', body: '{"name":"Rex","categoryId":1}' }],
    ] as const) {
      const { status, json, headers, text } = await broken.call(path, init)
      expect({ status, code: json.code }).toEqual({ status: 503, code: 'store_unavailable' })
      expect(headers.get('retry-after')).toMatch(/^\d+$/)
      expect(text).not.toContain('SQLITE')
    }
    expect(broken.logged.filter(({ message }) => message !== 'request')).toEqual([
      {
        message: 'store unavailable',
        requestId: expect.any(String),
        cause: 'SQLite: SQLITE_FULL',
        requests: 1,
      },
    ])
  })

  test('nobody foresaw is 500, tells the client the request id alone, and the next request is served', async () => {
    const secret = 'password=hunter2 at /srv/petstore'
    const list = () => {
      throw new Error(secret)
    }
    const get = () => Promise.reject(new Error(secret))
    await using broken = await startService({ pets: { ...service.stores.pets, list, get } })
    for (const path of ['/v1/pets', '/v1/pets/1']) {
      const { status, json, text } = await broken.call(path, { headers: { 'x-request-id': 'find-me' } })
      expect({ status, code: json.code }).toEqual({ status: 500, code: 'internal_error' })
      expect(text).toContain('find-me')
      expect(text).not.toContain('hunter2')
      const fault = broken.logged.findLast(({ message }) => message === 'fault')
      expect(fault).toMatchObject({ requestId: 'find-me', cause: expect.stringContaining(secret) })
    }
    expect((await broken.call('/v1/nothing')).status).toBe(404)
  })
})

describe('a chunked body with a trailer', () => {
  test('is refused by the runtime, and its animal is not kept', async () => {
    const animal = '{"name":"Trailer","categoryId":1}'
    const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n`
    const body = `${animal.length.toString(16)}\r\n${animal}\r\n0\r\nX-Trailer: 1\r\n\r\n`
    for (let i = 0; i < 5; i++) {
      const answer = await sendRaw(service.port, `${head}Transfer-Encoding: chunked\r\n\r\n${body}`, 100)
      expect(answer).toStartWith('HTTP/1.1 400 ')
    }
    const { pets } = await service.stores.pets.list({ limit: 100 })
    expect(pets.map(({ name }) => name)).not.toContain('Trailer')
  })
})
