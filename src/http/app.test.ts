import { afterAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import { plainParts } from '../../test/http/service.ts'
import { temporaryFolder } from '../../test/support/process.ts'
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

type Sent = RequestInit & { readonly headers?: Record<string, string> }
const send = (path: string, { headers, ...init }: Sent = {}) =>
  app.fetch(new Request(`http://a${path}`, { ...init, headers: { authorization: 'Bearer a-key', ...headers } }))
const noKey = { authorization: '' }
const readProblem = async (response: Response): Promise<{ code: string; message: string }> =>
  JSON.parse(await response.text())

const origin = 'https://shop.example.com'
const ask = async (method: string, path: string, from = origin) => {
  const sent = { origin: from, 'access-control-request-method': 'POST', ...noKey }
  const { status, headers } = await send(path, { method, headers: sent })
  const names = ['allow-origin', 'expose-headers', 'allow-methods', 'allow-headers']
  return [status, headers.get('vary'), ...names.map(name => headers.get(`access-control-${name}`))]
}

test('a page of another origin may send requests if its origin is configured, and read every response', async () => {
  start({ corsOrigins: ['http://localhost:3000', origin] })
  const shared = ['Origin', origin, expect.stringContaining('X-Request-Id, WWW-Authenticate, ')]
  const allowed = expect.stringMatching(/^Authorization, Content-Type, .*Idempotency-Key, Prefer$/)
  expect(await ask('OPTIONS', '/v1/pets')).toEqual([204, ...shared, 'GET, HEAD, POST', allowed])
  expect(await ask('OPTIONS', '/v1/nothing')).toEqual([204, ...shared, '', allowed])
  expect(await ask('GET', '/v1/pets')).toEqual([401, ...shared, null, null])
  // Without Access-Control-Request-Method it is no preflight.
  expect((await send('/v1/pets', { method: 'OPTIONS', headers: { origin } })).status).toBe(405)
})

test.each([
  ...['null', `${origin}.evil.example`, 'http://shop.example.com'].map(other => [other, [origin], 'Origin'] as const),
  [origin, undefined, null],
])('a page of another origin may not if its origin is %s, and %j are configured', async (other, corsOrigins, vary) => {
  start({ corsOrigins })
  for (const method of ['OPTIONS', 'GET']) {
    expect(await ask(method, '/v1/pets', other)).toEqual([401, vary, null, null, null, null])
  }
})

test('a response has its duration in the log and in the metrics', async () => {
  using clock = spyOn(performance, 'now').mockReturnValue(1_000)
  startWith({ get: async () => void clock.mockReturnValue(1_001.5) })
  await send('/v1/pets/1')
  expect(logged.at(-1)).toMatchObject({ operation: 'getPet', durationMs: 1.5 })
  const metrics = await (await send('/metrics')).text()
  expect(metrics).toContain('\npetstore_http_request_duration_seconds_sum{operation="getPet"} 0.0015')
})

test('a response to a health check and to a scrape says that the store is down', async () => {
  startWith({ list: () => Promise.reject(new StoreUnavailable('down')) })
  expect([(await send('/livez')).status, (await send('/healthz')).status]).toEqual([200, 503])
  expect(await (await send('/metrics')).text()).toContain('\npetstore_store_up 0\n')
})

test('a response has the rate limit of its key, which requests without a key do not use up', async () => {
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
])('a response has relative addresses unless a public one is configured: %#', async (parts, documentation, base) => {
  start(parts)
  const linkOf = async (path: string) => (await send(path)).headers.get('link')
  const links = `<${documentation}>; rel="deprecation"; type="text/html", <${base}/pets>; rel="successor-version"`
  for (const path of ['/v1/pets/1', '/v1/pets/999']) expect(await linkOf(path)).toBe(links)
  expect(await linkOf('/v1/pets?limit=1')).toStartWith(`<${base}/pets?limit=1&cursor=`)
  const body = '{"name":"Rex","categoryId":7,"status":"sold"}'
  const { headers } = await send('/v1/pets', { method: 'POST', body })
  const location = headers.get('location') ?? ''
  expect(location).toStartWith(`${base}/pets/`)
  const sold = await linkOf(location.replace(publicUrl, '/v1'))
  expect(sold).toEndWith(`<${base}/pets?status=sold>; rel="successor-version"`)
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

test.each<[Error, number, string, string | null]>([
  [new StoreUnavailable('full'), 503, 'store_unavailable', '1'],
  [new StoreDamaged('malformed'), 503, 'store_damaged', null],
  [new IdsExhausted('none left'), 503, 'ids_exhausted', null],
  [new Error('a bug'), 500, 'internal_error', null],
])('%#: the failure %s has the status %p', async (cause, status, code, retryAfter) => {
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

test.each([
  [new Error('a bug'), [{ cause: expect.stringContaining('a bug') }]],
  [new DOMException('The connection was closed.', 'AbortError'), []],
])('%#: a failure after the client has gone is 499, and the log names a cause of ours', async (cause, lines) => {
  const gone = new AbortController()
  startWith({ get: () => Promise.reject(cause).finally(() => gone.abort()) })
  expect((await send('/v1/pets/1', { signal: gone.signal })).status).toBe(499)
  expect(logged).toMatchObject([...lines, { status: 499 }])
})

const storedKey = `pets_${'x'.repeat(36)}`
test.each([
  ['a stored key', storedKey, 'pets_xxxx…'],
  ['the key of the environment', 'a-key', '…'],
])('a response and the log do not repeat %s', async (_what, key, shown) => {
  const headers = { 'x-request-id': key }
  const response = await send(`/v1/${key}`, { headers })
  expect((await readProblem(response)).message).toContain(` /v1/${shown}: `)
  expect((await readProblem(await send(`/v1/pets?limit=${key}`))).message).toContain(`"${shown}`)
  expect(response.headers.get('x-request-id')).not.toBe(key)
  expect(logged[0]).toMatchObject({ path: `/v1/${shown}` })
})
