import { describe, expect, test } from 'bun:test'
import { inspect } from 'node:util'
import { errorAnswer, startScriptedServer } from '../../test/support/scripted-server.ts'
import * as client from './index.ts'

const apiKey = 'key-that-nobody-may-see'
const rex = { id: 1, name: 'Rex', categoryId: 7 }
const html = { 'content-type': 'text/html' }

/** What a list fails with when this is the answer. */
async function failureOn(answer: Response): Promise<unknown> {
  await using server = startScriptedServer(answer)
  const store = new client.PetstoreClient({ baseUrl: server.url, apiKey, retries: 0 })
  return await store.pets
    .list()
    .page()
    .then(
      value => ({ value }),
      error => error,
    )
}

test.each([
  [400, 'invalid_request', client.InvalidRequestError],
  [401, 'invalid_api_key', client.UnauthorizedError],
  [403, 'read_only_key', client.ForbiddenError],
  [404, 'not_found', client.NotFoundError],
  [405, 'method_not_allowed', client.InvalidRequestError],
  [408, 'request_timeout', client.TimeoutError],
  [413, 'body_too_large', client.InvalidRequestError],
  [422, 'idempotency_key_reused', client.InvalidRequestError],
  [429, 'rate_limited', client.RateLimitedError],
  [500, 'internal_error', client.ServerError],
  [501, 'some_code', client.ServerError],
  [503, 'store_unavailable', client.ServiceUnavailableError],
])('%d %s is an error of its class, with all that is known', async (status, code, ErrorClass) => {
  const error = await failureOn(errorAnswer(status, code, { 'x-request-id': 'r-1', 'retry-after': '9' }))
  expect(error).toBeInstanceOf(ErrorClass)
  expect(error).toBeInstanceOf(client.PetstoreError)
  const { name } = ErrorClass
  const message = `This is ${code}`
  expect(error).toMatchObject({ name, code, message, status, requestId: 'r-1', retryAfterSeconds: 9 })
})

describe('an answer that no pet store gives', () => {
  test.each<[string, () => Response, string]>([
    [
      "a proxy's page",
      () => new Response('<h1>Welcome</h1>', { headers: html }),
      'text/html: "<h1>Welcome</h1>"',
    ],
    [
      'a page as JSON',
      () => new Response('<h1>', { headers: { 'content-type': 'application/json' } }),
      '"<h1>"',
    ],
    ['JSON as text', () => new Response('[]', { headers: { 'content-type': 'text/plain' } }), 'text/plain'],
    [
      'JSON of another kind',
      () => new Response('[]', { headers: { 'content-type': 'application/jsonl' } }),
      'jsonl',
    ],
    [
      'half of an answer',
      () => new Response('[{', { headers: { 'content-type': 'application/json' } }),
      '"[{"',
    ],
    ['invalid UTF-8', () => new Response(new Uint8Array([0x22, 0xff, 0x22])), 'not in UTF-8'],
    ['nothing', () => new Response(null, { status: 204 }), 'expected 200'],
    ['another success', () => Response.json([], { status: 202 }), 'expected 200'],
    ['an object in place of a list', () => Response.json(rex), 'is not an array'],
    ['an animal without an id', () => Response.json([rex, { ...rex, id: undefined }]), 'has id at index 1'],
    ['null', () => Response.json(null), 'is not an array'],
    ['a page for 404', () => new Response('Not found', { status: 404, headers: html }), 'is not an Error'],
    [
      'another shape for 400',
      () => Response.json({ error: 'no' }, { status: 400 }),
      '{\\"error\\":\\"no\\"}',
    ],
    ['a page for 500', () => new Response('', { status: 500 }), 'is not an Error'],
  ])('is told: %s', async (_what, answer, told) => {
    const error = (await failureOn(answer())) as client.UnexpectedResponseError
    expect(error).toBeInstanceOf(client.UnexpectedResponseError)
    expect(error).toMatchObject({ code: 'unexpected_response', status: answer().status })
    expect(error.message).toStartWith('The answer to GET http://127.0.0.1:')
    expect(error.message).toContain(told)
  })

  test('is shown in part, not whole', async () => {
    const error = (await failureOn(new Response('x'.repeat(100_000), { headers: html }))) as Error
    expect(error.message.length).toBeLessThan(250)
  })

  test.each([
    [429, client.RateLimitedError],
    [502, client.ServiceUnavailableError],
    [503, client.ServiceUnavailableError],
    [504, client.ServiceUnavailableError],
  ])('but a %d that may pass is that, whatever its body', async (status, ErrorClass) => {
    const error = await failureOn(
      new Response('<h1>Later</h1>', { status, headers: { ...html, 'retry-after': '5' } }),
    )
    expect(error).toBeInstanceOf(ErrorClass)
    expect(error).toMatchObject({ code: 'unexpected_response', status, retryAfterSeconds: 5 })
  })
})

describe('a redirect', () => {
  test.each([301, 302, 307, 308])('%d is not followed, and the key stays here', async status => {
    await using elsewhere = startScriptedServer(Response.json([]))
    const location = `${elsewhere.origin}/v1/pets`
    const error = (await failureOn(new Response(null, { status, headers: { location } }))) as Error
    expect(error).toBeInstanceOf(client.UnexpectedResponseError)
    expect(error.message).toEndWith(`redirects to ${location}: use that as the base address`)
    expect(elsewhere.requests).toHaveLength(0)
  })
})

test.each<[string, () => Response]>([
  ['a page', () => new Response(`Your key: ${apiKey}`, { headers: html })],
  ['a page that is cut there', () => new Response(`${' '.repeat(70)}${apiKey}`, { headers: html })],
  [
    'an Error',
    () => Response.json({ code: apiKey, message: `Unknown key ${apiKey}`, status: 401 }, { status: 401 }),
  ],
  ['a page for 503', () => new Response(`Your key: ${apiKey}`, { status: 503 })],
  ['broken JSON', () => new Response(`{${apiKey}`, { headers: { 'content-type': 'application/json' } })],
  ['a redirect', () => new Response(null, { status: 302, headers: { location: `/login?key=${apiKey}` } })],
])('a server that shows the key in %s does not bring it into an error', async (_what, answer) => {
  const error = await failureOn(answer())
  expect(error).toBeInstanceOf(client.PetstoreError)
  expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(apiKey.slice(0, 8))
})
