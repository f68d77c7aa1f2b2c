import { afterAll, describe, expect, test } from 'bun:test'
import { exchange } from '../support/connections.ts'
import { type Answer, type CallInit, startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const rex = '{"name":"Rex","categoryId":1}'
const post = (body: CallInit['body'], given: Record<string, string> = {}) => {
  const headers = { 'content-type': 'application/json', ...given }
  return service.call('/v1/pets', { method: 'POST', headers, ...(body !== undefined && { body }) })
}
const count = async () => (await service.stores.pets.list({ limit: 1_000 })).pets.length

/** Refused with this code, and nothing was stored. Gives the message. */
async function expectRefused(send: () => Promise<Answer>, code: string, status = 400): Promise<string> {
  const before = await count()
  const { status: got, json } = await send()
  expect({ status: got, code: json.code }).toEqual({ status, code })
  expect(await count()).toBe(before)
  return json.message
}

describe('POST /v1/pets', () => {
  test.each([
    ['922337203685477580.7e1', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['-0', '0'],
  ])('adds an animal with the categoryId %s, says where it is, and shows it so everywhere', async (sent, stored) => {
    const { status, text, headers } = await post(`{"name":"Big","categoryId":${sent},"status":"sold"}`)
    const location = headers.get('location') ?? ''
    const pet = `{"id":${location.replace('/v1/pets/', '')},"name":"Big","categoryId":${stored},"status":"sold"}`
    expect([status, text]).toEqual([201, pet])
    expect((await service.call(location)).text).toBe(pet)
    expect((await service.call('/v1/pets?limit=100')).text).toContain(pet)
  })

  test.each([
    [
      '{"categoryId":"1","status":"lost"}',
      'name is missing: expected 1 to 1,000 characters; categoryId is "1": expected a 64-bit integer; status is "lost": expected available, pending or sold',
    ],
    ['["Rex"]', 'the body is […]: expected an object with name and categoryId'],
  ])('refuses %s and names every problem', async (body, message) => {
    expect(await expectRefused(() => post(body), 'invalid_request')).toBe(message)
  })

  test('refuses a body that is not JSON, nested too deeply, not UTF-8 or empty', async () => {
    const deep = `${'['.repeat(30_000)}12345678901234567890${']'.repeat(30_000)}`
    for (const body of [rex.slice(0, -1), deep, '{"a":'.repeat(10_000)]) {
      await expectRefused(() => post(body), 'invalid_json')
    }
    const latin1 = new Uint8Array(Buffer.from(rex.replace('Rex', 'Ré'), 'latin1'))
    expect(await expectRefused(() => post(latin1), 'invalid_json')).toContain('UTF-8')
    await expectRefused(() => post(new ReadableStream({ start: c => c.close() })), 'missing_body')
  })

  test('gives a short message for a long request', async () => {
    const many = JSON.stringify(Object.fromEntries(Array.from({ length: 6_000 }, (_, i) => [`p${i}`, 1])))
    const { status, text, json } = await post(many, { prefer: 'handling=strict' })
    expect([status, text.length < 3_000]).toEqual([400, true])
    expect(json.message).toEndWith('; and 5980 more')
    const typed = await post('{}', { 'content-type': 'x'.repeat(12_000) })
    expect([typed.status, typed.text.length < 300]).toEqual([415, true])
  })

  test('refuses another media type, and any content encoding', async () => {
    for (const type of ['application/jsonp', 'application/problem+json', '*/*', 'application/json, text/plain']) {
      await expectRefused(() => post(rex, { 'content-type': type }), 'unsupported_media_type', 415)
    }
    const identity = { 'content-encoding': 'identity' }
    await expectRefused(() => post(rex, identity), 'unsupported_content_encoding', 415)
  })

  test('with every id used, creation is 503 without Retry-After, and a replay still works', async () => {
    await using full = await startService()
    const add = (name: string, key?: string) => {
      const headers: Record<string, string> = key ? { 'idempotency-key': key } : {}
      return full.call('/v1/pets', { method: 'POST', body: JSON.stringify({ name, categoryId: 1 }), headers })
    }
    await full.database.setLastId(2n ** 63n - 4n)
    const [first, second] = [await add('Rex', 'first'), await add('Tom')]
    expect([first.status, second.status]).toEqual([201, 201])
    expect(first.text).toContain('"id":9223372036854775805')

    // One id is left for three requests at once: one of them gets it.
    const last = await Promise.all([add('Ada'), add('Bob'), add('Cid')])
    expect(last.map(({ status }) => status).sort()).toEqual([201, 503, 503])
    const refused = [...last.filter(({ status }) => status === 503), await add('Dan'), await add('Eve', 'eve')]
    for (const { json, headers } of refused) {
      expect(json).toMatchObject({ code: 'ids_exhausted', status: 503 })
      expect(headers.get('retry-after')).toBeNull()
    }
    expect((await add('Rex', 'first')).headers.get('idempotency-replayed')).toBe('true')
    expect((await full.call('/v1/pets')).json).toHaveLength(3)
  })
})

describe('Prefer: handling=strict', () => {
  const headers = { prefer: 'handling=strict' }

  test('refuses unknown properties and parameters, and names them', async () => {
    const body = '{"id":1,"name":"Rex","categoryId":1}'
    const expected = 'unknown property "id": expected name, categoryId or status'
    expect(await expectRefused(() => post(body, headers), 'invalid_request')).toBe(expected)
    const send = () => service.call('/v1/pets?dry=1', { method: 'POST', body: rex, headers })
    expect(await expectRefused(send, 'invalid_request')).toContain('parameter "dry"')
    const got = await service.call('/v1/pets/1?offset=1', { headers })
    expect([got.status, got.headers.get('preference-applied')]).toEqual([400, 'handling=strict'])
    expect(got.json.message).toContain('parameter "offset"')
  })

  test('accepts what is known, and says that it was applied', async () => {
    const created = await post(rex, headers)
    expect([created.status, created.headers.get('preference-applied')]).toEqual([201, 'handling=strict'])
    const prefer = 'wait=5, Handling="strict"'
    const listed = await service.call('/v1/pets?limit=1&status=sold', { headers: { prefer } })
    expect([listed.status, listed.headers.get('preference-applied')]).toEqual([200, 'handling=strict'])
  })
})

describe('the size of a body', () => {
  const sized = (bytes: number) => rex.padEnd(bytes)
  const streamed = (bytes: number) => new Blob([sized(bytes)]).stream()

  test('may be 65,536 bytes, with and without a length', async () => {
    expect((await post(sized(65_536))).status).toBe(201)
    expect((await post(streamed(65_536))).status).toBe(201)
  })

  test.each([65_537, 5_000_000])('may not be %p bytes, with and without a length', async bytes => {
    expect(await expectRefused(() => post(sized(bytes)), 'body_too_large', 413)).toContain('65536 bytes')
    await expectRefused(() => post(streamed(bytes)), 'body_too_large', 413)
    expect((await post(sized(100))).status).toBe(201)
  })

  test('does not matter if a body takes too long: it is 408, and the connection closes', async () => {
    await using hasty = await startService({ limits: { bodyMs: 50 } })
    const body = new ReadableStream({ start: controller => controller.enqueue(new TextEncoder().encode('{')) })
    const { status, json, headers } = await hasty.call('/v1/pets', { method: 'POST', body })
    expect([status, json.code, headers.get('connection')]).toEqual([408, 'request_timeout', 'close'])
  })
})

test('a client whose body is refused and then stops arriving still gets the response', async () => {
  await using hasty = await startService({ limits: { discardMs: 50 } })
  const head = 'POST /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1000\r\n\r\nhalf'
  const { replies, closed } = await exchange(hasty.port, [head], { expected: 1 })
  expect([replies.map(({ status }) => status), closed]).toEqual([[401], true])
})

describe('Idempotency-Key', () => {
  const big = '{"name":"Rex","categoryId":9223372036854775807}'
  const create = (idempotencyKey: string, body = big, key = service.key) =>
    service.call('/v1/pets', { method: 'POST', body, key, headers: { 'idempotency-key': idempotencyKey } })

  test('makes one animal of a hundred requests at once, and of the same animal written differently', async () => {
    const before = await count()
    const answers = await Promise.all(Array.from({ length: 100 }, () => create('order-1')))
    answers.push(
      await create('order-1', '{ "categoryId": 9223372036854775807.0, "colour": "brown", "name": "\\u0052ex" }'),
    )
    const seen = answers.map(({ status, text, headers }) => [status, text, headers.get('location')].join())
    expect([new Set(seen).size, answers[0]?.status]).toEqual([1, 201])
    const replayed = answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')
    expect([replayed.length, await count()]).toEqual([100, before + 1])
  })

  test('belongs to the API key that sent it', async () => {
    const { text } = await create('order-4')
    const other = await create('order-4', big, await service.newKey())
    expect([other.status, other.headers.get('idempotency-replayed')]).toEqual([201, null])
    expect(other.text).not.toBe(text)
  })

  test('that is invalid is refused, but means nothing on other operations', async () => {
    for (const key of ['""', 'a b', 'é']) {
      expect(await expectRefused(() => create(key), 'invalid_request')).toStartWith('Idempotency-Key is "')
    }
    expect((await service.call('/v1/pets', { headers: { 'idempotency-key': '""' } })).status).toBe(200)
  })
})
