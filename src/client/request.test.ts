import { afterEach, beforeEach, describe, expect, type Mock, mock, spyOn, test } from 'bun:test'
import { inspect } from 'node:util'
import { errorAnswer, type Step, startScriptedServer } from '../../test/client/scripted-server.ts'
import { until } from '../../test/support/process.ts'
import * as client from './index.ts'
import { type RequestSettings, waitMsBeforeRetry } from './request.ts'

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

/** Timers of the client that are at least this long end only when the test says so. */
const heldMsMin = 30_000
let held: { readonly ms: number; end: () => void }[]
let spies: Mock<(...args: never[]) => unknown>[]
const timeOut = () => held.at(-1)?.end()
beforeEach(() => {
  held = []
  const { setTimeout, clearTimeout } = globalThis
  const set = (end: () => void, ms = 0) => (ms < heldMsMin ? setTimeout(end, ms) : held[held.push({ ms, end }) - 1])
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
  return new client.PetstoreClient({ baseUrl: url, apiKey, backoffMs: 5, ...options } as client.ClientOptions).pets
}

function catchFailure(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch(error => error)
}

/** The error of a list without retries, for this response. */
async function failureOn(response: Response): Promise<client.PetstoreError> {
  await using server = startScriptedServer(response)
  return (await catchFailure(petsAt(server, { retries: 0 }).list().page())) as client.PetstoreError
}

const typed = (body: string | null, type: string, status = 200) =>
  new Response(body, { status, headers: { 'content-type': type } })
const html = (body: string, status?: number) => typed(body, 'text/html', status)

test('a response may be JSON with parameters and in any case', async () => {
  for (const type of ['application/json', 'application/json;charset=utf-8', 'Application/JSON ; x=y']) {
    await using server = startScriptedServer(typed('[]', type))
    expect(await petsAt(server).list().page()).toEqual({ pets: [] })
  }
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

test('a response of a fetch without streams is read', async () => {
  const fetch = async () => Object.defineProperty(Response.json([]), 'body', { value: {} })
  expect(await petsAt({ url: 'http://127.0.0.1/v1' }, { fetch }).list().page()).toEqual({ pets: [] })
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

const limits = { 'ratelimit-policy': '"default";q=9;w=60', ratelimit: '"default";r=8;t=5' }
const rateLimit = { limit: 9, windowSeconds: 60, remaining: 8, resetSeconds: 5 }

test('a result has a response, and stays a plain object', async () => {
  const headers = { 'x-request-id': 'r-1', 'x-echo': 'b', ...limits }
  await using server = startScriptedServer(Response.json(rexBody, { status: 201, headers }), created)
  const pet = await petsAt(server).create(rex)
  expect(inspect(pet)).toBe("{ id: 1n, name: 'Rex', categoryId: 7n }")
  const response = client.responseOf(pet)
  expect(response).toMatchObject({ status: 201, requestId: 'r-1', rateLimit })
  expect(response?.headers.get('x-echo')).toBe('b')
  expect(client.responseOf({ ...pet })).toBeUndefined()
  const bare = client.responseOf(await petsAt(server).create(rex))
  expect([bare?.requestId, bare?.rateLimit]).toEqual([undefined, undefined])
})

describe('the hooks', () => {
  test('see each attempt and each response, but no headers of the caller', async () => {
    const deprecated = { deprecation: 'true', link: '</docs>; rel="deprecation"' }
    const later = errorAnswer(503, 'a', { 'x-request-id': 'r-1', ...limits, ...deprecated })
    await using server = startScriptedServer(later, silence, created)
    const seen: unknown[] = []
    const see = (event: object) => seen.push(event)
    const hooks = { onRequest: see, onResponse: see, onDeprecation: see, onRetry: see }
    const secret = { idempotencyKey: 'a-1', headers: { 'X-Key': apiKey } }
    await petsAt(server, hooks).create(rex, secret)
    const requestHeaders = { 'Content-Type': 'application/json', 'Idempotency-Key': 'a-1' }
    const sent = { requestHeaders, requestBody: '{"name":"Rex","categoryId":7}' }
    const request = { operation: 'createPet', method: 'POST', url: `${server.url}/pets`, ...sent }
    const attempt = (attempt: number) => ({ ...request, attempt })
    const response = { headers: expect.any(Headers), durationMs: expect.any(Number) }
    expect(seen).toEqual([
      attempt(1),
      { ...attempt(1), ...response, status: 503, requestId: 'r-1', rateLimit },
      { operation: 'createPet', links: [{ rel: 'deprecation', href: `${server.origin}/docs` }] },
      { error: expect.any(client.ServiceUnavailableError), waitMs: expect.any(Number) },
      attempt(2),
      { error: expect.any(client.TimeoutError), waitMs: expect.any(Number) },
      attempt(3),
      { ...attempt(3), ...response, status: 201, requestId: undefined, rateLimit: undefined },
    ])
    expect(Bun.inspect(seen, { depth: 9 })).not.toContain(apiKey)
  })

  test('measure the time until the response is complete', async () => {
    using clock = spyOn(performance, 'now').mockReturnValue(1_000)
    async function* slow() {
      yield '['
      // The client has the headers by then.
      await new Promise(setImmediate)
      clock.mockReturnValue(1_060)
    }
    const onResponse = mock(({ durationMs }: client.ResponseAttempt) => durationMs)
    const fetch = async () => new Response(slow())
    await catchFailure(petsAt({ url: 'http://a' }, { fetch, onResponse }).list().page())
    expect(onResponse.mock.results.map(({ value }) => value)).toEqual([60])
  })

  test.each<[string, number]>([
    ['onRequest', 0],
    ['onResponse', 1],
    ['onDeprecation', 1],
    ['onRetry', 1],
  ])('end the call if they throw or reject, also with an error that the client would retry: %s', async (name, sent) => {
    const deprecated = errorAnswer(503, 'a', { deprecation: 'true' })
    await using server = startScriptedServer(deprecated)
    const thrown = new client.ServiceUnavailableError('Mine', { code: 'mine' })
    const rejects = () => new Promise(setImmediate).then(() => Promise.reject(thrown))
    const throws = () => {
      throw thrown
    }
    for (const hook of [throws, rejects]) {
      expect(await catchFailure(petsAt(server, { [name]: hook }).create(rex))).toBe(thrown)
    }
    expect(server.requests).toHaveLength(2 * sent)
  })

  test('are not called for a call that is aborted, and may abort one', async () => {
    await using server = startScriptedServer(empty)
    const controller = new AbortController()
    const onRequest = mock(() => controller.abort())
    const list = petsAt(server, { onRequest }).list({ signal: controller.signal })
    expect(await catchFailure(list.page())).toMatchObject({ name: 'AbortError' })
    expect(await catchFailure(list.page())).toMatchObject({ name: 'AbortError' })
    expect(onRequest).toHaveBeenCalledTimes(1)
    expect(server.requests).toHaveLength(0)
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

  test('is the error after two retries, or as many as were set', async () => {
    await using server = startScriptedServer(errorAnswer(503, 'store_unavailable'))
    expect(await catchFailure(petsAt(server).create(rex))).toBeInstanceOf(client.ServiceUnavailableError)
    expect(server.requests).toHaveLength(3)
    await catchFailure(petsAt(server, { retries: 0 }).create(rex))
    expect(server.requests).toHaveLength(4)
    await catchFailure(petsAt(server, { retries: 0 }).create(rex, { retries: 1 }))
    expect(server.requests).toHaveLength(6)
  })

  test('is the error at once if the server asks for too long a wait', async () => {
    await using server = startScriptedServer(errorAnswer(429, 'rate_limited', { 'retry-after': '61' }))
    expect(await catchFailure(petsAt(server).list().page())).toMatchObject({ retryAfterSeconds: 61 })
    expect(server.requests).toHaveLength(1)
  })
})

describe('the wait before a retry', () => {
  const settings = { retries: 10, backoffMs: 100, backoffMaxMs: 1_000, retryAfterMaxMs: 5_000 } as RequestSettings
  const { ConnectionError, TimeoutError, RateLimitedError, ServiceUnavailableError } = client
  const newError = (ErrorClass: typeof client.PetstoreError) => new ErrorClass('', { code: 'a' })
  const limited = (retryAfterSeconds?: number) => new RateLimitedError('', { code: 'a', retryAfterSeconds })

  /** The shortest wait, and almost the longest. */
  function range(error: client.PetstoreError, attemptsMade: number): { min: number; max: number } {
    const waits = [0, 0.999].map(part => {
      using _random = spyOn(Math, 'random').mockReturnValue(part)
      return waitMsBeforeRetry(error, attemptsMade, settings) ?? -1
    }) as [number, number]
    return { min: waits[0], max: waits[1] }
  }

  test('is random, and up to twice as long after each attempt', () => {
    for (const [attemptsMade, longest] of Object.entries({ 1: 100, 2: 200, 4: 800, 5: 1_000, 9: 1_000 })) {
      const { min, max } = range(limited(), Number(attemptsMade))
      expect(min).toBe(0)
      expect(max).toBeCloseTo(longest * 0.999)
    }
  })

  test('is added to the time that the server asked for', () => {
    const { min, max } = range(limited(3), 1)
    expect(min).toBe(3_000)
    expect(max).toBeCloseTo(3_099.9)
  })

  test('exists for each temporary failure, until the retries are used up', () => {
    const temporary = [ConnectionError, TimeoutError, RateLimitedError, ServiceUnavailableError]
    for (const error of [...temporary.map(newError), limited(5)]) {
      expect(waitMsBeforeRetry(error, 10, settings)).toBeNumber()
      expect(waitMsBeforeRetry(error, 11, settings)).toBeUndefined()
    }
  })

  test('does not exist for other failures, used-up ids and a longer Retry-After than the limit', () => {
    const { InvalidRequestError, UnauthorizedError, ForbiddenError, NotFoundError, ServerError } = client
    const lasting = [InvalidRequestError, UnauthorizedError, ForbiddenError, NotFoundError, ServerError]
    const errors = [...lasting, client.UnexpectedResponseError].map(newError)
    const permanent = ['ids_exhausted', 'store_damaged'].map(code => new ServiceUnavailableError('', { code }))
    for (const error of [...errors, ...permanent, limited(6)]) {
      expect(waitMsBeforeRetry(error, 1, settings)).toBeUndefined()
    }
  })
})

describe('a broken connection', () => {
  test.each([
    ['connect ECONNREFUSED', new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })],
    ['fetch failed', new TypeError('fetch failed')],
    ['ECONNREFUSED', Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })],
    ['no error', 'no error'],
    ['Sent Bearer ***', new TypeError('fetch failed', { cause: new RangeError(`Sent Bearer ${apiKey}`) })],
    ['TypeError', new TypeError()],
    ['undefined', undefined],
  ])('is an error with its cause, and has the innermost reason in its message: %s', async (reason, cause) => {
    const fetch = () => Promise.reject(cause)
    const error = (await catchFailure(petsAt({ url: 'http://a' }, { fetch, retries: 0 }).list().page())) as Error
    const details = { name: 'ConnectionError', code: 'connection_failed' }
    expect(error).toMatchObject({ ...details, message: `Cannot reach http://a/v1/pets: ${reason}` })
    expect(error.cause).toBe(cause)
    expect(error).not.toHaveProperty('status')
  })

  test('in the middle of a response is retried', async () => {
    const begun = Promise.withResolvers<void>()
    async function* broken() {
      yield '[{"id":1,'
      await begun.promise
      throw new Error('The disk is on fire')
    }
    await using server = startScriptedServer(() => new Response(broken()), empty)
    const fetched = async (...request: Parameters<client.Fetch>) => {
      const response = await fetch(...request)
      begun.resolve()
      return response
    }
    expect(await petsAt(server, { fetch: fetched }).list().page()).toEqual({ pets: [] })
    expect(server.requests).toHaveLength(2)
  })
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
  expect(error).toBeInstanceOf(client.TimeoutError)
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
    const outcome = await catchFailure(call(petsAt({ url: 'http://a' }, { fetch, backoffMs: 0 })))
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
      const isLost = lost.some(([, other]) => other === end)
      expect(await callWith([end, changed], update)).toEqual({ ...rex, id: 1n })
      expect(await callWith([end, removed], remove)).toBeUndefined()
      if (!isLost) expect(await callWith([end, changed], updateIf)).toEqual({ ...rex, id: 1n })
      for (const ends of isLost ? [[end], [later('rate_limited', 429), end]] : []) {
        const error = await callWith(ends, updateIf)
        expect(error).toBeInstanceOf(client.OutcomeUnknownError)
        const cause = expect.any(client.PetstoreError)
        expect(error).toMatchObject({ name: 'OutcomeUnknownError', code: 'outcome_unknown', cause })
      }
    },
  )

  test('of unknown outcome has the details of its cause', async () => {
    const error = (await callWith([later('store_unavailable')], updateIf)) as client.OutcomeUnknownError
    expect(error).toMatchObject({ status: 503, requestId: 'r-1', cause: { code: 'store_unavailable' } })
    expect(error.message).toBe('The change may be stored: fetch the animal, then decide (This is store_unavailable)')
  })

  test.each([
    ['500', errorAnswer(500, 'internal_error')],
    ['a damaged store', later('store_damaged')],
    ['a page in place of the animal', html('Welcome', 200)],
  ])('with a condition has an unknown outcome after %s', async (_what, end) => {
    expect(await callWith([end], updateIf)).toBeInstanceOf(client.OutcomeUnknownError)
  })

  test.each(lost)('that is a removal succeeds if the animal is gone after %s', async (_what, end) => {
    for (const call of [remove, removeIf])
      expect(await callWith([end, later('rate_limited', 429), gone], call)).toBeUndefined()
  })

  test.each<[string, number, (Response | Error | undefined)[], (pets: client.Pets) => Promise<unknown>]>([
    ['pet_not_found', 404, [gone], remove],
    ...refused.map(([, end]): [string, number, (Response | Error)[], typeof remove] => [
      'pet_not_found',
      404,
      [end, gone],
      remove,
    ]),
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
    expect(await catchFailure(petsAt(server).create(rex, { signal: controller.signal }))).toBe(reason)
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

  test.each(['onResponse', 'onDeprecation'])('aborted by %s ends the call, also one that would succeed', async name => {
    const headers = { deprecation: 'true', 'retry-after': '30' }
    for (const response of [errorAnswer(503, 'a', headers), Response.json([], { headers })]) {
      await using server = startScriptedServer(response)
      const controller = new AbortController()
      const pets = petsAt(server, { [name]: () => controller.abort(reason) })
      expect(await catchFailure(pets.list({ signal: controller.signal }).page())).toBe(reason)
    }
  })
})

test('a deprecation is reported for success and failure', async () => {
  const headers = { deprecation: '@1794700800', sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' }
  const found = Response.json(rexBody, { headers })
  await using server = startScriptedServer(found, errorAnswer(404, 'pet_not_found', headers), empty)
  const notices: client.DeprecationNotice[] = []
  const pets = petsAt(server, { onDeprecation: notice => notices.push(notice) })
  expect(await pets.get(1n)).toEqual({ ...rex, id: 1n })
  await catchFailure(pets.get(2n))
  await pets.list().page()
  expect(server.requests.map(({ path }) => path)).toEqual(['/v1/pets/1', '/v1/pets/2', '/v1/pets'])
  const notice = { operation: 'getPet', sunset: new Date('2030-12-05T00:00:00Z') }
  expect(notices).toMatchObject([notice, notice])
})

test.each<[typeof client.PetstoreError, ...number[]]>([
  [client.InvalidRequestError, 400, 413, 422],
  [client.UnauthorizedError, 401],
  [client.ForbiddenError, 403],
  [client.NotFoundError, 404],
  [client.TimeoutError, 408],
  [client.ConflictError, 409],
  [client.RateLimitedError, 429],
  [client.ServerError, 500, 501],
  [client.ServiceUnavailableError, 502, 503, 504],
])('a %p is an error of a status', async (ErrorClass, ...statuses) => {
  for (const status of statuses) {
    const headers = { 'x-request-id': 'r-1', 'retry-after': '9', ...limits }
    const details = { status, requestId: 'r-1', retryAfterSeconds: 9, rateLimit }
    const error = await failureOn(errorAnswer(status, 'some_code', headers))
    expect(error).toBeInstanceOf(ErrorClass)
    expect(error).toBeInstanceOf(client.PetstoreError)
    expect(error).toMatchObject({ name: ErrorClass.name, code: 'some_code', message: 'This is some_code', ...details })
    // Proxies send these with pages of their own.
    const temporary = [429, 502, 503, 504].includes(status)
    const page = await failureOn(new Response('<h1>Later</h1>', { status, headers }))
    expect(page).toBeInstanceOf(temporary ? ErrorClass : client.UnexpectedResponseError)
    expect(page).toMatchObject({ code: 'unexpected_response', ...details })
  }
})

test('an error is printed with what is known, and as JSON with its message', async () => {
  const error = await failureOn(errorAnswer(404, 'pet_not_found', { 'x-request-id': 'r-1' }))
  const fields = { name: 'NotFoundError', code: 'pet_not_found', status: 404, requestId: 'r-1' }
  expect(JSON.parse(client.stringify(error))).toEqual({ ...fields, message: 'This is pet_not_found' })
  for (const printed of [inspect(error), Bun.inspect(error)]) {
    for (const text of ['NotFoundError: This is pet_not_found', 'pet_not_found', '404', 'r-1']) {
      expect(printed).toContain(text)
    }
    expect(printed).not.toMatch(/undefined|retryAfterSeconds|rateLimit/)
  }
})

describe('an unexpected response', () => {
  const line = 'x'.repeat(80)
  test.each<[string, () => Response, string]>([
    ["a proxy's page", () => html('<h1>Hi</h1>'), '200, the body is not JSON (text/html): "<h1>Hi</h1>"'],
    ['80 characters', () => html(line), `"${line}"`],
    ['81 characters', () => html(`${line}y`), `"${line}"…`],
    ['a page as JSON', () => typed('<h1>', 'application/json'), 'is not JSON (application/json): "<h1>"'],
    ['JSON of another kind', () => typed('[]', 'application/jsonl'), 'is not JSON (application/jsonl): "[]"'],
    ['bytes that are not UTF-8', () => new Response(new Uint8Array([0xff])), '(application/octet-stream, not UTF-8)'],
    ['a 304', () => new Response(null, { status: 304 }), '304, expected 200'],
    ['another success', () => Response.json([], { status: 202 }), '202, expected 200'],
    ['null', () => Response.json(null), '200, the body is not an array'],
    ['an object', () => Response.json({}), '200, the body is not an array'],
    ['a page for 404', () => html('Gone', 404), '404, the body is not an Error (text/html): "Gone"'],
    ['another shape for 400', () => Response.json({ error: 'no' }, { status: 400 }), '{\\"error\\":\\"no\\"}"'],
    ['an empty 500', () => new Response(null, { status: 500 }), '500, the body is not an Error (no Content-Type): ""'],
  ])('is reported: %s', async (_what, response, problem) => {
    const error = await failureOn(response())
    expect(error).toBeInstanceOf(client.UnexpectedResponseError)
    const { status } = response()
    expect(error).toMatchObject({ name: 'UnexpectedResponseError', code: 'unexpected_response', status })
    expect(error.message).toMatch(/^Unexpected response to GET http:\/\/127\.0\.0\.1:\d+\/v1\/pets: \d/)
    expect(error.message).toEndWith(problem)
  })

  test.each([301, 308])('of a redirect (%d) is not followed, so the key stays here', async status => {
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
  ['a page', () => html(`Your key: ${apiKey}`)],
  ['a page that is cut there', () => html(`${' '.repeat(70)}${apiKey}`)],
  ['an Error', () => Response.json({ code: 'a', message: `Unknown ${apiKey}`, status: 401 }, { status: 401 })],
  ['a page for 503', () => html(`Your key: ${apiKey}`, 503)],
  ['invalid JSON', () => typed(`{${apiKey}`, 'application/json')],
  ['a redirect', () => new Response(null, { status: 302, headers: { location: `/login?key=${apiKey}` } })],
])('an error does not show the key that the server echoed in %s', async (_what, response) => {
  const error = await failureOn(response())
  expect(error).toBeInstanceOf(client.PetstoreError)
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(apiKey.slice(0, 8))
  expect(error.message).toContain('***')
})
