import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { StoreUnavailable } from '../../src/errors.ts'
import { openStores } from '../../src/store/open.ts'
import { openCrowd } from '../support/connections.ts'
import { ask as sql } from '../support/postgres.ts'
import { until } from '../support/process.ts'
import { type Service, startService, storeUnderTest } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const ask = async (path: string, { origin }: Service, key?: string) => {
  const response = await fetch(`${origin}${path}`, { headers: key ? { authorization: `Bearer ${key}` } : {} })
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
}

const inFlight = 'petstore_http_requests_in_flight'

/** The samples of a scrape, by name and labels. */
async function scrape(of: Service): Promise<Map<string, number>> {
  const { status, text } = await ask('/metrics', of, await of.newKey({ permission: 'metrics' }))
  expect(status).toBe(200)
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  const samples = lines.map(line => /^([a-z_]+(?:\{.*\})?) (\S+)$/.exec(line)?.slice(1) ?? [line, 'not a sample'])
  expect(samples.filter(([, value]) => Number.isNaN(Number(value)))).toEqual([])
  return new Map(samples.map(([name = '', value]) => [name, Number(value)]))
}

describe('health', () => {
  test.each(['/livez', '/readyz'])('%s is ok, without a key', async path => {
    expect(await ask(path, service)).toEqual({ status: 200, type: 'text/plain; charset=utf-8', text: 'ok' })
  })

  test.each([
    ['fails', () => Promise.reject(new StoreUnavailable('SQLite: SQLITE_IOERR'))],
    ['hangs', () => new Promise<never>(() => {})],
  ])('/readyz names a store that %s, and no more; /livez stays ok', async (_, list) => {
    await using broken = await startService({ pets: { ...service.stores.pets, list }, limits: { readyMs: 100 } })
    expect(await ask('/readyz', broken)).toMatchObject({ status: 503, text: 'store' })
    expect(await ask('/livez', broken)).toMatchObject({ status: 200 })
  })
})

describe('/metrics', () => {
  test('needs a key with the permission for it', async () => {
    expect(await ask('/metrics', service)).toMatchObject({ status: 401 })
    expect(await ask('/metrics', service, 'wrong')).toMatchObject({ status: 401 })
    const { status, text } = await ask('/metrics', service, service.key)
    expect([status, JSON.parse(text).code]).toEqual([403, 'insufficient_permission'])
  })

  test('is recorded as a use of its key, and named in the log', async () => {
    const key = await service.newKey({ name: 'prometheus', permission: 'metrics' })
    await ask('/metrics', service, key)
    expect(service.logged.at(-1)).toMatchObject({ path: '/metrics', key: 'prometheus' })
    await service.flush()
    const used = (await service.stores.keys.list()).find(({ name }) => name === 'prometheus')
    expect(used?.lastUsedAt).toBeInstanceOf(Date)
  })

  test('counts requests by operation and status, animals, pages and commits', async () => {
    await using counted = await startService()
    const rex = '{"name":"Rex","categoryId":1}'
    for (const body of [rex, rex, '{"name":""}']) await counted.call('/v1/pets', { method: 'POST', body })
    for (const path of ['/v1/pets', '/v1/pets', '/v1/pets', '/v1/pets/1', '/v1/nothing']) await counted.call(path)
    await counted.call('/v1/pets', { key: null })
    const metrics = await scrape(counted)
    expect(Object.fromEntries(metrics)).toMatchObject({
      'petstore_http_requests_total{operation="createPet",status="201"}': 2,
      'petstore_http_requests_total{operation="createPet",status="400"}': 1,
      'petstore_http_requests_total{operation="listPets",status="200"}': 3,
      'petstore_http_requests_total{operation="getPet",status="200"}': 1,
      'petstore_http_requests_total{operation="none",status="404"}': 1,
      'petstore_http_requests_total{operation="none",status="401"}': 1,
      'petstore_http_request_duration_seconds_bucket{operation="listPets",le="+Inf"}': 3,
      'petstore_http_request_duration_seconds_count{operation="listPets"}': 3,
      [inFlight]: 1,
      petstore_pets_created_total: 2,
      // PostgreSQL does not report when others make a page stale, so nothing is cached.
      petstore_page_cache_hits_total: storeUnderTest === 'postgres' ? 0 : 2,
      petstore_page_cache_misses_total: storeUnderTest === 'postgres' ? 0 : 1,
      'petstore_deprecated_requests_total{operation="getPet",key="test"}': 1,
      petstore_writes_waiting: 0,
      // On SQLite the same thread writes the two keys.
      petstore_commit_writes_sum: storeUnderTest === 'postgres' ? 2 : 4,
    })
    const lastCall = metrics.get('petstore_deprecated_last_request_timestamp_seconds{operation="getPet",key="test"}')
    expect(Math.abs(Date.now() / 1_000 - (lastCall ?? 0))).toBeLessThan(60)
    expect(metrics.get('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
    expect(metrics.get('process_cpu_seconds_total')).toBeGreaterThan(0)
  })

  test('counts a client that closes the connection inside its body as 499, not as slow', async () => {
    await using left = await startService()
    const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${left.key}\r\nContent-Length: 99\r\n\r\n{`
    using crowd = await openCrowd(left.port, 1, head)
    await until('the request to begin', async () => (await scrape(left)).get(inFlight) === 2 || undefined)
    crowd[Symbol.dispose]()
    await until('the request to end', () => left.logged.find(({ status }) => status === 499))
    const metrics = await scrape(left)
    expect(metrics.get('petstore_http_requests_total{operation="createPet",status="499"}')).toBe(1)
    expect(metrics.has('petstore_http_requests_total{operation="createPet",status="408"}')).toBe(false)
  })

  test('gives every family a HELP and a TYPE', async () => {
    const { text, type } = await ask('/metrics', service, await service.newKey({ permission: 'metrics' }))
    expect(type).toBe('text/plain; version=0.0.4; charset=utf-8')
    for (const [, name] of text.matchAll(/^([a-z_]+?)(?:_bucket|_sum|_count)?(?:\{| )/gm)) {
      expect(text).toMatch(new RegExp(`^# HELP ${name}(?:_total)? .+$`, 'm'))
      expect(text).toMatch(new RegExp(`^# TYPE ${name} (counter|gauge|histogram)$`, 'm'))
    }
  })
})

describe('the log', () => {
  test('has a line for each request: id, operation, status, duration, key name, and never the key', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    await service.call('/v1/pets', { headers: { 'x-request-id': 'line-1', traceparent } })
    const known = { message: 'request', requestId: 'line-1', method: 'GET', operation: 'listPets', path: undefined }
    const durationMs = expect.any(Number)
    expect(service.logged.at(-1)).toEqual({ ...known, status: 200, durationMs, key: 'test', traceparent })
    expect(JSON.stringify(service.logged)).not.toContain(service.key)
  })

  test('names the path if there was no operation, without its query or a key', async () => {
    await service.call(`/v1/nothing/${service.key}?secret=${service.key}`)
    expect(service.logged.at(-1)).toMatchObject({ operation: undefined, status: 404, path: '/v1/nothing/…' })
  })

  test('leaves an invalid traceparent out', async () => {
    for (const traceparent of ['', 'nonsense', '00-short-01', `00-${'A'.repeat(32)}-${'b'.repeat(16)}-01`]) {
      await service.call('/v1/pets', { headers: { traceparent } })
      expect(service.logged.at(-1)?.['traceparent']).toBeUndefined()
    }
  })
})

describe('a cached response', () => {
  /** Changes a row from another program. */
  async function byHand(statement: string): Promise<void> {
    const { url } = service.database
    if (storeUnderTest === 'postgres') return sql(url, statement)
    using database = new Database(url.replace('sqlite:', ''), { readwrite: true })
    database.run(statement)
  }

  test('of a list is up to date, whoever adds an animal', async () => {
    await using stack = new AsyncDisposableStack()
    const other = await openStores(service.database.url, { create: false })
    stack.defer(() => other.close())
    for (let i = 0; i < 20; i++) {
      const before = (await service.call('/v1/pets?limit=100')).json.length
      await (i % 2 ? other : service.stores).pets.create({ name: `Animal ${i}`, categoryId: 1n })
      expect((await service.call('/v1/pets?limit=100')).json.length).toBe(before + 1)
    }
  })

  test('of an animal is up to date, whoever changes it', async () => {
    const { id } = await service.stores.pets.create({ name: 'Rex', categoryId: 1n })
    const shown = async () => (await service.call(`/v1/pets/${id}`)).json
    for (const name of ['Tom', 'Kim', 'Ada']) {
      await byHand(`UPDATE pets SET name = '${name}' WHERE id = ${id}`)
      expect([await shown(), await shown()]).toMatchObject([{ name }, { name }])
    }
    await byHand(`DELETE FROM pets WHERE id = ${id}`)
    expect((await service.call(`/v1/pets/${id}`)).status).toBe(404)
  })

  test('is not used for strict handling, and gets no headers of one request', async () => {
    const { id } = await service.stores.pets.create({ name: 'Rex', categoryId: 1n })
    const prefer = { prefer: 'handling=strict' }
    for (const path of ['/v1/pets?offset=1', `/v1/pets/${id}?offset=1`]) {
      const before = await service.call(path)
      expect((await service.call(path, { headers: prefer })).status).toBe(400)
      const after = await service.call(path)
      expect([after.status, [...after.headers.keys()]]).toEqual([200, [...before.headers.keys()]])
    }
  })
})
