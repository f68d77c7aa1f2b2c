import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/process.ts'
import { IdsExhausted, StoreUnavailable } from '../errors.ts'
import type { Log, LogFields } from '../log.ts'
import { openStores } from '../store/open.ts'
import type { Stores } from '../store.ts'
import { App, type AppParts } from './app.ts'

const folder = temporaryFolder()
let stores: Stores
beforeAll(async () => {
  stores = await openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true })
  await stores.pets.create({ name: 'Rex', categoryId: 7n })
})
afterAll(async () => {
  await stores.close()
  folder[Symbol.dispose]()
})

let logged: LogFields[]
const log: Log = {
  isOn: () => true,
  write: (_level, message, fields) => logged.push({ message, ...fields }),
  request: (_level, fields) => logged.push(fields),
}
let app: App
const start = (parts: Partial<AppParts> = {}) => {
  app = new App({ ...stores, log, environmentKey: 'a-key', ...parts })
}
beforeEach(() => {
  logged = []
  start()
})

interface Sent extends RequestInit {
  readonly headers?: Record<string, string>
}
const send = (path: string, { headers, ...init }: Sent = {}) =>
  app.fetch(new Request(`http://a${path}`, { ...init, headers: { authorization: 'Bearer a-key', ...headers } }))
const problemOf = async (response: Response): Promise<{ code: string; message: string }> =>
  JSON.parse(await response.text())

describe('a path', () => {
  test.each([
    ['/v1', 401, 'missing_api_key'],
    ['/v1/', 401, 'missing_api_key'],
    ['/v1/pets', 401, 'missing_api_key'],
    ['/v1x', 404, 'not_found'],
    ['/v2/pets', 404, 'not_found'],
    ['/', 404, 'not_found'],
  ])('%s needs a key exactly if it is under /v1: %p', async (path, status, code) => {
    const response = await app.fetch(new Request(`http://a${path}`))
    expect([response.status, (await problemOf(response)).code]).toEqual([status, code])
  })

  test.each([
    [80, `/${'x'.repeat(79)}:`],
    [81, `/${'x'.repeat(79)}…:`],
  ])('of %p characters is shown in the message up to the 80th', async (chars, shown) => {
    const response = await send(`/${'x'.repeat(chars - 1)}`)
    expect((await problemOf(response)).message).toStartWith(`Nothing is at ${shown} `)
  })

  test.each([
    ['/v1/pets', 'DELETE', 'GET, HEAD, POST'],
    ['/livez', 'POST', 'GET, HEAD'],
  ])('%s refuses %s and names the allowed methods', async (path, method, allow) => {
    const response = await send(path, { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
  })
})

describe('a page of an allowed origin', () => {
  const headers = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
  test.each([
    ['OPTIONS', '/v1/pets', 204, 'GET, HEAD, POST'],
    ['OPTIONS', '/v1/nothing', 204, ''],
    ['GET', '/v1/pets', 401, null],
  ])('asks with %s %s without a key and receives %p', async (method, path, status, allow) => {
    start({ corsOrigins: ['https://a.example'] })
    const response = await app.fetch(new Request(`http://a${path}`, { method, headers }))
    expect([response.status, response.headers.get('access-control-allow-methods')]).toEqual([status, allow])
    expect(response.headers.get('access-control-allow-origin')).toBe('https://a.example')
    const exposed = response.headers.get('access-control-expose-headers')?.split(', ')
    expect(exposed).toEqual(expect.arrayContaining(['Link', 'WWW-Authenticate', 'Preference-Applied', 'RateLimit']))
  })

  test('needs a key for OPTIONS without a requested method', async () => {
    start({ corsOrigins: [headers.origin] })
    const request = new Request('http://a/v1/pets', {
      method: 'OPTIONS',
      headers: { origin: headers.origin },
    })
    expect((await app.fetch(request)).status).toBe(401)
  })
})

describe('a response', () => {
  test.each(['GET', 'HEAD'])('to %s has a Date only if the runtime adds none', async method => {
    for (const path of ['/v1/pets', '/livez']) {
      const { status, headers } = await send(path, { method })
      const dateMs = Date.parse(headers.get('date') ?? '')
      expect([status, Math.abs(Date.now() - dateMs) < 60_000]).toEqual([200, method === 'HEAD'])
    }
  })

  test('keeps its connection open until the app drains', async () => {
    expect((await send('/v1/pets')).headers.get('connection')).toBeNull()
    expect(await (await send('/readyz')).text()).toBe('ok')
    app.drain()
    expect((await send('/v1/pets')).headers.get('connection')).toBe('close')
    expect(await (await send('/readyz')).text()).toBe('draining')
  })

  test('says whether strict handling was applied', async () => {
    const strict = await send('/v1/pets?x=1', { headers: { prefer: 'handling=strict' } })
    expect([strict.status, strict.headers.get('preference-applied')]).toEqual([400, 'handling=strict'])
    const lenient = await send('/v1/pets?x=1')
    expect([lenient.status, lenient.headers.get('preference-applied')]).toEqual([200, null])
  })

  test('has the rate limit of its key', async () => {
    start({ rateLimit: { requests: 1, seconds: 60 } })
    const { headers } = await send('/v1/pets')
    expect([headers.get('ratelimit'), headers.get('ratelimit-policy')]).toEqual([
      '"default";r=0;t=60',
      '"default";q=1;w=60',
    ])
    expect((await send('/v1/pets')).status).toBe(429)
  })

  test.each([
    [undefined, '</openapi.json>; rel="deprecation"; type="application/json"'],
    ['/docs', '</docs#/pets/getPet>; rel="deprecation"; type="text/html"'],
  ])('of getPet links to the documentation, with the page %p', async (page, link) => {
    const asset = { type: 'text/html', read: async () => new Uint8Array() }
    start({ pages: page === undefined ? undefined : new Map([[page, asset]]) })
    expect((await send('/v1/pets/1')).headers.get('link')).toStartWith(link)
  })
})

describe('an operation', () => {
  const strict = { prefer: 'handling=strict' }

  test('listPets pages through the catalogue in strict requests too', async () => {
    await stores.pets.create({ name: 'Mia', categoryId: 7n })
    const [, next = ''] = /<(.*)>/.exec((await send('/v1/pets?limit=1')).headers.get('link') ?? '') ?? []
    const response = await send(next, { headers: strict })
    expect([response.status, await response.json()]).toMatchObject([200, [{ name: 'Mia' }]])
  })

  test('createPet counts an animal once, though its request is repeated', async () => {
    const body = '{"name":"Rex","categoryId":7}'
    for (const replayed of [null, 'true']) {
      const response = await send('/v1/pets', { method: 'POST', body, headers: { 'idempotency-key': 'k' } })
      expect([response.status, response.headers.get('idempotency-replayed')]).toEqual([201, replayed])
    }
    expect(await (await send('/metrics')).text()).toContain('\npetstore_pets_created_total 1\n')
  })

  test.each([
    ['/v1/pets/999', 'No animal has id 999', [999n]],
    ['/v1/pets/0999', 'No animal has id "0999"', []],
  ])('getPet asks the store only for an id: %s', async (path, message, expected) => {
    const asked: bigint[] = []
    const get = (id: bigint) => {
      asked.push(id)
      return undefined
    }
    start({ pets: { ...stores.pets, get } })
    expect(await problemOf(await send(path))).toMatchObject({ code: 'pet_not_found', message })
    expect(asked).toStrictEqual(expected)
  })
})

describe('a failure', () => {
  test.each<[Error, number, string, string | null]>([
    [new StoreUnavailable('full'), 503, 'store_unavailable', '1'],
    [new IdsExhausted('none left'), 503, 'ids_exhausted', null],
    [new Error('a bug'), 500, 'internal_error', null],
  ])('%#: %s has the status %p', async (cause, status, code, retryAfter) => {
    const get = () => Promise.reject(cause)
    start({ pets: { ...stores.pets, get } })
    const response = await send('/v1/pets/1')
    expect([response.status, (await problemOf(response)).code]).toEqual([status, code])
    expect(response.headers.get('retry-after')).toBe(retryAfter)
    expect(logged).toMatchObject([{ cause: expect.stringContaining(cause.message) }, { status }])
  })

  test('after the client has gone is logged as 499 only', async () => {
    const gone = new AbortController()
    const get = () => {
      gone.abort()
      throw new Error('no client')
    }
    start({ pets: { ...stores.pets, get } })
    expect((await send('/v1/pets/1', { signal: gone.signal })).status).toBe(499)
    expect(logged).toMatchObject([{ status: 499 }])
  })
})

describe('the body of a refused request', () => {
  /** A body that arrives in chunks, and counts those that were read. */
  function chunked({ ends = true } = {}) {
    const read = { chunks: 0 }
    const body = new ReadableStream({
      pull(controller) {
        read.chunks++
        if (read.chunks <= 3) controller.enqueue(new Uint8Array(10))
        else if (ends) controller.close()
        else return new Promise(() => {})
        return undefined
      },
    })
    return { body, read }
  }
  const refuse = (body: ReadableStream, headers: Record<string, string> = {}) =>
    send('/v1/nothing', { method: 'POST', body, headers })

  test('is read to its end, and the connection stays open', async () => {
    const { body, read } = chunked()
    const { status, headers } = await refuse(body)
    expect([status, headers.get('connection'), read.chunks]).toEqual([404, null, 4])
  })

  test.each<[string, () => void, Record<string, string>]>([
    ['the client closes the connection', () => {}, { connection: 'Close' }],
    ['the app drains', () => app.drain(), { 'content-length': '30' }],
  ])('is read to its end if %s', async (_when, prepare, sent) => {
    prepare()
    const { body, read } = chunked()
    const { headers } = await refuse(body, sent)
    expect([headers.get('connection'), read.chunks]).toEqual(['close', 4])
  })

  test('is left to the runtime if its length is known', async () => {
    const { body, read } = chunked()
    const { headers } = await refuse(body, { 'content-length': '30' })
    expect([headers.get('connection'), read.chunks <= 1]).toEqual([null, true])
  })

  test('does not delay the response longer than allowed', async () => {
    start({ limits: { discardMs: 10 } })
    const { headers } = await refuse(chunked({ ends: false }).body)
    expect(headers.get('connection')).toBe('close')
  })
})
