import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createPages } from '../../src/web/pages.ts'
import { sendRaw } from '../support/connections.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
  await service.stores.pets.create({ name: 'Rex', categoryId: 7n, status: 'available' })
})
afterAll(() => service[Symbol.asyncDispose]())

const raw = (target: string, headers = 'Host: x\r\n') =>
  sendRaw(
    service.port,
    `GET ${target} HTTP/1.1\r\n${headers}Authorization: Bearer ${service.key}\r\nConnection: close\r\n\r\n`,
  )

describe('requests are judged in order', () => {
  const tooLarge = { body: 'x'.repeat(70_000), headers: { 'content-type': 'text/plain' } }

  test.each([
    ['the credential comes before the route', 'POST', '/v1/nothing', null, 401],
    ['the route comes before the method', 'POST', '/v1/nothing', undefined, 404],
    ['the method comes before media type and size', 'PUT', '/v1/pets', undefined, 405],
    ['media type and size come before the parameters', 'POST', '/v1/pets?x=1', undefined, 415],
  ])('%s', async (_, method, path, key, status) => {
    const answer = await service.call(path, {
      method,
      ...tooLarge,
      headers: { ...tooLarge.headers, prefer: 'handling=strict' },
      ...(key === null && { key }),
    })
    expect(answer.status).toBe(status)
  })

  test('an unknown path is 401 without a key and 404 with one', async () => {
    for (const path of ['/v1', '/v1/', '/v1/store/orders', '/v1/pets/1/photos', '/v1/Pets', '/v1/pets/']) {
      expect((await service.call(path, { key: null })).status).toBe(401)
      const { status, json } = await service.call(path)
      expect(status).toBe(404)
      expect(['not_found', 'pet_not_found']).toContain(json.code)
    }
  })

  test('GET /v1/store/orders is 404 until its shape is known', async () => {
    expect((await service.call('/v1/store/orders')).json.code).toBe('not_found')
  })

  test.each(['/', '/v2/pets', '/v1pets', '/pets', '/V1/pets', '/favicon.ico'])(
    '%s is 404 without a key: it is not under /v1',
    async path => {
      const { status, json } = await service.call(path, { key: null })
      expect({ status, code: json.code }).toEqual({ status: 404, code: 'not_found' })
    },
  )
})

describe('methods', () => {
  test.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s /v1/pets is 405 and says what is allowed',
    async method => {
      const { status, json, headers } = await service.call('/v1/pets', { method })
      expect({ status, code: json.code }).toEqual({ status: 405, code: 'method_not_allowed' })
      expect(headers.get('allow')).toBe('GET, HEAD, POST')
    },
  )

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s /v1/pets/1 is 405 and says what is allowed',
    async method => {
      const { status, headers } = await service.call('/v1/pets/1', { method })
      expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    },
  )

  test.each([
    '/v1/pets',
    '/v1/pets?limit=1',
    '/v1/pets/1',
    '/v1/pets/99',
    '/v1/pets?limit=0',
    '/v1/nothing',
    '/openapi.json',
  ])('HEAD %s has the headers of GET and no body', async path => {
    const [get, head] = [await service.call(path), await service.call(path, { method: 'HEAD' })]
    const comparable = ({ status, headers }: typeof get) => ({
      status,
      headers: Object.fromEntries([...headers].filter(([name]) => !/^(x-request-id|date)$/.test(name))),
    })
    expect(comparable(head)).toEqual(comparable(get))
    expect(head.headers.get('date')).not.toBeNull()
    expect(head.text).toBe('')
  })
})

describe('GET /v1/pets/{petId}, deprecated', () => {
  test('gives the animal', async () => {
    const { status, text } = await service.call('/v1/pets/1')
    expect({ status, text }).toEqual({
      status: 200,
      text: '{"id":1,"name":"Rex","categoryId":7,"status":"available"}',
    })
  })

  test.each(['/v1/pets/1', '/v1/pets/99', '/v1/pets/abc'])(
    'says on %s that it goes, when, and what replaces it',
    async path => {
      const { headers } = await service.call(path)
      expect(headers.get('deprecation')).toBe('@1794700800')
      expect(headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT')
      expect(headers.get('link')).toMatch(
        /^<\/[^>]+>; rel="deprecation"; type="[^"]+", <\/v1\/pets\?status=available>; rel="successor-version"$/,
      )
    },
  )

  test('leads to its documentation', async () => {
    const { headers } = await service.call('/v1/pets/1')
    const [, address = ''] = /^<([^>]+)>; rel="deprecation"/.exec(headers.get('link') ?? '') ?? []
    expect((await service.call(address, { key: null })).status).toBe(200)
  })

  test('leads to its place in the reference page, where there is one', async () => {
    await using withPages = await startService({ pages: createPages() })
    const { headers } = await withPages.call('/v1/pets/1')
    const [, address = '', type = ''] =
      /^<([^>]+)>; rel="deprecation"; type="([^"]+)"/.exec(headers.get('link') ?? '') ?? []
    expect(address).toEndWith('#/pets/getPet')
    const page = await fetch(new URL(address, withPages.origin))
    expect([page.status, page.headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`])
  })

  test.each([
    '2',
    '0',
    '-1',
    'abc',
    '1.5',
    '1.0',
    '01',
    '+1',
    '1e0',
    '9223372036854775807',
    '9223372036854775808',
    '-9223372036854775808',
    '99999999999999999999999999',
    'null',
    '%00',
    '1%00',
    '%2F',
    '1%2F',
    '..%2F1',
    '%31%20',
    '%',
    '%zz',
    '%ff',
    '٣',
    '１',
    '__proto__',
    'constructor',
    '1;v=2',
    'a'.repeat(6000),
  ])('has no animal with the id %s', async id => {
    const { status, json } = await service.call(`/v1/pets/${id}`)
    expect(status).toBe(404)
    expect(['pet_not_found', 'not_found']).toContain(json.code)
    expect(json.message.length).toBeLessThan(250)
  })

  test('takes encoded digits for digits', async () => {
    expect((await service.call('/v1/pets/%31')).status).toBe(200)
    expect((await service.call('/%761/pets/1')).status).toBe(404)
  })
})

describe('odd requests', () => {
  test.each(['', ' ', 'a b', ']][', 'a/b?c#d', 'x:99999', 'user@x', '\xff', '[::1', 'a'.repeat(3000)])(
    'the Host header "%s" changes nothing',
    async host => {
      const answer = await raw('/v1/pets/1?limit=1', `Host: ${host}\r\n`)
      expect(answer).toStartWith('HTTP/1.1 200 ')
      expect(answer).toEndWith('{"id":1,"name":"Rex","categoryId":7,"status":"available"}')
    },
  )

  test.each([
    ['/v1/pets/1#part', 200],
    ['/v1/pets/1?#?', 200],
    ['http://elsewhere.example/v1/pets/1', 200],
    ['/v1/pets/../pets/1', 200],
    ['/v1/pets/%2e%2e/pets/1', 200],
    ['//v1/pets/1', 404],
    ['/v1//pets/1', 404],
    ['/v1/pets//1', 404],
    ['/v1/pets/1/', 404],
    ['/v1/%00', 404],
    ['/v1/pets%2F1', 404],
    ['/v1/\xe9', 404],
  ])('the target %s is answered %p', async (target, status) => {
    expect(await raw(target)).toStartWith(`HTTP/1.1 ${status} `)
  })
})
