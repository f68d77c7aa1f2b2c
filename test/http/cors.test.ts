import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Service, startService } from '../support/service.ts'

const origin = 'https://shop.example.com'
let open: Service
let closed: Service
beforeAll(async () => {
  open = await startService({ corsOrigins: [origin, 'http://localhost:3000'] })
  closed = await startService()
})
afterAll(async () => {
  await open[Symbol.asyncDispose]()
  await closed[Symbol.asyncDispose]()
})

const preflight = (service: Service, from: string, path = '/v1/pets') =>
  fetch(`${service.origin}${path}`, {
    method: 'OPTIONS',
    headers: {
      origin: from,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization',
    },
  })
const corsHeaders = (headers: Headers) => [...headers].filter(([name]) => name.startsWith('access-control'))

describe('a page of a named origin', () => {
  test('may ask, and is told so without a key', async () => {
    const { status, headers } = await preflight(open, origin)
    expect(status).toBe(204)
    expect(headers.get('access-control-allow-origin')).toBe(origin)
    expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST')
    expect(headers.get('access-control-allow-headers')).toContain('Idempotency-Key')
    expect(headers.get('access-control-max-age')).toBe('600')
    expect(headers.get('vary')).toBe('Origin')
  })

  test.each(['/v1/pets', '/v1/pets/1', '/v1/pets?limit=0', '/v1/nothing'])(
    'may read the answer of %s',
    async path => {
      const { headers } = await open.call(path, { headers: { origin } })
      expect(headers.get('access-control-allow-origin')).toBe(origin)
      for (const name of [
        'Link',
        'Location',
        'X-Request-Id',
        'Deprecation',
        'Sunset',
        'Retry-After',
        'RateLimit',
      ]) {
        expect(headers.get('access-control-expose-headers')).toContain(name)
      }
    },
  )

  test('may read a refusal too', async () => {
    const { status, headers } = await open.call('/v1/pets', { key: null, headers: { origin } })
    expect([status, headers.get('access-control-allow-origin')]).toEqual([401, origin])
  })
})

describe('a page of another origin', () => {
  test.each(['https://evil.example', 'null', `${origin}.evil.example`, 'http://shop.example.com'])(
    'may not ask: %s',
    async from => {
      const { status, headers } = await preflight(open, from)
      expect([status, corsHeaders(headers)]).toEqual([401, []])
      const answer = await open.call('/v1/pets', { headers: { origin: from } })
      expect([answer.status, corsHeaders(answer.headers)]).toEqual([200, []])
      expect(answer.headers.get('vary')).toBe('Origin')
    },
  )
})

describe('without PETSTORE_CORS_ORIGINS', () => {
  test('nobody may ask, and no answer speaks of origins', async () => {
    const { status, headers } = await preflight(closed, origin)
    expect([status, corsHeaders(headers)]).toEqual([401, []])
    const answer = await closed.call('/v1/pets', { headers: { origin } })
    expect([corsHeaders(answer.headers), answer.headers.get('vary')]).toEqual([[], null])
  })
})
