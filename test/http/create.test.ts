import { afterAll, describe, expect, test } from 'bun:test'
import { exchange } from '../support/connections.ts'
import { type Answer, type CallInit, startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const rex = '{"name":"Rex","categoryId":1}'
const post = (body: CallInit['body'], headers: Record<string, string> = {}) =>
  service.call('/v1/pets', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body }),
  })
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
  test('adds an animal and says where it is', async () => {
    const { status, text, headers } = await post('{"name":"Rex","categoryId":7,"status":"available"}')
    expect(status).toBe(201)
    const location = headers.get('location') ?? ''
    expect(location).toMatch(/^\/v1\/pets\/\d+$/)
    expect(text).toBe(`{"id":${location.slice(9)},"name":"Rex","categoryId":7,"status":"available"}`)
    expect((await service.call(location)).text).toBe(text)
  })

  test.each([
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['9007199254740993.0', '9007199254740993'],
    ['922337203685477580.7e1', '9223372036854775807'],
    ['-0', '0'],
  ])('stores the categoryId %s exactly', async (sent, stored) => {
    const { status, text, headers } = await post(`{"name":"Big","categoryId":${sent}}`)
    expect(status).toBe(201)
    expect(text).toEndWith(`"categoryId":${stored}}`)
    expect((await service.call(headers.get('location') ?? '')).text).toBe(text)
    expect((await service.call('/v1/pets?limit=100')).text).toContain(text)
  })

  test.each([
    [
      '{"categoryId":"1","status":"lost"}',
      'name is missing: expected 1 to 1,000 characters; categoryId is "1": expected a 64-bit integer; status is "lost": expected available, pending or sold',
    ],
    [
      '{"name":"","categoryId":9223372036854775808}',
      'name is empty: expected 1 to 1,000 characters; categoryId is 9223372036854775808: expected a 64-bit integer',
    ],
    [
      '{"__proto__":{"name":"Rex","categoryId":1}}',
      'name is missing: expected 1 to 1,000 characters; categoryId is missing: expected a 64-bit integer',
    ],
    ['["Rex"]', 'the body is […]: expected an object with name and categoryId'],
  ])('refuses %s and names every problem', async (body, message) => {
    expect(await expectRefused(() => post(body), 'invalid_request')).toBe(message)
  })

  test.each([
    ['an unclosed bracket', rex.slice(0, -1)],
    ['a raw NUL', '{"name":"Rex\0","categoryId":1}'],
    ['65 levels', `{"name":"Rex","categoryId":1,"x":${'['.repeat(64)}${']'.repeat(64)}}`],
    ['30,000 levels and a long number', `${'['.repeat(30_000)}12345678901234567890${']'.repeat(30_000)}`],
    ['30,000 opened levels', '{"a":'.repeat(10_000)],
  ])('refuses a body with %s as JSON', async (_, body) => {
    await expectRefused(() => post(body), 'invalid_json')
  })

  test.each([
    ['a stray byte', [0xff]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate in UTF-8', [0xed, 0xa0, 0x80]],
    ['a cut sequence', [0xe2, 0x82]],
  ])('refuses %s: not UTF-8', async (_, bytes) => {
    const body = Buffer.from(rex.replace('Rex', '???'))
    body.set(bytes, body.indexOf('???'))
    expect(await expectRefused(() => post(new Uint8Array(body)), 'invalid_json')).toContain('UTF-8')
  })

  test('refuses an empty body, whatever its type', async () => {
    await expectRefused(() => post(undefined), 'missing_body')
    await expectRefused(() => post('', { 'content-type': 'text/plain' }), 'missing_body')
    await expectRefused(() => post(new ReadableStream({ start: c => c.close() })), 'missing_body')
  })

  test('keeps messages short, however much was sent', async () => {
    const many = JSON.stringify(Object.fromEntries(Array.from({ length: 6_000 }, (_, i) => [`p${i}`, 1])))
    const { status, text, json } = await post(many, { prefer: 'handling=strict' })
    expect([status, text.length < 3_000]).toEqual([400, true])
    expect(json.message).toEndWith('; and 5980 more')
    const typed = await post('{}', { 'content-type': 'x'.repeat(12_000) })
    expect([typed.status, typed.text.length < 300]).toEqual([415, true])
  })

  test('with every id used, creation is 503 without Retry-After, and a replay still works', async () => {
    await using full = await startService()
    const add = (name: string, key?: string) =>
      full.call('/v1/pets', {
        method: 'POST',
        body: JSON.stringify({ name, categoryId: 1 }),
        ...(key && { headers: { 'idempotency-key': key } }),
      })
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
    for (const path of ['/v1/pets?offset=1', '/v1/pets/1?offset=1']) {
      const { status, json, headers: sent } = await service.call(path, { headers })
      expect([status, sent.get('preference-applied')]).toEqual([400, 'handling=strict'])
      expect(json.message).toContain('parameter "offset"')
    }
  })

  test('accepts what is known, and says that it was applied', async () => {
    const created = await post(rex, headers)
    expect([created.status, created.headers.get('preference-applied')]).toEqual([201, 'handling=strict'])
    const prefer = 'wait=5, Handling="strict"'
    const listed = await service.call('/v1/pets?limit=1&status=sold', { headers: { prefer } })
    expect([listed.status, listed.headers.get('preference-applied')]).toEqual([200, 'handling=strict'])
  })

  test('other preferences change nothing', async () => {
    const { status, headers } = await service.call('/v1/pets?offset=1', {
      headers: { prefer: 'handling=lenient, handling=strict' },
    })
    expect([status, headers.get('preference-applied')]).toEqual([200, null])
  })
})

describe('the media type of POST /v1/pets', () => {
  test.each(['application/jsonp', 'application/problem+json', '*/*', 'application/json, text/plain'])(
    'may not be %s',
    async type => {
      const message = await expectRefused(() => post(rex, { 'content-type': type }), 'unsupported_media_type', 415)
      expect(message).toContain('application/json')
    },
  )

  test.each(['gzip', 'identity'])('does not allow Content-Encoding "%s"', async encoding => {
    const send = () => post(rex, { 'content-encoding': encoding })
    await expectRefused(send, 'unsupported_content_encoding', 415)
  })
})

describe('the size of a body', () => {
  const sized = (bytes: number) => rex.padEnd(bytes)
  const streamed = (bytes: number) =>
    new ReadableStream({
      start(controller) {
        const text = new TextEncoder().encode(sized(bytes))
        for (let at = 0; at < text.length; at += 10_000) controller.enqueue(text.slice(at, at + 10_000))
        controller.close()
      },
    })

  test('may be 65,536 bytes, with and without a length', async () => {
    expect((await post(sized(65_536))).status).toBe(201)
    expect((await post(streamed(65_536))).status).toBe(201)
  })

  test.each([65_537, 5_000_000])('may not be %p bytes, with and without a length', async bytes => {
    expect(await expectRefused(() => post(sized(bytes)), 'body_too_large', 413)).toContain('65536 bytes')
    await expectRefused(() => post(streamed(bytes)), 'body_too_large', 413)
    expect((await post(sized(100))).status).toBe(201)
  })

  test('of a body that takes too long does not matter: it is 408, and the connection closes', async () => {
    await using hasty = await startService({ limits: { bodyMs: 50 } })
    const body = new ReadableStream({
      start: controller => controller.enqueue(new TextEncoder().encode('{')),
    })
    const { status, json, headers } = await hasty.call('/v1/pets', { method: 'POST', body })
    expect({ status, code: json.code }).toEqual({ status: 408, code: 'request_timeout' })
    expect(headers.get('connection')).toBe('close')
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

  test('gives the first response again, however the animal is written, and adds nothing', async () => {
    const before = await count()
    const first = await create('order-1')
    expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([201, null])
    const same = '{ "categoryId": 9223372036854775807.0, "colour": "brown", "name": "\\u0052ex" }'
    for (const body of [big, same]) {
      const again = await create('order-1', body)
      expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
      expect([again.text, again.headers.get('location')]).toEqual([first.text, first.headers.get('location')])
    }
    expect(await count()).toBe(before + 1)
  })

  test('belongs to the API key that sent it', async () => {
    const { text } = await create('order-4')
    const other = await create('order-4', big, await service.newKey())
    expect([other.status, other.headers.get('idempotency-replayed')]).toEqual([201, null])
    expect(other.text).not.toBe(text)
  })

  test.each(['""', 'a b', 'é', 'x'.repeat(256)])('may not be %s', async key => {
    const message = await expectRefused(() => create(key), 'invalid_request')
    expect(message).toStartWith('Idempotency-Key is "')
  })

  test('makes one animal of a hundred requests at once', async () => {
    const before = await count()
    const answers = await Promise.all(Array.from({ length: 100 }, () => create('order-6')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1)
    expect(await count()).toBe(before + 1)
  })

  test('means nothing on other operations', async () => {
    const { status, headers } = await service.call('/v1/pets', { headers: { 'idempotency-key': '""' } })
    expect([status, headers.get('idempotency-replayed')]).toEqual([200, null])
  })
})
