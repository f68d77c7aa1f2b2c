import { afterEach, beforeEach, describe, expect, type Mock, spyOn, test } from 'bun:test'
import { inspect } from 'node:util'
import { errorAnswer, type Step, startScriptedServer } from '../../test/client/scripted-server.ts'
import { until } from '../../test/support/process.ts'
import * as client from './index.ts'
import { waitMsBeforeRetry } from './request.ts'

const apiKey = 'key-that-must-stay-secret'
const rex = { name: 'Rex', categoryId: 7n }
const rexBody = { id: 1, name: 'Rex', categoryId: 7 }
const created = Response.json(rexBody, { status: 201 })
const empty = Response.json([])
/** The response never comes, and the client's time is up. */
const silence: Step = () => {
  timeOut()
  return new Promise(() => {})
}

/** Timers of the client that are at least this long end only when the test says so; shorter waits end at once. */
const heldMsMin = 30_000
let held: { readonly ms: number; end: () => void }[]
let spies: Mock<(...args: never[]) => unknown>[]
const timeOut = () => held.at(-1)?.end()
beforeEach(() => {
  held = []
  const { setTimeout, clearTimeout } = globalThis
  const set = (end: () => void, ms = 0) => (ms < heldMsMin ? setTimeout(end) : held[held.push({ ms, end }) - 1])
  const clear = (timer: unknown) => {
    const found = held.find(each => each === timer)
    if (found) found.end = () => {}
    else clearTimeout(timer as number)
  }
  spies = [
    spyOn(globalThis, 'setTimeout').mockImplementation(set as typeof setTimeout),
    spyOn(globalThis, 'clearTimeout').mockImplementation(clear),
  ]
})
afterEach(() => {
  for (const spy of spies) spy.mockRestore()
})

function petsAt({ url }: { url: string }, options: Partial<client.ClientOptions> = {}): client.Pets {
  return new client.PetstoreClient({ baseUrl: url, apiKey, ...options } as client.ClientOptions).pets
}

function catchFailure(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch(error => error)
}

/** The error of a list without retries, for this response. */
async function failureOn(response: Response): Promise<client.PetstoreError> {
  await using server = startScriptedServer(response)
  return (await catchFailure(petsAt(server, { retries: 0 }).list().page())) as client.PetstoreError
}

const typed = (body: string | Uint8Array<ArrayBuffer>, type: string, status = 200) =>
  new Response(body, { status, headers: { 'content-type': type } })
const html = (body: string, status?: number) => typed(body, 'text/html', status)

test('a response may have no stream', async () => {
  const fetch = async () => Object.defineProperty(Response.json([]), 'body', { value: {} })
  expect(await petsAt({ url: 'http://127.0.0.1/v1' }, { fetch }).list().page()).toEqual({ pets: [] })
})

test('a response of 16 MiB is read, and a longer one is not read further', async () => {
  const mebibyte = 1024 ** 2
  let sent = 0
  const lines = (mebibytes: number) =>
    new ReadableStream({
      pull(controller) {
        if (sent < mebibytes) controller.enqueue(Buffer.alloc(mebibyte, sent++ === 0 ? '[]'.padEnd(mebibyte) : ' '))
        else controller.close()
      },
    })
  const fetch = async () => new Response(lines(16), { headers: { 'content-type': 'application/json' } })
  const url = 'http://127.0.0.1/v1'
  expect(await petsAt({ url }, { fetch }).list().page()).toEqual({ pets: [] })
  sent = 0
  const endless = async () => new Response(lines(Infinity), { headers: { 'x-request-id': 'find-me' } })
  const error = await catchFailure(petsAt({ url }, { fetch: endless }).list().page())
  expect(error).toBeInstanceOf(client.UnexpectedResponseError)
  expect(error).toMatchObject({ status: 200, requestId: 'find-me', message: expect.stringContaining('16777216 bytes') })
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

describe('onAttempt', () => {
  test('gets each attempt of each call, its outcome and the notice of a deprecation', async () => {
    const sunset = new Date('2030-12-05T00:00:00Z')
    const headers = { 'x-request-id': 'r-1', sunset: sunset.toUTCString() }
    await using server = startScriptedServer(errorAnswer(503, 'a', headers), silence, created, empty)
    const seen: unknown[] = []
    const store = new client.PetstoreClient({ baseUrl: server.url, apiKey, onAttempt: a => seen.push(a) })
    await store.pets.create(rex)
    await store.request({ method: 'GET', path: '/a' })
    const none = { status: undefined, requestId: undefined, error: undefined, retryInMs: undefined }
    const any = { durationMs: expect.any(Number), deprecation: undefined }
    const create = { operation: 'createPet', method: 'POST', url: `${server.url}/pets`, ...none, ...any }
    const refused = { status: 503, requestId: 'r-1', error: expect.any(client.TemporaryError) }
    const retryInMs = expect.any(Number)
    expect(seen).toEqual([
      { ...create, attempt: 1, ...refused, retryInMs, deprecation: { sunset } },
      { ...create, attempt: 2, error: expect.any(client.TemporaryError), retryInMs },
      { ...create, attempt: 3, status: 201 },
      { ...create, operation: 'request', method: 'GET', url: `${server.url}/a`, attempt: 1, status: 200 },
    ])
    expect(Bun.inspect(seen, { depth: 9 })).not.toContain(apiKey)
  })

  test.each([
    [{ deprecation: '@1794700800' }, { sunset: undefined }],
    [{ sunset: 'soon' }, { sunset: undefined }],
  ])('has for the headers %j the deprecation %p', async (headers, deprecation) => {
    await using server = startScriptedServer(Response.json([], { headers }))
    const seen: unknown[] = []
    await petsAt(server, { onAttempt: attempt => seen.push(attempt.deprecation) })
      .list()
      .page()
    expect(seen).toEqual([deprecation])
  })

  test('does not end the call if it throws or rejects', async () => {
    await using server = startScriptedServer(errorAnswer(503, 'a'), empty)
    const throws = () => {
      throw new Error('Mine')
    }
    for (const onAttempt of [throws, () => Promise.reject(new Error('Mine'))]) {
      expect(await petsAt(server, { onAttempt }).list().page()).toEqual({ pets: [] })
    }
  })
})

describe('a temporary failure', () => {
  test('is retried with the same Idempotency-Key and body', async () => {
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
  ])('is the error after %d attempts with the options %j and those of the call %j', async (attempts, options, own) => {
    await using server = startScriptedServer(errorAnswer(503, 'store_unavailable'))
    expect(await catchFailure(petsAt(server, options).create(rex, own))).toBeInstanceOf(client.TemporaryError)
    expect(server.requests).toHaveLength(attempts)
  })
})

test.each<[number, number | undefined, ...(number | undefined)[]]>([
  [1, undefined, 0, 250],
  [2, undefined, 0, 500],
  [6, undefined, 0, 8_000],
  [7, undefined, 0, 8_000],
  [1, 60, 60_000, 60_250],
  [1, 61, undefined, undefined],
])('after attempt %d with Retry-After %p, the wait is random, from %p to %p', (attempt, seconds, ...limits) => {
  for (const [part, waitMs] of limits.entries()) {
    using _random = spyOn(Math, 'random').mockReturnValue(part)
    const limited = new client.TemporaryError('', { code: 'a', retryAfterSeconds: seconds })
    expect(waitMsBeforeRetry(limited, attempt, 10)).toBe(waitMs)
  }
})

test.each([
  ['connect ECONNREFUSED', new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })],
  ['ECONNREFUSED', Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })],
  ['no error', 'no error'],
  ['Sent Bearer ***', new TypeError('fetch failed', { cause: new RangeError(`Sent Bearer ${apiKey}`) })],
  ['TypeError', new TypeError()],
  ['undefined', undefined],
])('a broken connection has the innermost reason in its message, and shows no key: %s', async (reason, cause) => {
  const fetch = () => Promise.reject(cause)
  const error = (await catchFailure(petsAt({ url: 'http://a' }, { fetch, retries: 0 }).list().page())) as Error
  const details = { name: 'TemporaryError', code: 'connection_failed' }
  expect(error).toMatchObject({ ...details, message: `Cannot reach http://a/v1/pets: ${reason}` })
  expect(error.cause).toBe(reason === 'ECONNREFUSED' ? reason : undefined)
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(apiKey)
})

test.each<[string, Step]>([
  ['no response', silence],
  ['an endless response', () => new Response(new ReadableStream({ start: c => c.enqueue('[') }))],
])('a time-out is an error after all attempts: %s', async (_what, step) => {
  await using server = startScriptedServer(step)
  const fetched = async (...request: Parameters<client.Fetch>) => {
    const response = await fetch(...request)
    // The client waits for the body by then.
    setImmediate(timeOut)
    return response
  }
  const error = await catchFailure(petsAt(server, { fetch: fetched }).list({ timeoutMs: 40_000 }).page())
  expect(error).toBeInstanceOf(client.TemporaryError)
  expect(held.map(({ ms }) => ms)).toEqual([40_000, 40_000, 40_000])
  const message = `No complete response from ${server.url}/pets within 40000 ms`
  expect(error).toMatchObject({ code: 'timeout', message })
  expect(server.requests).toHaveLength(3)
})

describe('a change', () => {
  const coded = (code: string) => Object.assign(new TypeError('Unable to connect'), { code })
  const later = (code: string, status = 503) => errorAnswer(status, code, { 'x-request-id': 'r-1' })
  const gone = errorAnswer(404, 'pet_not_found')
  const changed = Response.json(rexBody)
  const removed = new Response(null, { status: 204 })
  /** A failure after which the server may have executed the request. */
  const lost: [string, Response | Error | undefined][] = [
    ['503', later('store_unavailable')],
    ['502 of a proxy', html('Bad gateway', 502)],
    ['504 of a proxy', html('Time-out', 504)],
    ['a time-out', undefined],
    ['a broken connection', coded('ECONNRESET')],
    ['a broken connection in a browser', new TypeError('Failed to fetch')],
  ]
  const refused: [string, Response | Error][] = [
    ['429', later('rate_limited', 429)],
    ['408', later('request_timeout', 408)],
    ['a refused connection in Bun', coded('ECONNREFUSED')],
    ['a refused connection in Node', new TypeError('fetch failed', { cause: coded('ECONNREFUSED') })],
    ['an unknown host', coded('ENOTFOUND')],
    ['a silent resolver', coded('EAI_AGAIN')],
    ['an untrusted certificate', coded('DEPTH_ZERO_SELF_SIGNED_CERT')],
  ]

  /** Calls a client whose attempts end like this, where undefined is a time-out; the last one must not be repeated. */
  async function callWith(ends: (Response | Error | undefined)[], call: (pets: client.Pets) => Promise<unknown>) {
    const left = [...ends]
    const fetch = async () => {
      expect(left).not.toBeEmpty()
      const end = left.shift()
      if (end instanceof Response) return end.clone() as Response
      if (!end) timeOut()
      throw end
    }
    const outcome = await catchFailure(call(petsAt({ url: 'http://a' }, { fetch })))
    expect(left).toBeEmpty()
    return outcome
  }

  const update = (pets: client.Pets) => pets.update(1, { status: 'sold' })
  const updateIf = (pets: client.Pets) => pets.update(1, { status: 'sold' }, { ifStatus: 'pending' })
  const remove = (pets: client.Pets) => pets.remove(1)
  const removeIf = (pets: client.Pets) => pets.remove(1, { ifStatus: 'sold' })

  test.each([...lost, ...refused])(
    'is repeated after %s, unless it may be executed and has a condition',
    async (_what, end) => {
      expect(await callWith([end, changed], update)).toEqual({ ...rex, id: 1n })
      expect(await callWith([end, removed], remove)).toBeUndefined()
      if (refused.some(([, other]) => other === end)) {
        expect(await callWith([end, changed], updateIf)).toEqual({ ...rex, id: 1n })
        return
      }
      const unknown = { name: 'OutcomeUnknownError', code: 'outcome_unknown' }
      expect(await callWith([end], updateIf)).toMatchObject(unknown)
      expect(await callWith([later('rate_limited', 429), end], updateIf)).toMatchObject(unknown)
      // The animal is gone because the lost attempt removed it.
      expect(await callWith([end, later('rate_limited', 429), gone], removeIf)).toBeUndefined()
    },
  )

  test.each([
    ['503', later('store_unavailable')],
    ['500', errorAnswer(500, 'internal_error')],
    ['a damaged store', later('store_damaged')],
    ['a page in place of the animal', html('Welcome', 200)],
  ])('with a condition has an unknown outcome, with the details of its cause, after %s', async (_what, end) => {
    const error = (await callWith([end], updateIf)) as client.OutcomeUnknownError
    const { status, requestId, message } = error.cause as client.PetstoreError
    expect(error).toBeInstanceOf(client.OutcomeUnknownError)
    expect([error.status, error.requestId]).toEqual([status, requestId])
    expect(error.message).toBe(`The change may be stored: fetch the animal, then decide (${message})`)
  })

  test.each<[string, number, (Response | Error | undefined)[], (pets: client.Pets) => Promise<unknown>]>([
    ['pet_not_found', 404, [gone], remove],
    ['pet_not_found', 404, [later('rate_limited', 429), coded('ECONNREFUSED'), gone], remove],
    ['not_found', 404, [undefined, errorAnswer(404, 'not_found')], remove],
    ['unexpected_response', 404, [undefined, html('Gone', 404)], remove],
    ['status_changed', 409, [undefined, errorAnswer(409, 'status_changed')], removeIf],
    ['pet_not_found', 404, [undefined, gone], update],
    ['status_changed', 409, [errorAnswer(409, 'status_changed')], updateIf],
    ['rate_limited', 429, Array(3).fill(later('rate_limited', 429)), updateIf],
    ['unexpected_response', 200, [Response.json(rexBody)], remove],
    ['unexpected_response', 204, [removed], update],
  ])('fails otherwise: %s (%d)', async (code, status, ends, call) => {
    expect(await callWith(ends, call)).toMatchObject({ code, status })
  })
})

describe("the caller's signal", () => {
  const reason = new Error('The user left')

  test('ends a call at once, without a retry', async () => {
    const controller = new AbortController()
    await using server = startScriptedServer(() => {
      controller.abort(reason)
      return new Promise(() => {})
    })
    const call = petsAt(server).create(rex, { signal: controller.signal, retries: 0 })
    expect(await catchFailure(call)).toBe(reason)
    expect(server.requests).toHaveLength(1)
  })

  test('ends a wait between attempts', async () => {
    await using server = startScriptedServer(errorAnswer(429, 'rate_limited', { 'retry-after': '30' }))
    const controller = new AbortController()
    const failure = catchFailure(petsAt(server).list({ signal: controller.signal }).page())
    // The time-out of the attempt, then the wait.
    await until('the wait', () => held.length === 2 || undefined)
    controller.abort(reason)
    expect(await failure).toBe(reason)
    expect(server.requests).toHaveLength(1)
  })
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
  expect(retryAfterSeconds).toBeWithin(500, 601)
})

test('a 503 that only the operator can end is not temporary', async () => {
  for (const code of ['ids_exhausted', 'store_damaged']) {
    expect((await failureOn(errorAnswer(503, code))).constructor).toBe(client.PetstoreError)
  }
})

describe('an unexpected response', () => {
  const line = 'x'.repeat(80)
  const notUtf8 = Buffer.from('[{"id":1,"categoryId":7,"name":"\xff"}]', 'latin1')
  test.each<[string, () => Response, string]>([
    ["a proxy's page", () => html('<h1>Hi</h1>'), '200, text/html: "<h1>Hi</h1>"'],
    ['81 characters', () => html(`${line}y`), `"${line}"…`],
    ['bytes that are not UTF-8', () => new Response(notUtf8), '"name\\":\\"\ufffd\\"}]"'],
    ['another success', () => Response.json([], { status: 202 }), ': "[]"'],
    ['another shape', () => Response.json(null), ': "null"'],
    ['another shape for 400', () => Response.json({ error: 'no' }, { status: 400 }), '{\\"error\\":\\"no\\"}"'],
    ['an empty 500', () => new Response(null, { status: 500 }), '500, no Content-Type: ""'],
  ])('is reported: %s', async (_what, response, problem) => {
    const error = await failureOn(response())
    expect(error).toBeInstanceOf(client.UnexpectedResponseError)
    expect(error.message).toMatch(/^Unexpected response to GET http:\/\/127\.0\.0\.1:\d+\/v1\/pets: \d/)
    expect(error.message).toEndWith(problem)
    // A printed error shows only what is known.
    expect(Object.values(error)).not.toContain(undefined)
  })

  test.each([302, 308])('of a redirect (%d) is not followed, so the key stays here', async status => {
    await using elsewhere = startScriptedServer(empty)
    const location = `${elsewhere.origin}/v1/pets`
    const error = await failureOn(new Response(null, { status, headers: { location } }))
    expect(error).toBeInstanceOf(client.UnexpectedResponseError)
    expect(error.message).toEndWith(`: ${status}, a redirect to ${location}; correct the base address`)
    expect(elsewhere.requests).toHaveLength(0)
  })

  test('of a redirect in a browser has no status and no location', async () => {
    const opaque = { type: { value: 'opaqueredirect' }, status: { value: 0 } }
    const fetch = async () => Object.defineProperties(new Response(), opaque)
    const error = await catchFailure(petsAt({ url: 'http://a' }, { fetch }).list().page())
    expect(error).toBeInstanceOf(client.UnexpectedResponseError)
    expect((error as Error).message).toEndWith('a redirect to another address; correct the base address')
  })
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
