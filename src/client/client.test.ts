import { expect, mock, test } from 'bun:test'
import { inspect } from 'node:util'
import { startScriptedServer } from '../../test/client/scripted-server.ts'
import { newIdempotencyKey, type Pets, PetstoreClient, UnexpectedResponseError } from './index.ts'

const apiKey = 'key-that-must-stay-secret'
const baseUrl = 'https://pets.example.com/v1'
const rex = { name: 'Rex', categoryId: 7 }

function petsAt({ url }: { url: string }) {
  return new PetstoreClient({ baseUrl: url, apiKey }).pets
}

test('a printed client shows its address and not its API key', () => {
  const client = new PetstoreClient({ baseUrl, apiKey })
  expect(JSON.stringify(client)).toBe(`{"baseUrl":"${baseUrl}","pets":{}}`)
  expect(inspect(client, { depth: 9, showHidden: true }) + Bun.inspect(client, { depth: 9 })).not.toContain(apiKey)
})

const page = (ids: readonly number[], cursor?: string) =>
  Response.json(
    ids.map(id => ({ id, ...rex })),
    { headers: cursor === undefined ? {} : { 'x-next-cursor': cursor } },
  )

test('a list goes on with the cursor of each page, also over empty pages, with its options on each page', async () => {
  await using server = startScriptedServer(page([1, 2], 'a/b'), page([], 'c'), page([3]))
  const list = petsAt(server).list({ limit: 2, status: 'sold', headers: { 'x-a': '1' } })
  expect((await Array.fromAsync(list)).map(({ id }) => id)).toEqual([1n, 2n, 3n])
  const paths = ['', '&cursor=a%2Fb', '&cursor=c'].map(cursor => `/v1/pets?limit=2&status=sold${cursor}`)
  expect(server.requests.map(({ path }) => path)).toEqual(paths)
  // Each iteration starts again; the server repeats its last page.
  const pages = await Array.fromAsync(list.pages())
  expect<unknown>(pages).toStrictEqual([{ pets: [{ id: 3n, name: 'Rex', categoryId: 7n }] }])
  expect(server.requests.at(-1)?.path).toBe(paths[0] ?? '')
  expect(server.requests.map(({ headers }) => headers.get('x-a'))).toEqual(Array(4).fill('1'))
})

test('a list sends nothing before it is iterated, and fetches no page that is not needed', async () => {
  await using server = startScriptedServer(page([1, 2], 'a'), page([3]))
  for await (const pet of petsAt(server).list()) if (pet.id === 2n) break
  expect(server.requests).toHaveLength(1)
})

test('a list ends at a page with the cursor of the page before', async () => {
  await using server = startScriptedServer(page([1], 'same'))
  const error = await Array.fromAsync(petsAt(server).list({ cursor: 'same' })).catch(error => error)
  expect(error).toBeInstanceOf(UnexpectedResponseError)
  expect(server.requests).toHaveLength(1)
})

const mistyped = { ...rex, stauts: 'sold' }

test.each<[string, (pets: Pets) => Promise<unknown>[]]>([
  ['id', pets => [pets.get(1.5), pets.get(2n ** 63n), pets.update(1.5, {}), pets.remove(2n ** 63n)]],
  ['categoryId', pets => [pets.create({ ...rex, categoryId: 2 ** 60 }), pets.update(1, { categoryId: 2 ** 60 })]],
  ['timeoutMs', pets => [pets.list({ timeoutMs: 0 }).page()]],
  ['retries', pets => [pets.get(1n, { retries: -1 })]],
  ['headers["x-a"]', pets => [pets.create(rex, { headers: { 'x-a': 'secret\0' } })]],
  ['property timeout: did you mean timeoutMs?', pets => [pets.get(1, { timeout: 5 } as object)]],
  ['property stauts: did you mean status?', pets => [pets.create(mistyped), pets.update(1, mistyped)]],
  ['property stauts', pets => [Promise.try(() => pets.list({ stauts: 'sold' } as object))]],
  ['property ifstatus: did you mean ifStatus?', pets => [pets.update(1, {}, { ifstatus: 'sold' } as object)]],
  ['property status: expected signal', pets => [pets.remove(1, { status: 'sold' } as object)]],
  ['property key: expected signal', pets => [pets.create(rex, { key: 'a' } as object)]],
  ['headers["Idempotency-Key"]', pets => [pets.create(rex, { idempotencyKey: 'secret 犬' })]],
])('an invalid %s is a TypeError, and nothing is sent', async (name, call) => {
  await using server = startScriptedServer(page([]))
  for (const outcome of await Promise.allSettled(call(petsAt(server)))) {
    const reason = { name: 'TypeError', message: expect.stringContaining(name) }
    expect(outcome).toMatchObject({ status: 'rejected', reason })
    expect(inspect(outcome)).not.toContain('secret')
  }
  expect(server.requests).toHaveLength(0)
})

test.each<[string, string, (pets: Pets) => Promise<unknown>]>([
  ['PATCH /v1/pets/7', '{}', pets => pets.update(7, { name: undefined, status: undefined })],
  [
    'PATCH /v1/pets/-9007199254740993?status=pending',
    '{"categoryId":9007199254740993,"status":null}',
    pets => pets.update(-(2n ** 53n) - 1n, { categoryId: 2n ** 53n + 1n, status: null }, { ifStatus: 'pending' }),
  ],
  ['DELETE /v1/pets/7', '', pets => pets.remove(7, { ifStatus: undefined })],
  ['DELETE /v1/pets/7?status=sold', '', pets => pets.remove(7n, { ifStatus: 'sold' })],
])('a change is %s %s', async (line, body, call) => {
  await using server = startScriptedServer(
    body ? Response.json({ id: 7, ...rex }) : new Response(null, { status: 204 }),
  )
  expect(await call(petsAt(server))).toEqual(body ? { id: 7n, name: 'Rex', categoryId: 7n } : undefined)
  const [sent] = server.requests
  const type = body ? 'application/json' : null
  expect([`${sent?.method} ${sent?.path}`, sent?.body, sent?.headers.get('content-type')]).toEqual([line, body, type])
})

test('the Idempotency-Key is sent as given, and otherwise 32 new random digits', async () => {
  await using server = startScriptedServer(Response.json({ id: 1, ...rex }, { status: 201 }))
  const given = ['a', '"quoted"', '~'.repeat(255)]
  for (const idempotencyKey of [undefined, ...given]) await petsAt(server).create(rex, { idempotencyKey })
  const [first, ...others] = server.requests.map(({ headers }) => headers.get('idempotency-key'))
  expect(others).toEqual(given)
  const keys = [first, ...Array.from({ length: 100 }, newIdempotencyKey)]
  expect(keys).toEqual(Array(101).fill(expect.stringMatching(/^[0-9a-f]{32}$/)))
  expect(new Set(keys).size).toBe(101)
})

test('a request of the caller is sent as given, with the key and the headers of the client, and has any response as it came', async () => {
  const body = '{"id" : 9223372036854775808}\n'
  const redirect = new Response(null, { status: 307, headers: { location: 'https://other.example/' } })
  await using server = startScriptedServer(new Response(`\ufeff${body}`, { status: 503 }), redirect)
  const client = new PetstoreClient({ baseUrl: server.url, apiKey, headers: { 'x-a': '1', 'x-b': '2' } })
  const query = { limit: '0', 'ä b': '&?' }
  const later = await client.request({ method: 'GET', path: '/pets/%2F?a=1', query, headers: { 'X-A': '3' } })
  expect(later).toStrictEqual({ status: 503, headers: expect.any(Headers), text: `\ufeff${body}` })
  const own = { 'Idempotency-Key': 'order 1' }
  expect(await client.request({ method: 'POST', path: '/pets', body, headers: own })).toMatchObject({ status: 307 })
  await client.request({ method: 'POST', path: '/a', body: '', headers: { 'Content-Type': 'text/plain' } })
  const authorization = `Bearer ${apiKey}`
  expect(server.requests.map(({ headers, ...sent }) => ({ ...sent, ...headers.toJSON() }))).toMatchObject([
    { method: 'GET', path: '/v1/pets/%2F?a=1&limit=0&%C3%A4+b=%26%3F', authorization, 'x-a': '3', 'x-b': '2' },
    { method: 'POST', path: '/v1/pets', body, 'content-type': 'application/json', 'idempotency-key': 'order 1' },
    { method: 'POST', path: '/v1/a', body: '', 'content-type': 'text/plain' },
  ])
})

const elsewhere = '|pets|?a|@other.example/|.example/|:1/|/..|/../v2/pets|/%2e%2E/x|/.\t./|/\\../../a'.split('|')
test.each<[string, object]>([
  ...elsewhere.map((path): [string, object] => ['path is invalid', { path }]),
  ['The address contains the API key', { query: { key: apiKey } }],
  ['headers["Authorization"] is not allowed', { headers: { Authorization: 'Bearer other' } }],
  ['timeoutMs is 0', { timeoutMs: 0 }],
  ['Unknown property url', { url: 'a' }],
])('a request of the caller cannot leave the base address or show the key: %s %j', async (message, options) => {
  const fetch = mock(async () => new Response())
  const request = { method: 'GET', path: '/', ...options }
  const error = await new PetstoreClient({ baseUrl, apiKey, fetch }).request(request).catch(error => error)
  expect(error).toBeInstanceOf(TypeError)
  expect(error.message).toStartWith(message)
  expect(fetch).not.toHaveBeenCalled()
})

test('a request of the caller is sent once, and rejects without a response', async () => {
  const fetch = mock(() => Promise.reject(new TypeError('fetch failed')))
  const request = new PetstoreClient({ baseUrl, apiKey, fetch }).request({ method: 'GET', path: '/pets' })
  expect(await request.catch(error => error)).toMatchObject({ name: 'TemporaryError', code: 'connection_failed' })
  expect(fetch).toHaveBeenCalledTimes(1)
})
