import { describe, expect, mock, spyOn, test } from 'bun:test'
import { inspect } from 'node:util'
import { startScriptedServer } from '../../test/client/scripted-server.ts'
import type { ClientOptions, NewPet, Pets } from './index.ts'
import { newIdempotencyKey, PetstoreClient, responseOf, UnexpectedResponseError } from './index.ts'

const apiKey = 'key-that-must-stay-secret'
const baseUrl = 'https://pets.example.com/v1'

function newClient(options: object): PetstoreClient {
  return new PetstoreClient({ apiKey, ...options } as ClientOptions)
}

test.each([
  [{ baseUrl: 'http://127.0.0.1:8080/v1' }, 'http://127.0.0.1:8080/v1/pets'],
  [{ baseUrl: 'http://127.0.0.1:8080/v1//' }, 'http://127.0.0.1:8080/v1/pets'],
  [{ baseUrl: 'HTTPS://Pets.Example.com' }, 'https://pets.example.com/v1/pets'],
  [{ baseUrl: 'https://pets.example.com/shop/' }, 'https://pets.example.com/shop/v1/pets'],
  [{ baseUrl: new URL('https://pets.example.com/shop/v1') }, 'https://pets.example.com/shop/v1/pets'],
])('the base address %j leads to %s', async (options, url) => {
  const fetch = mock(async () => Response.json([]))
  await newClient({ fetch, ...options })
    .pets.list()
    .page()
  expect(fetch.mock.calls).toEqual([[url, expect.anything()] as never])
})

const notHttp = [
  ...['', '/v1', '8080', 'pets', './pets.db', 'ftp://a.example', 'git+https://a', 'postgres://a:1234/secret', 'x y:80'],
  ...['localhost:8080?secret', 'localhost:8080#secret', 'me:secret@localhost:8080', null],
]
const notBare = ['https://u@a', 'https://:secret@a', 'https://a/v1?q', 'https://a/v1#f']
const notKeys = ['with space', 'secret\nx', 'secret\u00e4', null, 7]

test.each<[string, ...object[]]>([
  ['baseUrl is not an http or https address: expected', ...notHttp.map(address => ({ baseUrl: address }))],
  ['baseUrl has a user, password, query or fragment: remove it', ...notBare.map(address => ({ baseUrl: address }))],
  ...['onRequest', 'onResponse', 'onRetry', 'onDeprecation', 'fetch'].map((name): [string, ...object[]] => [
    `${name} is invalid: expected a function`,
    ...[5, 'secret', {}, null].map(value => ({ baseUrl, [name]: value })),
  ]),
  ['headers is invalid: expected', { baseUrl, headers: null }],
  ['headers["Host"] is not allowed: remove it', { baseUrl, headers: { Host: 'secret' } }],
  ['apiKey is empty', { baseUrl, apiKey: '' }],
  ['apiKey is invalid: expected visible ASCII', ...notKeys.map(key => ({ baseUrl, apiKey: key }))],
])('a TypeError for invalid options shows no secret: %s', (message, ...invalid) => {
  for (const options of invalid) {
    const create = () => newClient(options)
    expect(create).toThrow(TypeError)
    expect(create).toThrow(message)
    expect(create).not.toThrow('secret')
  }
})

test('without options, it names every one that is missing', () => {
  const create = (...args: unknown[]) => Reflect.construct(PetstoreClient, args)
  expect(() => create()).toThrow(new TypeError('Missing options: baseUrl and apiKey'))
  expect(() => create({ apiKey, baseUrl: undefined })).toThrow(new TypeError('Missing options: baseUrl'))
  expect(() => create({ baseUrl, apiKey: undefined })).toThrow(new TypeError('Missing options: apiKey'))
})

test.each([
  ['localhost:8080', 'http://localhost:8080'],
  ['localhost', 'http://localhost'],
  ['//127.0.0.1:8080/v1/', 'http://127.0.0.1:8080'],
  ['pets.example.com/v1', 'http://pets.example.com'],
  ['HTTPS//pets.example.com', 'https://pets.example.com'],
  ['host:8080', 'http://host:8080'],
  ['htps://pets.example.com:8443', 'http://pets.example.com:8443'],
])('the base address %s gets the suggestion %s', (address, suggested) => {
  const error = new TypeError(`baseUrl is not an http or https address: did you mean ${suggested}?`)
  expect(() => newClient({ baseUrl: address })).toThrow(error)
})

test('an unknown property of the client is refused before a missing one', () => {
  const error = new TypeError('Unknown property baseURL: did you mean baseUrl?')
  expect(() => newClient({ baseURL: baseUrl })).toThrow(error)
})

test('a printed client shows its address and not its API key, and a printed list its filter and how to read it', () => {
  const client = new PetstoreClient({ baseUrl: `${baseUrl}/`, apiKey })
  expect(client.baseUrl).toBe(baseUrl)
  expect(JSON.stringify(client)).toBe(`{"baseUrl":"${baseUrl}","pets":{}}`)
  expect(inspect(client, { depth: 9, showHidden: true }) + Bun.inspect(client, { depth: 9 })).not.toContain(apiKey)
  const list = client.pets.list({ status: 'sold', limit: 2, cursor: 'abc', headers: { cookie: 'secret' } })
  const shown = 'PetList {"limit":2,"status":"sold","cursor":"abc"}: use for await, page() or toArray()'
  expect([inspect(list), Bun.inspect(list)]).toEqual([shown, shown])
})

test.each([
  ['timeoutMs', 1, 2 ** 31 - 1],
  ['retries', 0, 100],
  ['backoffMs', 0, 2 ** 31 - 1],
  ['backoffMaxMs', 0, (2 ** 31 - 1) / 2],
  ['retryAfterMaxMs', 0, (2 ** 31 - 1) / 2],
] as const)('%s may be from %d to %d', (name, min, max) => {
  for (const value of [min, max]) newClient({ baseUrl, [name]: value })
  const kind = name === 'retries' ? 'an integer' : 'a number'
  for (const value of [min - 1, max + 1, Number.NaN, '1', ...(name === 'retries' ? [2.5] : [])]) {
    const error = new TypeError(`${name} is ${value}: expected ${kind} from ${min} to ${max}`)
    expect(() => newClient({ baseUrl, [name]: value })).toThrow(error)
  }
})

function petsAt({ url }: { url: string }) {
  return new PetstoreClient({ baseUrl: url, apiKey, backoffMs: 1 }).pets
}

function page(ids: readonly number[], next?: string, more: Record<string, string> = {}): Response {
  const headers = next === undefined ? more : { link: `<${next}>; rel="next"`, ...more }
  const pets = ids.map(id => ({ id, name: 'Rex', categoryId: 7 }))
  return Response.json(pets, { headers })
}

async function collectIds(pets: AsyncIterable<{ id: bigint }>): Promise<bigint[]> {
  return (await Array.fromAsync(pets)).map(({ id }) => id)
}

describe('a list', () => {
  test('goes on with the query of each next link at its own address, also over empty pages', async () => {
    const queries = ['limit=2&status=sold', 'cursor=a%2Fb&x=1', 'offset=4', 'cursor=c']
    const paths = queries.map(query => `/v1/pets?${query}`)
    const elsewhere = page([1, 2], `https://other.example/shop?${queries[1]}`)
    const last = page([3], undefined, { link: '</v1/pets?cursor=a>; rel="prev"' })
    await using server = startScriptedServer(elsewhere, page([], '?offset=4'), page([], '/?cursor=c'), last)
    const list = petsAt(server).list({ limit: 2, status: 'sold' })
    expect(await collectIds(list)).toEqual([1n, 2n, 3n])
    expect(server.requests.map(({ path }) => path)).toEqual(paths)
    // Each iteration starts again; the server repeats its last page.
    expect(await collectIds(list)).toEqual([3n])
    expect(server.requests.at(-1)?.path).toBe(paths[0] ?? '')
  })

  test('sends nothing before it is iterated, and fetches no page that is not needed', async () => {
    await using server = startScriptedServer(page([1, 2], '?cursor=a'), page([3]))
    const list = petsAt(server).list()
    await Bun.sleep(1)
    expect(server.requests).toHaveLength(0)
    for await (const pet of list) if (pet.id === 2n) break
    expect(server.requests).toHaveLength(1)
    expect(server.requests[0]?.headers.has('idempotency-key')).toBe(false)
  })

  test('can be read page by page, with its options on each page, except those that a page overrides', async () => {
    await using server = startScriptedServer(page([1], '?cursor=a'), page([2], '?cursor=b'), page([3]))
    const list = petsAt(server).list({ headers: { 'x-a': '1' } })
    const first = await list.page()
    expect(first.pets).toEqual([{ id: 1n, name: 'Rex', categoryId: 7n }])
    const aborted = first.next?.({ signal: AbortSignal.abort(new Error('enough')) })
    expect(await aborted?.catch(error => error)).toMatchObject({ message: 'enough' })
    const second = await first.next?.({ timeoutMs: 5_000 })
    const third = await second?.next?.({ headers: { 'x-a': '2' } })
    expect(third).toStrictEqual({ pets: [{ id: 3n, name: 'Rex', categoryId: 7n }] })
    expect(server.requests.map(({ headers }) => headers.get('x-a'))).toEqual(['1', '1', '2'])
  })

  test('has each response, and on each page the cursor of the next one, where another list starts', async () => {
    const withHeaders = page([1], '?cursor=link', { 'x-next-cursor': 'header', 'x-request-id': 'r-1' })
    await using server = startScriptedServer(withHeaders, page([2], '?cursor=a%2Fb'), page([3], '?page=4'), page([4]))
    const pages = await Array.fromAsync(petsAt(server).list().pages())
    expect(pages.map(page => 'nextCursor' in page && page.nextCursor)).toEqual(['header', 'a/b', false, false])
    expect(pages.map(page => responseOf(page)?.requestId)).toEqual(['r-1', undefined, undefined, undefined])
    await petsAt(server).list({ status: 'sold', cursor: 'a/b&c ä' }).page()
    expect(server.requests.at(-1)?.path).toBe('/v1/pets?status=sold&cursor=a%2Fb%26c+%C3%A4')
  })

  test.each([
    [1, undefined, 1, 1, [1n]],
    [2, undefined, 2, 1, [1n, 2n]],
    [3, undefined, 3, 2, [1n, 2n, 3n]],
    [1_000, undefined, 100, 3, [1n, 2n, 3n, 4n]],
    [1_000, 7, 7, 3, [1n, 2n, 3n, 4n]],
  ])('as an array of at most %d, with limit %p, asks for %d animals a page and for %d pages', async (...row) => {
    const [max, limit, size, pages, found] = row
    await using server = startScriptedServer(page([1, 2], '?cursor=a'), page([3], '?cursor=b'), page([4]))
    const pets = await petsAt(server).list({ limit, status: 'sold' }).toArray({ max })
    expect(pets.map(({ id }) => id)).toEqual(found)
    expect(server.requests[0]?.path).toBe(`/v1/pets?limit=${size}&status=sold`)
    expect(server.requests).toHaveLength(pages)
  })
})

test.each<[string, string, string, Record<string, string>?]>([
  ['with the API key', `?key=x${apiKey}`, 'contains the API key'],
  ['with the encoded API key', `?${apiKey.replace('-', '%2D')}=1`, 'contains the API key'],
  ['beside the API key as X-Next-Cursor', '?cursor=a', 'contains the API key', { 'x-next-cursor': apiKey }],
  ['to the same page', 'https://other.example/v1/pets?cursor=s%61me', 'leads to the same page'],
])('a next link %s is refused', async (_what, next, problem, headers = {}) => {
  await using server = startScriptedServer(page([1], next, headers))
  const list = petsAt(server).list({ cursor: 'same' })
  const error = await list.page().catch(error => error)
  expect(error).toBeInstanceOf(UnexpectedResponseError)
  expect(error.message).toBe(`Unexpected response to GET ${server.url}/pets?cursor=same: 200, the next link ${problem}`)
  expect(error.message).not.toContain(apiKey)
  expect(server.requests).toHaveLength(1)
})

const rex = { name: 'Rex', categoryId: 7 }
const invalidCursors = ['', `x${apiKey}`, 7 as never, null as never]
const invalidSizes = [0, -1, 1.5, Number.POSITIVE_INFINITY, Number.NaN, '1' as never, undefined as never]
const invalidKeys = ['', ' ', 'a b', 'ä', 'a\r\nx: y', '~'.repeat(256), 7 as never]

test.each<[string, (pets: Pets) => Promise<unknown>[]]>([
  ['id', pets => [pets.get(1.5), pets.get(2n ** 63n), pets.update(1.5, {}), pets.remove(2n ** 63n)]],
  ['categoryId', pets => [pets.create({ ...rex, categoryId: 2 ** 60 }), pets.update(1, { categoryId: 2 ** 60 })]],
  ['timeoutMs', pets => [pets.list({ timeoutMs: 0 }).page()]],
  ['retries', pets => [pets.get(1n, { retries: -1 }), pets.create(rex, { retries: 101 })]],
  ['signal', pets => [pets.create(rex, { signal: {} as AbortSignal })]],
  ['headers["x-a"]', pets => [pets.create(rex, { headers: { 'x-a': 'secret\n' } })]],
  ['cursor', pets => invalidCursors.map(cursor => pets.list({ cursor }).page())],
  ['max', pets => [pets.list().toArray(undefined as never)]],
  ['max', pets => invalidSizes.map(max => pets.list().toArray({ max }))],
  ['idempotencyKey', pets => invalidKeys.map(idempotencyKey => pets.create(rex, { idempotencyKey }))],
])('an invalid %s is a TypeError, and nothing is sent', async (name, call) => {
  await using server = startScriptedServer(page([]))
  for (const outcome of await Promise.allSettled(call(petsAt(server)))) {
    // Not a TypeError of the runtime.
    const message = expect.stringMatching(new RegExp(`^${RegExp.escape(name)} is .*: \\w`))
    expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'TypeError', message } })
    expect(inspect(outcome)).not.toContain('secret')
  }
  expect(server.requests).toHaveLength(0)
})

const known = 'signal, timeoutMs, retries, headers'

test.each<[string, (client: PetstoreClient) => unknown]>([
  ['timeout: did you mean timeoutMs?', ({ pets }) => pets.get(1, { timeout: 5 } as object)],
  ['retry: expected signal', ({ pets }) => pets.get(1, { retry: 5 } as object)],
  ['stauts: did you mean status?', ({ pets }) => pets.list({ stauts: 'sold' } as object)],
  ['stauts: did you mean status?', ({ pets }) => pets.create({ ...rex, stauts: 'sold' } as NewPet)],
  ['stauts: did you mean status?', ({ pets }) => pets.update(1, { stauts: 'sold' } as object)],
  ['ifstatus: did you mean ifStatus?', ({ pets }) => pets.update(1, {}, { ifstatus: 'sold' } as object)],
  [`status: expected ${known}, ifStatus`, ({ pets }) => pets.remove(1, { status: 'sold' } as object)],
  ['idempotencykey: did you mean idempotencyKey?', ({ pets }) => pets.create(rex, { idempotencykey: 'a' } as object)],
  [
    `url: expected ${known}, method, path, query, body`,
    client => client.request({ method: 'GET', path: '/pets', url: 'a' } as never),
  ],
])('an unknown property is a TypeError, and nothing is sent: %s', async (message, call) => {
  await using server = startScriptedServer(page([]))
  const client = new PetstoreClient({ baseUrl: server.url, apiKey })
  await expect((async () => call(client))()).rejects.toThrow(TypeError)
  await expect((async () => call(client))()).rejects.toThrow(`Unknown property ${message}`)
  expect(server.requests).toHaveLength(0)
})

test.each<[string, string, (pets: Pets) => Promise<unknown>]>([
  ['PATCH /v1/pets/7', '{}', pets => pets.update(7, { name: undefined, status: undefined })],
  [
    'PATCH /v1/pets/7',
    '{"name":"Kim","categoryId":8}',
    pets => pets.update(7n, { id: 9, name: 'Kim', categoryId: 8 } as object),
  ],
  [
    'PATCH /v1/pets/-9007199254740993?status=pending',
    '{"categoryId":9007199254740993,"status":null}',
    pets => pets.update(-(2n ** 53n) - 1n, { categoryId: 2n ** 53n + 1n, status: null }, { ifStatus: 'pending' }),
  ],
  ['DELETE /v1/pets/7', '', pets => pets.remove(7, { ifStatus: undefined })],
  ['DELETE /v1/pets/7?status=sold', '', pets => pets.remove(7n, { ifStatus: 'sold' })],
])('a change is %s %s', async (line, body, call) => {
  const changed = Response.json({ id: 7, ...rex })
  await using server = startScriptedServer(({ method }) =>
    method === 'PATCH' ? changed : new Response(null, { status: 204 }),
  )
  expect(await call(petsAt(server))).toEqual(body ? { id: 7n, name: 'Rex', categoryId: 7n } : undefined)
  const type = body ? 'application/json' : null
  const sent = server.requests.map(({ method, path, body, headers }) => [
    `${method} ${path}`,
    body,
    headers.get('content-type'),
  ])
  expect(sent).toEqual([[line, body, type]])
})

/** The keys of creations with these options. */
async function sendKeys(...given: (string | undefined)[]): Promise<string[]> {
  await using server = startScriptedServer(Response.json({ id: 1, ...rex }, { status: 201 }))
  for (const idempotencyKey of given) await petsAt(server).create(rex, { idempotencyKey })
  return server.requests.map(({ headers }) => headers.get('idempotency-key') ?? '')
}

describe('the Idempotency-Key', () => {
  test('is sent as given, and otherwise 32 new random digits', async () => {
    const given = ['a', '"quoted"', '~'.repeat(255)]
    const [first = '', second, ...others] = await sendKeys(undefined, undefined, ...given)
    expect(others).toEqual(given)
    expect([first, newIdempotencyKey()]).toEqual(Array(2).fill(expect.stringMatching(/^[0-9a-f]{32}$/)))
    expect(first).not.toBe(second)
  })

  test.each([1, 255])('has two digits for each random byte, such as %d', byte => {
    using _random = spyOn(crypto, 'getRandomValues').mockImplementation(
      bytes => (bytes as never as Uint8Array).fill(byte) as never,
    )
    expect(newIdempotencyKey()).toBe(byte.toString(16).padStart(2, '0').repeat(16))
  })
})

describe('a request of the caller', () => {
  test('is sent as given, with the key and the headers of the client, and has any response as it came', async () => {
    const body = '{"id" : 9223372036854775808}\n'
    const headers = { 'content-type': 'text/plain', 'x-request-id': 'r-1', 'x-echo': apiKey }
    const first = new Response(`\ufeff${body}`, { status: 503, headers })
    const redirect = new Response(null, { status: 307, headers: { location: 'https://other.example/' } })
    await using server = startScriptedServer(first, redirect, new Response('\xff'))
    const client = new PetstoreClient({ baseUrl: server.url, apiKey, headers: { 'x-a': '1', 'x-b': '2' } })
    const query = { limit: '0', 'ä b': '&?' }
    const later = await client.request({ method: 'GET', path: '/pets/%2F', query, headers: { 'X-A': '3' } })
    expect(later).toMatchObject({
      status: 503,
      statusText: 'Service Unavailable',
      text: `\ufeff${body}`,
      requestId: 'r-1',
    })
    expect([later.headers.get('x-echo'), later.rateLimit]).toEqual([apiKey, undefined])
    const own = { 'Idempotency-Key': 'order 1' }
    expect(await client.request({ method: 'POST', path: '/pets', body, headers: own })).toMatchObject({ status: 307 })
    const plain = { 'Content-Type': 'text/plain' }
    expect((await client.request({ method: 'POST', path: '/a', body: '', headers: plain })).text).toBe('\xff')
    const authorization = `Bearer ${apiKey}`
    expect(server.requests.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['GET', '/v1/pets/%2F?limit=0&%C3%A4+b=%26%3F', ''],
      ['POST', '/v1/pets', body],
      ['POST', '/v1/a', ''],
    ])
    expect(server.requests.map(({ headers }) => headers.toJSON())).toMatchObject([
      { authorization, 'x-a': '3', 'x-b': '2' },
      { authorization, 'content-type': 'application/json', 'idempotency-key': 'order 1', 'x-a': '1' },
      { authorization, 'content-type': 'text/plain' },
    ])
  })

  test.each([
    ...['', 'pets', '?a', '@other.example/', '.example/', ':1/', '/..', '/../v2/pets', '/%2e%2E/x', '/.\t./'],
    '/\\../../a',
    ...['/pets?limit=1', '/pets#a', `/pets/${apiKey}`, '/..//other.example/', 7 as never, undefined as never],
  ])('cannot leave the base address or contain the key: %j', async path => {
    const fetch = mock(async () => new Response())
    const client = newClient({ baseUrl, fetch })
    const error = await client.request({ method: 'GET', path }).catch(error => error)
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toMatch(/^path (is invalid|or query contains the API key): /)
    expect(fetch).not.toHaveBeenCalled()
  })

  test.each<[string, object]>([
    ['path or query contains the API key', { query: { key: apiKey } }],
    ['path or query contains the API key', { query: new URLSearchParams({ [apiKey]: '' }) }],
    ['path or query contains the API key', { path: `/a\t${apiKey.replace('-', '\t-')}` }],
    ['method is invalid', { method: 'FOO BAR' }],
    ['method is invalid', { method: undefined }],
    ['body is invalid', { body: 'a' }],
    ['body is invalid', { method: 'POST', body: {} }],
    ['headers["Authorization"] is not allowed', { headers: { Authorization: 'Bearer other' } }],
    ['timeoutMs is 0', { timeoutMs: 0 }],
  ])('has valid options: %s', async (message, options) => {
    const fetch = mock(async () => new Response())
    const error = await newClient({ baseUrl, fetch })
      .request({ method: 'GET', path: '/', ...options })
      .catch(error => error)
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toStartWith(message)
    expect(fetch).not.toHaveBeenCalled()
  })

  test('is sent once, and rejects without a response', async () => {
    const fetch = mock(() => Promise.reject(new TypeError('fetch failed')))
    const request = newClient({ baseUrl, fetch }).request({ method: 'GET', path: '/pets' })
    expect(await request.catch(error => error)).toMatchObject({ name: 'ConnectionError', code: 'connection_failed' })
    expect(fetch).toHaveBeenCalledTimes(1)
  })
})

test('a key too short for a service may be a part of a cursor, of a next link and of a path', async () => {
  const Link = '</v1/pets?cursor=abc>; rel="next"'
  await using server = startScriptedServer(Response.json([], { headers: { Link } }), Response.json([]))
  const client = newClient({ baseUrl: server.url, apiKey: 'a' })
  expect(await client.pets.list({ cursor: 'ab' }).toArray({ max: 1 })).toEqual([])
  await client.request({ method: 'GET', path: '/a', query: { a: 'a' } })
  const paths = ['/v1/pets?limit=1&cursor=ab', '/v1/pets?cursor=abc', '/v1/a?a=a']
  expect(server.requests.map(({ path }) => path)).toEqual(paths)
})
