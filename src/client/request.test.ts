import { afterEach, beforeEach, expect, type Mock, spyOn, test } from 'bun:test'
import { inspect } from 'node:util'
import { errorAnswer, type Step, startScriptedServer } from '../../test/client/scripted-server.ts'
import * as client from './index.ts'
import { waitMsBeforeRetry } from './request.ts'

const apiKey = 'key-that-must-stay-secret'
const rex = { name: 'Rex', categoryId: 7n }
const rexBody = { id: 1, name: 'Rex', categoryId: 7 }
const created = Response.json(rexBody, { status: 201 })
const empty = Response.json([])

/** With 0, the client retries at once. */
let random: Mock<() => number>
beforeEach(() => {
  random = spyOn(Math, 'random').mockReturnValue(0)
})
afterEach(() => random.mockRestore())

/** How an attempt ends; undefined is a time-out. */
type End = Response | Error | undefined

function petsAt({ url }: { url: string }, options: Partial<client.ClientOptions> = {}): client.Pets {
  return new client.PetstoreClient({ baseUrl: url, apiKey, ...options } as client.ClientOptions).pets
}

function catchFailure(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch(error => error)
}

/** Calls a client whose attempts end like this; the last one must not be repeated. */
async function callWith(
  ends: readonly End[],
  call: (pets: client.Pets) => Promise<unknown>,
  options: Partial<client.ClientOptions> = {},
) {
  let attempts = 0
  const fetch: client.Fetch = async (_url, { signal }) => {
    const end = ends[attempts++]
    if (end instanceof Response) return end.clone() as Response
    if (!end) await new Promise(resolve => signal?.addEventListener('abort', resolve))
    throw end
  }
  const outcome = await catchFailure(call(petsAt({ url: 'http://a' }, { fetch, timeoutMs: 1, ...options })))
  expect(attempts).toBe(ends.length)
  return outcome
}

/** The error of a list without retries, for this response. */
async function failureOn(response: Response): Promise<client.PetstoreError> {
  await using server = startScriptedServer(response)
  return (await catchFailure(list(petsAt(server, { retries: 0 })))) as client.PetstoreError
}

const html = (body: string, status = 200) => new Response(body, { status, headers: { 'content-type': 'text/html' } })

const list = (pets: client.Pets) => pets.list().page()

test('a response of 16 MiB is read, and a longer one is not read further', async () => {
  const mebibyte = 1024 ** 2
  expect(await callWith([new Response('[]'.padEnd(16 * mebibyte))], list)).toEqual({ pets: [] })
  let sent = 0
  const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(Buffer.alloc(mebibyte, sent++))
  const fetch = async () => new Response(new ReadableStream({ pull }), { headers: { 'x-request-id': 'find-me' } })
  const details = { status: 200, requestId: 'find-me', code: 'unexpected_response' }
  const error = await catchFailure(list(petsAt({ url: 'http://a' }, { fetch })))
  expect(error).toMatchObject({ name: 'UnexpectedResponseError', ...details })
  // A stream may be some chunks ahead of its reader.
  expect(sent).toBeLessThan(32)
})

test('a request carries the key, and the headers of the client, which a call may override', async () => {
  await using server = startScriptedServer(errorAnswer(503, 'a'), created)
  const ofClient = { 'x-A': 'd', 'User-Agent': 'import/1' }
  const ofCall = { 'X-A': 'b c', prefer: '' }
  await petsAt(server, { headers: ofClient }).create(rex, { headers: new Headers(ofCall) })
  await petsAt(server, { headers: new Headers(ofClient) }).create(rex, { headers: ofCall })
  const own = { authorization: `Bearer ${apiKey}`, accept: 'application/json', 'content-type': 'application/json' }
  const sent = { ...own, 'x-a': 'b c', prefer: '', 'user-agent': 'import/1' }
  expect(server.requests.map(({ headers }) => headers.toJSON())).toMatchObject([sent, sent, sent])
})

test('onAttempt gets each attempt of each call, its outcome and the notice of a deprecation', async () => {
  const sunset = new Date('2030-12-05T00:00:00Z')
  const unavailable = errorAnswer(503, 'a', { 'x-request-id': 'r-1', sunset: sunset.toUTCString() })
  const seen: unknown[] = []
  await callWith([unavailable, undefined, created], pets => pets.create(rex), { onAttempt: a => seen.push(a) })
  const unknown = { status: undefined, requestId: undefined, error: undefined, retryInMs: undefined }
  const any = { durationMs: expect.any(Number), deprecation: undefined }
  const create = { operation: 'createPet', method: 'POST', url: 'http://a/v1/pets', ...unknown, ...any }
  const failed = { error: expect.any(client.TemporaryError), retryInMs: expect.any(Number) }
  expect(seen).toEqual([
    { ...create, attempt: 1, ...failed, status: 503, requestId: 'r-1', deprecation: { sunset } },
    { ...create, attempt: 2, ...failed },
    { ...create, attempt: 3, status: 201 },
  ])
  expect(Bun.inspect(seen, { depth: 9 })).not.toContain(apiKey)
})

test('onAttempt does not end the call if it throws or rejects', async () => {
  const throws = () => {
    throw new Error('Mine')
  }
  for (const onAttempt of [throws, () => Promise.reject(new Error('Mine'))]) {
    expect(await callWith([errorAnswer(503, 'a'), empty], list, { onAttempt })).toEqual({ pets: [] })
  }
})

test('a temporary failure is retried with the same Idempotency-Key and body', async () => {
  const badGateway = new Response('<h1>Bad gateway</h1>', { status: 502 })
  await using server = startScriptedServer(errorAnswer(503, 'a'), badGateway, created)
  expect(await petsAt(server).create(rex)).toEqual({ ...rex, id: 1n })
  const sent = server.requests.map(({ headers, body }) => `${headers.get('idempotency-key')} ${body}`)
  expect(sent[0]).toMatch(/^[0-9a-f]{32} {"name":"Rex","categoryId":7}$/)
  expect(sent).toEqual(Array(3).fill(sent[0]))
})

test.each<[number, Partial<client.ClientOptions>, client.CallOptions]>([
  [1, { retries: 0 }, {}],
  [2, { retries: 0 }, { retries: 1 }],
])(
  'a temporary failure is the error after %d attempts with the options %j and those of the call %j',
  async (attempts, options, own) => {
    const outcome = await callWith(Array(attempts).fill(errorAnswer(503, 'a')), pets => pets.create(rex, own), options)
    expect(outcome).toBeInstanceOf(client.TemporaryError)
  },
)

test('the wait before a retry is random, grows from at most 250 ms to 8 s, and adds a Retry-After of a minute or less', () => {
  const waitMs = (attempt: number, retryAfterSeconds?: number) =>
    waitMsBeforeRetry(new client.TemporaryError('', { code: 'a', retryAfterSeconds }), attempt, 30)
  expect([waitMs(9), waitMs(1, 60), waitMs(1, 61)]).toEqual([0, 60_000, undefined])
  random.mockReturnValue(1)
  const longest = Array.from({ length: 30 }, (_, index) => Number(waitMs(index + 1)))
  expect([longest[0], longest.at(-1)]).toEqual([250, 8_000])
  expect(longest).toEqual(longest.toSorted((a, b) => a - b))
})

test.each([
  ['connect ECONNREFUSED', new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })],
  ['ECONNREFUSED', Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })],
  ['no error', 'no error'],
  ['Sent Bearer ***', new TypeError('fetch failed', { cause: new RangeError(`Sent Bearer ${apiKey}`) })],
])('a broken connection has the innermost reason in its message, and shows no key: %s', async (reason, cause) => {
  const error = (await callWith([cause as Error], list, { retries: 0 })) as Error
  const details = { name: 'TemporaryError', code: 'connection_failed' }
  expect(error).toMatchObject({ ...details, message: `Cannot reach http://a/v1/pets: ${reason}` })
  expect(error.cause).toBe(reason === 'ECONNREFUSED' ? reason : undefined)
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(apiKey)
})

test.each<[string, Step]>([
  ['no response', () => new Promise(() => {})],
  ['an endless response', () => new Response(new ReadableStream({ start: c => c.enqueue('[') }))],
])('a time-out is an error after all attempts: %s', async (_what, step) => {
  await using server = startScriptedServer(step)
  const codes: unknown[] = []
  const pets = petsAt(server, { onAttempt: ({ error }) => codes.push(error?.code) })
  const error = await catchFailure(pets.list({ timeoutMs: 50 }).page())
  expect(error).toBeInstanceOf(client.TemporaryError)
  expect(error).toMatchObject({ message: expect.stringContaining(`${server.url}/pets within 50 ms`) })
  expect(codes).toEqual(['timeout', 'timeout', 'timeout'])
})

const coded = (code: string) => Object.assign(new TypeError('Unable to connect'), { code })
const later = (code: string, status = 503) => errorAnswer(status, code, { 'x-request-id': 'r-1' })
const gone = errorAnswer(404, 'pet_not_found')
const changed = Response.json(rexBody)
const removed = new Response(null, { status: 204 })
/** A failure after which the server may have executed the request. */
const lost: [string, End][] = [
  ['503', later('store_unavailable')],
  ['a time-out', undefined],
  ['a broken connection', coded('ECONNRESET')],
  ['a broken connection in a browser', new TypeError('Failed to fetch')],
]
const refused: [string, End][] = [
  ['429', later('rate_limited', 429)],
  ['a refused connection in Bun', coded('ECONNREFUSED')],
  ['a refused connection in Node', new TypeError('fetch failed', { cause: coded('ECONNREFUSED') })],
  ['an untrusted certificate', coded('DEPTH_ZERO_SELF_SIGNED_CERT')],
]

const update = (pets: client.Pets) => pets.update(1, { status: 'sold' })
const updateIf = (pets: client.Pets) => pets.update(1, { status: 'sold' }, { ifStatus: 'pending' })
const remove = (pets: client.Pets) => pets.remove(1)
const removeIf = (pets: client.Pets) => pets.remove(1, { ifStatus: 'sold' })

test.each([...lost, ...refused])('a change is repeated after %s', async (_what, end) => {
  expect(await callWith([end, changed], update)).toEqual({ ...rex, id: 1n })
  expect(await callWith([end, removed], remove)).toBeUndefined()
})

test.each(refused)('a change with a condition is repeated after %s', async (_what, end) => {
  expect(await callWith([end, changed], updateIf)).toEqual({ ...rex, id: 1n })
})

test.each<[string, End]>([
  ...lost,
  ['500', errorAnswer(500, 'internal_error', { 'x-request-id': 'r-1' })],
  ['a damaged store', later('store_damaged')],
  ['a page in place of the animal', html('Welcome')],
])('a change with a condition is not repeated, and its outcome is unknown, after %s', async (_what, end) => {
  for (const ends of [[end], [later('rate_limited', 429), end]]) {
    const error = (await callWith(ends, updateIf)) as client.OutcomeUnknownError
    const { status, requestId, message } = error.cause as client.PetstoreError
    const { name, code } = error
    expect([name, code, error.status]).toEqual(['OutcomeUnknownError', 'outcome_unknown', status])
    expect([error.requestId, error.message]).toEqual([requestId, expect.stringContaining(message)])
  }
})

test.each(lost)('a change that removes an animal has succeeded if it is gone after %s', async (_what, end) => {
  expect(await callWith([end, later('rate_limited', 429), gone], removeIf)).toBeUndefined()
})

test.each<[string, number, End[], (pets: client.Pets) => Promise<unknown>]>([
  ['pet_not_found', 404, [later('rate_limited', 429), coded('ECONNREFUSED'), gone], remove],
  ['not_found', 404, [undefined, errorAnswer(404, 'not_found')], remove],
  ['status_changed', 409, [undefined, errorAnswer(409, 'status_changed')], removeIf],
  ['pet_not_found', 404, [undefined, gone], update],
  ['status_changed', 409, [errorAnswer(409, 'status_changed')], updateIf],
  ['rate_limited', 429, Array(3).fill(later('rate_limited', 429)), updateIf],
  ['unexpected_response', 200, [Response.json(rexBody)], remove],
])('a change fails otherwise: %s (%d)', async (code, status, ends, call) => {
  expect(await callWith(ends, call)).toMatchObject({ code, status })
})

const reason = new Error('The user left')

test('the signal of the caller ends a call at once, without a retry', async () => {
  const controller = new AbortController()
  await using server = startScriptedServer(() => {
    controller.abort(reason)
    return new Promise(() => {})
  })
  expect(await catchFailure(petsAt(server).create(rex, { signal: controller.signal }))).toBe(reason)
  expect(server.requests).toHaveLength(1)
})

test('the signal of the caller ends a wait between attempts', async () => {
  const controller = new AbortController()
  let waitEndMs = 0
  const onAttempt = ({ retryInMs = 0 }: client.Attempt) => {
    waitEndMs = performance.now() + retryInMs
    setImmediate(() => controller.abort(reason))
  }
  const refused = errorAnswer(429, 'a', { 'retry-after': '60' })
  const call = (pets: client.Pets) => pets.list({ signal: controller.signal }).page()
  expect(await callWith([refused], call, { onAttempt })).toBe(reason)
  expect(performance.now()).toBeLessThan(waitEndMs)
})

test.each<[typeof client.PetstoreError, typeof client.PetstoreError, ...number[]]>([
  [client.RefusedError, client.UnexpectedResponseError, 400, 401, 404, 409],
  [client.TemporaryError, client.TemporaryError, 408, 429, 502, 503, 504],
  [client.PetstoreError, client.UnexpectedResponseError, 500, 501],
])('a %p has a status, and a page in place of its body is a %p', async (ErrorClass, PageError, ...statuses) => {
  for (const status of statuses) {
    const headers = { 'x-request-id': 'r-1', 'retry-after': '9' }
    const details = { status, requestId: 'r-1', retryAfterSeconds: 9 }
    const error = await failureOn(errorAnswer(status, 'some_code', headers))
    expect(error.constructor).toBe(ErrorClass)
    expect(error).toMatchObject({ name: ErrorClass.name, code: 'some_code', message: 'This is some_code', ...details })
    const page = await failureOn(new Response('<h1>Later</h1>', { status, headers }))
    expect(page.constructor).toBe(PageError)
    expect(page).toMatchObject({ code: 'unexpected_response', ...details })
  }
})

test('a Retry-After that is a date counts from now', async () => {
  const date = new Date(Date.now() + 600_000).toUTCString()
  const { retryAfterSeconds } = await failureOn(errorAnswer(503, 'store_unavailable', { 'retry-after': date }))
  expect(retryAfterSeconds).toBeWithin(1, 601)
})

test('a 503 that only the operator can end is not temporary', async () => {
  for (const code of ['ids_exhausted', 'store_damaged']) {
    expect((await failureOn(errorAnswer(503, code))).constructor).toBe(client.PetstoreError)
  }
})

const notUtf8 = Buffer.from('[{"id":1,"categoryId":7,"name":"\xff"}]', 'latin1')
test.each<[string, () => Response, string]>([
  ["a proxy's page", () => html('<h1>Hi</h1>'), '200, text/html: "<h1>Hi</h1>"'],
  ['81 characters', () => html('x'.repeat(81)), `"${'x'.repeat(80)}"…`],
  ['bytes that are not UTF-8', () => new Response(notUtf8), '"name\\":\\"\ufffd\\"}]"'],
  ['another success', () => Response.json([], { status: 202 }), ': "[]"'],
  ['another shape', () => Response.json(null), ': "null"'],
])('an unexpected response is reported: %s', async (_what, response, problem) => {
  const error = await failureOn(response())
  expect(error).toBeInstanceOf(client.UnexpectedResponseError)
  expect(error.message).toMatch(/^Unexpected response to GET http:\/\/127\.0\.0\.1:\d+\/v1\/pets: \d/)
  expect(error.message).toEndWith(problem)
  // A printed error shows only what is known.
  expect(Object.values(error)).not.toContain(undefined)
})

test('an unexpected response of a redirect is not followed, so the key stays here', async () => {
  await using elsewhere = startScriptedServer(empty)
  const location = `${elsewhere.origin}/v1/pets`
  const error = await failureOn(new Response(null, { status: 308, headers: { location } }))
  expect(error).toBeInstanceOf(client.UnexpectedResponseError)
  expect(error.message).toContain(location)
  expect(elsewhere.requests).toHaveLength(0)
})

test.each<[string, () => Response]>([
  ['a page that is cut there', () => html(`${' '.repeat(70)}${apiKey}`)],
  ['an Error', () => Response.json({ code: 'a', message: `Unknown ${apiKey}`, status: 401 }, { status: 401 })],
  ['a redirect', () => new Response(null, { status: 302, headers: { location: `/login?key=${apiKey}` } })],
])('an error does not show the key that the server echoed in %s', async (_what, response) => {
  const error = await failureOn(response())
  expect(error).toBeInstanceOf(client.PetstoreError)
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(apiKey.slice(0, 8))
  expect(error.message).toContain('***')
})
