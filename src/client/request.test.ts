import { describe, expect, test } from 'bun:test'
import {
  errorAnswer,
  type ScriptedServer,
  type Step,
  silence,
  startScriptedServer,
} from '../../test/support/scripted-server.ts'
import { PetstoreClient } from './client.ts'
import type { DeprecationNotice } from './deprecation.ts'
import {
  ConnectionError,
  PetstoreError,
  RateLimitedError,
  ServiceUnavailableError,
  TimeoutError,
} from './errors.ts'
import type { ClientOptions } from './options.ts'

const apiKey = 'key-that-nobody-may-see'
const rex = { name: 'Rex', categoryId: 7n }
const created = Response.json({ id: 1, name: 'Rex', categoryId: 7 }, { status: 201 })
const none = Response.json([])

function clientOf({ url }: { url: string }, options: Partial<ClientOptions> = {}): PetstoreClient {
  return new PetstoreClient({ baseUrl: url, apiKey, backoffMs: 5, ...options } as ClientOptions)
}

/** Whatever it rejects with. */
function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    value => ({ value }),
    error => error,
  )
}

function gapsMs({ requests }: ScriptedServer): number[] {
  return requests.slice(1).map(({ atMs }, i) => atMs - (requests[i]?.atMs ?? 0))
}

describe('a request', () => {
  test('carries the key, asks for JSON, and nothing more', async () => {
    await using server = startScriptedServer(none)
    await clientOf(server).pets.list().page()
    const [asked] = server.requests
    expect(asked).toMatchObject({ method: 'GET', path: '/v1/pets', body: '' })
    expect(asked?.headers.get('authorization')).toBe(`Bearer ${apiKey}`)
    expect(asked?.headers.get('accept')).toBe('application/json')
    expect(asked?.headers.get('idempotency-key')).toBeNull()
  })

  test('goes through the fetch that it was given', async () => {
    const urls: string[] = []
    const fetch = async (url: string) => {
      urls.push(url)
      return Response.json([])
    }
    const client = clientOf({ url: 'https://pets.example.com/v1' }, { fetch })
    expect(await client.pets.list({ status: 'sold', limit: 3 }).page()).toEqual({ pets: [] })
    expect(urls).toEqual(['https://pets.example.com/v1/pets?limit=3&status=sold'])
  })
})

describe('a passing trouble', () => {
  test.each([
    ['429', () => errorAnswer(429, 'rate_limited')],
    ['503', () => errorAnswer(503, 'store_unavailable')],
    ["a proxy's 502", () => new Response('<h1>Bad gateway</h1>', { status: 502 })],
    ['408', () => errorAnswer(408, 'request_timeout')],
  ])('is waited out: %s', async (_what, trouble) => {
    await using server = startScriptedServer(trouble(), trouble(), created)
    expect(await clientOf(server).pets.create(rex)).toEqual({ ...rex, id: 1n })
    expect(server.requests).toHaveLength(3)
  })

  test('is the same creation each time, with one key of its own', async () => {
    await using server = startScriptedServer(errorAnswer(503, 'a'), created, errorAnswer(503, 'a'), created)
    const { pets } = clientOf(server)
    await pets.create(rex)
    await pets.create(rex)
    const sent = server.requests.map(({ headers, body }) => `${headers.get('idempotency-key')} ${body}`)
    expect(sent[0]).toMatch(/^[0-9a-f-]{36} {"name":"Rex","categoryId":7}$/)
    expect([sent[1], sent[3]]).toEqual([sent[0], sent[2]])
    expect(sent[2]).not.toBe(sent[0])
  })

  test('may be a creation under a name that the caller gave', async () => {
    await using server = startScriptedServer(errorAnswer(503, 'a'), created)
    await clientOf(server).pets.create(rex, { idempotencyKey: 'order-4711' })
    expect(server.requests.map(({ headers }) => headers.get('idempotency-key'))).toEqual([
      'order-4711',
      'order-4711',
    ])
  })

  test('that does not pass is the error, after two retries unless told otherwise', async () => {
    await using server = startScriptedServer(errorAnswer(503, 'store_unavailable', { 'x-request-id': 'r-1' }))
    const error = await failureOf(clientOf(server).pets.create(rex))
    expect(error).toBeInstanceOf(ServiceUnavailableError)
    expect(error).toMatchObject({ code: 'store_unavailable', status: 503, requestId: 'r-1' })
    expect(server.requests).toHaveLength(3)
    await failureOf(clientOf(server, { retries: 0 }).pets.create(rex))
    expect(server.requests).toHaveLength(4)
  })

  test('is waited out for as long as the server asks', async () => {
    const inASecond = new Date(Date.now() + 2_000).toUTCString()
    await using server = startScriptedServer(
      errorAnswer(429, 'rate_limited', { 'retry-after': '1' }),
      errorAnswer(503, 'store_unavailable', { 'retry-after': inASecond }),
      none,
    )
    await clientOf(server).pets.list().page()
    const [first = 0, second = 0] = gapsMs(server)
    expect(first).toBeWithin(995, 2_500)
    expect(second).toBeLessThan(2_500)
    expect(first + second).toBeGreaterThan(1_000)
  })

  test('is given up where the server asks for too long a wait', async () => {
    await using server = startScriptedServer(errorAnswer(429, 'rate_limited', { 'retry-after': '3600' }))
    const error = await failureOf(clientOf(server).pets.list().page())
    expect(error).toBeInstanceOf(RateLimitedError)
    expect(error).toMatchObject({ retryAfterSeconds: 3600, message: 'This is rate_limited' })
    expect(server.requests).toHaveLength(1)
  })
})

describe('a broken connection', () => {
  test('is tried again, and in the end an error with its cause', async () => {
    const refusing = startScriptedServer(none)
    await refusing[Symbol.asyncDispose]()
    const error = await failureOf(clientOf(refusing).pets.create(rex))
    expect(error).toBeInstanceOf(ConnectionError)
    expect(error).toMatchObject({ code: 'connection_failed', status: undefined, requestId: undefined })
    expect((error as Error).message).toStartWith(`Cannot reach ${refusing.url}/pets: `)
    expect((error as Error).cause).toBeInstanceOf(Error)
  })

  test('in the middle of an answer is one too', async () => {
    const cut = () =>
      new Response(
        new ReadableStream({
          async pull(controller) {
            controller.enqueue('[{"id":1,')
            await Bun.sleep(20)
            controller.error(new Error('the disk is on fire'))
          },
        }),
        { headers: { 'content-type': 'application/json' } },
      )
    await using server = startScriptedServer(cut, cut, none)
    expect(await clientOf(server).pets.list().page()).toEqual({ pets: [] })
  })
})

describe('a time-out', () => {
  test('ends an attempt, and the next one may do better', async () => {
    await using server = startScriptedServer(silence, none)
    expect(await clientOf(server, { timeoutMs: 50 }).pets.list().page()).toEqual({ pets: [] })
  })

  test.each<[string, Step]>([
    ['no answer', silence],
    ['an answer without an end', () => new Response(new ReadableStream({ start: c => c.enqueue('[') }))],
  ])('is an error after all attempts: %s', async (_what, step) => {
    await using server = startScriptedServer(step)
    const error = await failureOf(clientOf(server).pets.list({ timeoutMs: 40 }).page())
    expect(error).toBeInstanceOf(TimeoutError)
    expect(error).toMatchObject({
      code: 'timeout',
      message: `No whole answer from ${server.url}/pets within 40 ms`,
    })
    expect(server.requests).toHaveLength(3)
  })
})

describe("the caller's abort", () => {
  const reason = new Error('the user went away')

  test('before the call sends nothing', async () => {
    await using server = startScriptedServer(none)
    const error = await failureOf(clientOf(server).pets.create(rex, { signal: AbortSignal.abort(reason) }))
    expect(error).toBe(reason)
    expect(server.requests).toHaveLength(0)
  })

  test('ends the call at once, with the reason that was given, and is not tried again', async () => {
    await using server = startScriptedServer(silence)
    const controller = new AbortController()
    const failure = failureOf(clientOf(server).pets.create(rex, { signal: controller.signal }))
    setTimeout(() => controller.abort(reason), 30)
    expect(await failure).toBe(reason)
    expect(server.requests).toHaveLength(1)
  })

  test('ends a wait between attempts', async () => {
    await using server = startScriptedServer(errorAnswer(429, 'rate_limited', { 'retry-after': '30' }))
    const error = await failureOf(
      clientOf(server)
        .pets.list({ signal: AbortSignal.timeout(50) })
        .page(),
    )
    expect(error).toMatchObject({ name: 'TimeoutError' })
    expect(error).not.toBeInstanceOf(PetstoreError)
    expect(server.requests).toHaveLength(1)
  })
})

describe('a notice of deprecation', () => {
  const headers = { deprecation: '@1794700800', sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' }

  test('reaches the callback with success and failure alike', async () => {
    await using server = startScriptedServer(
      Response.json({ id: 1, name: 'Rex', categoryId: 7 }, { headers }),
      errorAnswer(404, 'pet_not_found', headers),
      none,
    )
    const notices: DeprecationNotice[] = []
    const { pets } = clientOf(server, { onDeprecation: notice => notices.push(notice) })
    await pets.get(1n)
    await failureOf(pets.get(2n))
    await pets.list().page()
    const sunset = new Date('2030-12-05T00:00:00Z')
    expect(notices).toMatchObject([
      { operation: 'getPet', sunset },
      { operation: 'getPet', sunset },
    ])
  })

  test('fails the call where the callback throws', async () => {
    await using server = startScriptedServer(Response.json([], { headers }))
    const onDeprecation = () => {
      throw new RangeError('not in our tests')
    }
    expect(await failureOf(clientOf(server, { onDeprecation }).pets.list().page())).toBeInstanceOf(RangeError)
    expect(server.requests).toHaveLength(1)
  })
})
