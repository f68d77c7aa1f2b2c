import { afterAll, describe, expect, test } from 'bun:test'
import { StoreUnavailable } from '../../src/errors.ts'
import { createPages } from '../../src/web/pages.ts'
import { exchange } from '../support/connections.ts'
import { type Answer, type Service, startService } from '../support/service.ts'

const service = await startService()
await service.stores.pets.create({ name: 'Rex', categoryId: 7n, status: 'available' })
afterAll(() => service[Symbol.asyncDispose]())

const rex = '{"name":"Rex","categoryId":1}'
const codeOf = ({ status, json }: Answer) => [status, json.code]

describe('paths and methods', () => {
  test.each([
    ['the method before media type and size', 'PUT', '/v1/pets', 405],
    ['media type and size before the parameters', 'POST', '/v1/pets?x=1', 415],
  ])('requests are checked in order: %s', async (_, method, path, status) => {
    const headers = { 'content-type': 'text/plain', prefer: 'handling=strict' }
    expect((await service.call(path, { method, body: 'x'.repeat(70_000), headers })).status).toBe(status)
  })

  test.each(['/', '/v2/pets', '/v1pets', '/V1/pets', '/favicon.ico'])(
    '%s is not under /v1: 404 without a key',
    async path => expect(codeOf(await service.call(path, { key: null }))).toEqual([404, 'not_found']),
  )

  test.each([
    ['OPTIONS', '/v1/pets', 'GET, HEAD, POST'],
    ['POST', '/openapi.json', 'GET, HEAD'],
  ])('%s %s is 405, and the others are named', async (method, path, allowed) => {
    const answer = await service.call(path, { method })
    expect([...codeOf(answer), answer.headers.get('allow')]).toEqual([405, 'method_not_allowed', allowed])
  })

  test.each(['/v1/pets?limit=1', '/v1/pets/99', '/v1/pets?limit=0', '/v1/nothing', '/openapi.json'])(
    'HEAD %s has the headers of GET and no body',
    async path => {
      const [get, head] = [await service.call(path), await service.call(path, { method: 'HEAD' })]
      const comparable = ({ status, headers }: Answer) => [
        status,
        [...headers].filter(([name]) => !/^(x-request-id|date)$/.test(name)).sort(),
      ]
      expect(comparable(head)).toEqual(comparable(get))
      expect(head.headers.get('date')).not.toBeNull()
      expect(head.text).toBe('')
    },
  )

  test.each([
    ...['0', '-1', '1.0', '01', '+1', '1e0', '9223372036854775807', '9223372036854775808', '%00', '1%00', '%2F'],
    ...['..%2F1', '%31%20', '%', '%zz', '%ff', '٣', '１', '__proto__', '1;v=2', 'a'.repeat(6000)],
  ])('no animal has the id %s', async id => {
    const { status, json } = await service.call(`/v1/pets/${id}`)
    expect([status, json.code]).toEqual([404, expect.stringMatching(/^(pet_)?not_found$/)])
    expect(json.message.length).toBeLessThan(250)
  })

  test('encoded digits are digits, but only after the base address', async () => {
    expect((await service.call('/v1/pets/%31')).status).toBe(200)
    expect((await service.call('/%761/pets/1')).status).toBe(404)
  })

  const raw = async (target: string, host: string) => {
    const head = `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${service.key}\r\n\r\n`
    return (await exchange(service.port, [head], { expected: 1, quietMs: 20 })).replies
  }

  test.each(['', 'a b', ']][', 'a/b?c#d', 'x:99999', 'user@x', '\xff', '[::1', 'a'.repeat(3000)])(
    'the Host header "%s" changes nothing',
    async host => {
      const text = '{"id":1,"name":"Rex","categoryId":7,"status":"available"}'
      expect(await raw('/v1/pets/1?limit=1', host)).toMatchObject([{ status: 200, text }])
    },
  )

  test.each(['//v1/pets/1', '/v1/pets//1', '/v1/pets/1/', '/v1/pets%2F1'])('the target %s is 404', async target =>
    expect(await raw(target, 'x')).toMatchObject([{ status: 404 }]),
  )

  test('a chunked body with a trailer is refused by the runtime, and its animal is not stored', async () => {
    const animal = '{"name":"Trailer","categoryId":1}'
    const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\nTransfer-Encoding: chunked`
    const body = `${animal.length.toString(16)}\r\n${animal}\r\n0\r\nX-Trailer: 1\r\n\r\n`
    for (let i = 0; i < 5; i++) {
      const { replies } = await exchange(service.port, [`${head}\r\n\r\n${body}`], { expected: 1, quietMs: 20 })
      expect(replies).toMatchObject([{ status: 400 }])
    }
    const { pets } = await service.stores.pets.list({ limit: 100 })
    expect(pets.map(({ name }) => name)).not.toContain('Trailer')
  })
})

describe('headers', () => {
  test('the deprecated operation links to its place in the reference page, if there is one', async () => {
    await using withPages = await startService({ pages: createPages() })
    const { headers } = await withPages.call('/v1/pets/1')
    const [, address = '', type = ''] =
      /^<([^>]+)>; rel="deprecation"; type="([^"]+)"/.exec(headers.get('link') ?? '') ?? []
    expect(address).toEndWith('#/pets/getPet')
    const page = await fetch(new URL(address, withPages.origin))
    expect([page.status, page.headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`])
  })

  test('X-Request-Id is a new one on every response, also on cached and early ones', async () => {
    const paths = ['/v1/pets', '/v1/pets', '/v1/pets', '/v1/pets/1', '/v1/pets/1', '/nothing']
    const ids = await Promise.all(paths.map(async path => (await service.call(path)).headers.get('x-request-id')))
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('addresses are absolute if a public base address is configured', async () => {
    const publicUrl = 'https://pets.example.com/shop/v1'
    await using behind = await startService({ publicUrl })
    const created = await behind.call('/v1/pets', { method: 'POST', body: rex })
    expect(created.headers.get('location')).toBe(`${publicUrl}/pets/1`)
    await behind.call('/v1/pets', { method: 'POST', body: rex })
    const linkOf = async (path: string) => (await behind.call(path)).headers.get('link')
    expect(await linkOf('/v1/pets?limit=1')).toStartWith(`<${publicUrl}/pets?limit=1&cursor=`)
    expect(await linkOf('/v1/pets/1')).toContain(`<${publicUrl}/pets?status=available>`)
    expect(await linkOf('/v1/pets/1')).toContain('<https://pets.example.com/shop/openapi.json>; rel="deprecation"')
  })
})

describe('a failure', () => {
  test('of the store is 503 with Retry-After, and the log has the cause', async () => {
    const fail = () => {
      throw new StoreUnavailable('SQLite: SQLITE_FULL')
    }
    const pets = { list: fail, create: fail, createOnce: fail, get: fail, deleteExpiredIdempotencyKeys: fail }
    await using broken = await startService({ pets })
    const post = () => broken.call('/v1/pets', { method: 'POST', body: rex })
    for (const answer of [await broken.call('/v1/pets'), await broken.call('/v1/pets/1'), await post()]) {
      expect(codeOf(answer)).toEqual([503, 'store_unavailable'])
      expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
      expect(answer.text).not.toContain('SQLITE')
    }
    const requestId = expect.any(String)
    expect(broken.logged.filter(({ message }) => message !== 'request')).toEqual([
      { message: 'store unavailable', requestId, cause: 'SQLite: SQLITE_FULL', requests: 1 },
    ])
  })

  test('that is a bug is 500 with the request id alone, and the next request is served', async () => {
    const secret = 'password=hunter2 at /srv/petstore'
    const list = () => {
      throw new Error(secret)
    }
    const get = () => Promise.reject(new Error(secret))
    await using broken = await startService({ pets: { ...service.stores.pets, list, get } })
    for (const path of ['/v1/pets', '/v1/pets/1']) {
      const answer = await broken.call(path, { headers: { 'x-request-id': 'find-me' } })
      expect(codeOf(answer)).toEqual([500, 'internal_error'])
      expect(answer.text).toContain('find-me')
      expect(answer.text).not.toContain('hunter2')
      const fault = broken.logged.findLast(({ message }) => message === 'internal error')
      expect(fault).toMatchObject({ requestId: 'find-me', cause: expect.stringContaining(secret) })
    }
    expect((await broken.call('/v1/nothing')).status).toBe(404)
  })
})

describe('CORS', () => {
  const origin = 'https://shop.example.com'
  const corsHeaders = (headers: Headers) => [...headers].filter(([name]) => name.startsWith('access-control'))
  const preflight = (at: Service, from: string) =>
    fetch(`${at.origin}/v1/pets`, {
      method: 'OPTIONS',
      headers: {
        origin: from,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization',
      },
    })

  test('a page of a configured origin may send requests, and read every response', async () => {
    await using open = await startService({ corsOrigins: [origin, 'http://localhost:3000'] })
    const { status, headers } = await preflight(open, origin)
    expect([status, Object.fromEntries(headers)]).toMatchObject([
      204,
      {
        vary: 'Origin',
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'GET, HEAD, POST',
        'access-control-allow-headers': expect.stringContaining('Idempotency-Key'),
        'access-control-max-age': '600',
      },
    ])
    const exposed = 'Link Location X-Request-Id Deprecation Sunset Retry-After RateLimit'.split(' ')
    for (const [path, key = open.key] of [['/v1/pets'], ['/v1/pets/1'], ['/v1/nothing'], ['/v1/pets', null]] as const) {
      const answer = await open.call(path, { headers: { origin }, key })
      expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
      const names = answer.headers.get('access-control-expose-headers')?.split(', ')
      expect(names).toEqual(expect.arrayContaining(exposed))
    }
  })

  test.each(['https://evil.example', 'null', `${origin}.evil.example`, 'http://shop.example.com'])(
    'a page of the origin %s may not',
    async from => {
      await using open = await startService({ corsOrigins: [origin] })
      const { status, headers } = await preflight(open, from)
      expect([status, corsHeaders(headers)]).toEqual([401, []])
      const answer = await open.call('/v1/pets', { headers: { origin: from } })
      expect([answer.status, corsHeaders(answer.headers), answer.headers.get('vary')]).toEqual([200, [], 'Origin'])
    },
  )

  test('without configured origins no response mentions them', async () => {
    const { status, headers } = await preflight(service, origin)
    expect([status, corsHeaders(headers)]).toEqual([401, []])
    const answer = await service.call('/v1/pets', { headers: { origin } })
    expect([corsHeaders(answer.headers), answer.headers.get('vary')]).toEqual([[], null])
  })
})
