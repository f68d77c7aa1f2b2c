import { afterAll, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/process.ts'
import { plainParts } from '../../test/support/service.ts'
import { issueApiKey } from '../api-key.ts'
import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import type { Log, LogFields } from '../log.ts'
import { openStores } from '../store/open.ts'
import type { PetStore } from '../store-contract.ts'
import { App, type AppParts } from './app.ts'

const folder = temporaryFolder()
const stores = await openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true })
await stores.pets.create({ name: 'Rex', categoryId: 7n })
await stores.pets.create({ name: 'Mia', categoryId: 7n })
afterAll(async () => {
  await stores.close()
  folder[Symbol.dispose]()
})

let logged: LogFields[]
const log: Log = {
  isOn: () => true,
  write: (_level, message, fields) => logged.push({ message, ...fields }),
}
let app: App
const start = (parts: Partial<AppParts> = {}) => {
  app = new App({ ...plainParts, stores, log, environmentKey: 'a-key', ...parts })
}
/** With a store that does this instead. */
const startWith = (pets: Partial<PetStore>) => start({ stores: { ...stores, pets: { ...stores.pets, ...pets } } })
beforeEach(() => {
  logged = []
  start()
})

interface Sent extends RequestInit {
  readonly headers?: Record<string, string>
}
const send = (path: string, { headers, ...init }: Sent = {}) =>
  app.fetch(new Request(`http://a${path}`, { ...init, headers: { authorization: 'Bearer a-key', ...headers } }))
const noKey = { authorization: '' }
const readProblem = async (response: Response): Promise<{ code: string; message: string }> =>
  JSON.parse(await response.text())

describe('a page of another origin', () => {
  const origin = 'https://shop.example.com'
  const asking = { 'access-control-request-method': 'POST' }
  const ask = async (method: string, path: string, headers: Record<string, string>) => {
    const response = await send(path, { method, headers: { origin, ...noKey, ...headers } })
    const shown = [...response.headers].filter(([name]) => /^(access-control-|vary$|content-type$)/.test(name))
    return { status: response.status, ...Object.fromEntries(shown) }
  }
  const json = { 'content-type': 'application/json' }
  const shared = {
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-expose-headers': [
      'X-Request-Id, WWW-Authenticate, Allow, Accept, Accept-Patch, Accept-Encoding, Retry-After, Preference-Applied',
      'Idempotency-Replayed, RateLimit, RateLimit-Policy, Link, X-Next-Cursor, Location, Deprecation, Sunset',
    ].join(', '),
  }

  test('may send requests if its origin is configured, and read every response', async () => {
    start({ corsOrigins: ['http://localhost:3000', origin] })
    const preflight = {
      ...shared,
      status: 204,
      'access-control-allow-headers': 'Authorization, Content-Type, X-Request-Id, traceparent, Idempotency-Key, Prefer',
      'access-control-max-age': '600',
    }
    const methodsByPath = { '/v1/pets': 'GET, HEAD, POST', '/v1/pets/1': 'GET, HEAD, PATCH, DELETE', '/v1/nothing': '' }
    for (const [path, methods] of Object.entries(methodsByPath)) {
      const expected = { ...preflight, 'access-control-allow-methods': methods }
      expect(await ask('OPTIONS', path, asking)).toEqual(expected)
    }
    expect(await ask('OPTIONS', '/v1/pets', {})).toEqual({ ...shared, ...json, status: 401 })
    expect(await ask('GET', '/v1/pets', asking)).toEqual({ ...shared, ...json, status: 401 })
  })

  test.each([
    ...['null', `${origin}.evil.example`, 'http://shop.example.com'].map(other => [other, [origin], 'Origin'] as const),
    [origin, undefined, undefined],
  ])('may not if its origin is %s, and %j are configured', async (other, corsOrigins, vary) => {
    start({ corsOrigins })
    for (const method of ['OPTIONS', 'GET']) {
      const response = await ask(method, '/v1/pets', { ...asking, origin: other })
      expect(response).toEqual({ ...json, status: 401, ...(vary && { vary }) })
    }
  })
})

describe('a response', () => {
  test('has a Date only if the runtime adds none', async () => {
    const dateOf = async (method: string) => (await send('/livez', { method })).headers.get('date')
    expect(await dateOf('GET')).toBeNull()
    expect(Math.abs(Date.now() - Date.parse((await dateOf('HEAD')) ?? ''))).toBeLessThan(60_000)
  })

  test('has its duration in the log and in the metrics', async () => {
    using clock = spyOn(performance, 'now').mockReturnValue(1_000)
    startWith({ get: async () => void clock.mockReturnValue(1_001.5) })
    await send('/v1/pets/1')
    expect(logged.at(-1)).toMatchObject({ operation: 'getPet', durationMs: 1.5 })
    const metrics = await (await send('/metrics')).text()
    expect(metrics).toContain('\npetstore_http_request_duration_seconds_sum{operation="getPet"} 0.0015')
  })

  test('to a health check and to a scrape says that the store is down', async () => {
    startWith({ list: () => Promise.reject(new StoreUnavailable('down')) })
    expect([(await send('/livez')).status, (await send('/healthz')).status]).toEqual([200, 503])
    expect(await (await send('/metrics')).text()).toContain('\npetstore_store_up 0\n')
  })

  test('has the rate limit of its key, which requests without a key do not use up', async () => {
    const readRate = ({ headers, status }: Response) =>
      [status, headers.get('ratelimit'), headers.get('ratelimit-policy')] as const
    expect(readRate(await send('/v1/pets'))).toEqual([200, null, null])
    start({ rateLimit: { requests: 1, seconds: 60 } })
    expect(readRate(await send('/v1/pets', { headers: noKey }))).toEqual([401, null, null])
    expect(readRate(await send('/v1/nothing'))).toEqual([404, '"default";r=0;t=60', '"default";q=1;w=60'])
    expect((await send('/v1/pets')).status).toBe(429)
  })

  const publicUrl = 'https://pets.example.com/shop/v1'
  test.each<[Partial<AppParts>, string, string]>([
    [{}, '/docs#/pets/getPet', '/v1'],
    [{ publicUrl }, 'https://pets.example.com/shop/docs#/pets/getPet', publicUrl],
  ])('has relative addresses unless a public one is configured: %#', async (parts, documentation, base) => {
    start(parts)
    const readLink = async (path: string) => (await send(path)).headers.get('link')
    const links = `<${documentation}>; rel="deprecation"; type="text/html", <${base}/pets>; rel="successor-version"`
    for (const path of ['/v1/pets/1', '/v1/pets/9', '/v1/pets/x']) expect(await readLink(path)).toBe(links)
    const sold = await stores.pets.create({ name: 'Tom', categoryId: 7n, status: 'sold' })
    expect(await readLink(`/v1/pets/${sold.id}`)).toEndWith(`<${base}/pets?status=sold>; rel="successor-version"`)
    expect(await readLink('/v1/pets?limit=1')).toStartWith(`<${base}/pets?limit=1&cursor=`)
    const { headers } = await send('/v1/pets', { method: 'POST', body: '{"name":"Rex","categoryId":7}' })
    expect(headers.get('location')).toStartWith(`${base}/pets/`)
  })
})

test('an Idempotency-Key belongs to the API key that sent it', async () => {
  const { key, record } = issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date() })
  await stores.keys.create(record)
  const add = async (authorization: string) => {
    const sent = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }
    const response = await send('/v1/pets', { ...sent, headers: { authorization, 'idempotency-key': 'order-1' } })
    return response.headers.get('location')
  }
  expect(await add('Bearer a-key')).toBe(await add('Bearer a-key'))
  expect(await add(`Bearer ${key}`)).not.toBe(await add('Bearer a-key'))
})

describe('a failure', () => {
  test.each<[Error, number, string, string | null]>([
    [new StoreUnavailable('full'), 503, 'store_unavailable', '1'],
    [new StoreDamaged('malformed'), 503, 'store_damaged', null],
    [new IdsExhausted('none left'), 503, 'ids_exhausted', null],
    [new Error('a bug'), 500, 'internal_error', null],
  ])('%#: %s has the status %p', async (cause, status, code, retryAfter) => {
    startWith({ create: () => Promise.reject(cause) })
    const sent = { method: 'POST', body: '{"name":"Rex","categoryId":7}', headers: { 'x-request-id': 'find-me' } }
    const response = await send('/v1/pets', sent)
    const problem = await readProblem(response)
    expect([response.status, problem.code, response.headers.get('retry-after')]).toEqual([status, code, retryAfter])
    expect(problem.message).not.toContain(cause.message)
    expect(problem.message.includes('find-me')).toBe(status === 500)
    const line = { requestId: 'find-me', cause: expect.stringContaining(cause.message) }
    // The store itself logs its damage.
    expect(logged).toMatchObject([...(code === 'store_damaged' ? [] : [line]), { status }])
  })

  test.each<[string, unknown, object[]]>([
    ['a bug', new Error('oops'), [{ message: 'internal error', cause: expect.stringContaining('oops') }]],
    ['its leaving', new DOMException('The connection was closed.', 'AbortError'), []],
  ])('after the client has gone is 499, and the log names the cause if that is %s', async (_what, cause, lines) => {
    const gone = new AbortController()
    startWith({
      get() {
        gone.abort()
        throw cause
      },
    })
    expect((await send('/v1/pets/1', { signal: gone.signal })).status).toBe(499)
    expect(logged).toMatchObject([...lines, { status: 499 }])
  })
})

const environmentKey = 'a-key-of-the-environment'
const storedKey = `pets_${'x'.repeat(36)}`

test.each([
  ['a stored key', storedKey, 'pets_xxxx…'],
  ['the key of the environment', environmentKey, '…'],
])('a response and the log do not repeat %s', async (_what, key, shown) => {
  start({ environmentKey })
  const headers = { authorization: `Bearer ${environmentKey}`, 'x-request-id': key }
  const response = await send(`/v1/${key}`, { headers })
  expect((await readProblem(response)).message).toStartWith(`Nothing is at /v1/${shown}: `)
  const { message } = await readProblem(await send(`/v1/pets?limit=${key}`, { headers }))
  expect(message).toStartWith(`limit is "${shown}`)
  expect(response.headers.get('x-request-id')).not.toBe(key)
  expect(logged[0]).toMatchObject({ path: `/v1/${shown}` })
})
