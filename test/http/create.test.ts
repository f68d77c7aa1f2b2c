import { afterAll, describe, expect, test } from 'bun:test'
import { exchange } from '../support/connections.ts'
import { type Answer, type CallInit, startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const rex = '{"name":"Rex","categoryId":1}'
const post = (body: string | Uint8Array<ArrayBuffer> | ReadableStream, given: CallInit = {}) =>
  service.call('/v1/pets', { method: 'POST', body, ...given })
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

  test('refuses an invalid animal, names every problem and stores nothing', async () => {
    const expected = [
      'name is missing: expected 1 to 1,000 characters',
      'categoryId is "1": expected a 64-bit integer',
      'status is "lost": expected available, pending or sold',
    ]
    const body = '{"categoryId":"1","status":"lost"}'
    expect(await expectRefused(() => post(body), 'invalid_request')).toBe(expected.join('; '))
  })

  test.each([
    ['not UTF-8', new Uint8Array(Buffer.from('"\u00e9"', 'latin1')), 'The body is not valid UTF-8'],
    ['nested too deeply', '['.repeat(30_000), 'The body is not valid JSON: '],
  ])('refuses a body that is %s', async (_, body, message) => {
    expect(await expectRefused(() => post(body), 'invalid_json')).toStartWith(message)
  })

  test('with every id used, creation is 503 without Retry-After, and a replay still works', async () => {
    await using full = await startService()
    const add = (key: string) =>
      full.call('/v1/pets', { method: 'POST', body: rex, headers: { 'idempotency-key': key } })
    await full.database.setLastId(2n ** 63n - 2n)
    const first = await add('first')
    expect([first.status, first.headers.get('location')]).toEqual([201, '/v1/pets/9223372036854775807'])
    const { json, headers } = await add('second')
    expect([json.code, json.status, headers.get('retry-after')]).toEqual(['ids_exhausted', 503, null])
    expect((await add('first')).headers.get('idempotency-replayed')).toBe('true')
  })
})

test('a body of 5 MB is refused, with and without a length, and the next request is served', async () => {
  const body = rex.padEnd(5_000_000)
  expect(await expectRefused(() => post(body), 'body_too_large', 413)).toContain('65536 bytes')
  await expectRefused(() => post(new Blob([body]).stream()), 'body_too_large', 413)
  expect((await post(new Blob([rex.padEnd(65_536)]).stream())).status).toBe(201)
})

test('a client whose body is refused and then stops arriving still gets the response', async () => {
  await using hasty = await startService({ limits: { discardMs: 50 } })
  for (const framing of ['Connection: close\r\nContent-Length: 1000', 'Transfer-Encoding: chunked']) {
    const half = `POST /v1/pets HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n4\r\nhalf`
    const { replies, closed } = await exchange(hasty.port, [half], { expected: 1 })
    expect([replies.map(({ status, closes }) => [status, closes]), closed]).toEqual([[[401, true]], true])
  }
})

describe('Idempotency-Key', () => {
  const big = '{"name":"Rex","categoryId":9223372036854775807}'
  const create = (name: string, body = big, key = service.key) =>
    post(body, { key, headers: { 'idempotency-key': name } })

  test('makes one animal of a hundred requests at once, and of the same animal written differently', async () => {
    const before = await count()
    const answers = await Promise.all(Array.from({ length: 100 }, () => create('order-1')))
    const rewritten = '{ "categoryId": 9223372036854775807.0, "colour": "brown", "name": "\\u0052ex" }'
    answers.push(await create('order-1', rewritten))
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
