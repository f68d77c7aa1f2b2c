import { afterAll, expect, test } from 'bun:test'
import { exchange } from '../support/connections.ts'
import { startService } from '../support/service.ts'

const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())

const rex = '{"name":"Rex","categoryId":1}'

test('with every id used, creation is 503 without Retry-After, and a replay still works', async () => {
  await using full = await startService()
  const add = (key: string) => full.call('/v1/pets', { method: 'POST', body: rex, headers: { 'idempotency-key': key } })
  await full.database.setLastId(2n ** 63n - 2n)
  const first = await add('first')
  expect([first.status, first.headers.get('location')]).toEqual([201, '/v1/pets/9223372036854775807'])
  const { json, headers } = await add('second')
  expect([json.code, json.status, headers.get('retry-after')]).toEqual(['ids_exhausted', 503, null])
  expect((await add('first')).headers.get('idempotency-replayed')).toBe('true')
})

test('a client whose body is refused and then stops arriving still gets the response', async () => {
  const framings = ['Connection: close\r\nContent-Length: 1000', 'Transfer-Encoding: chunked']
  const send = async (framing: string) => {
    const half = `POST /v1/pets HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n4\r\nhalf`
    const { replies, closed } = await exchange(service.port, [half], { expected: 1, quietMs: 60_000, waitMs: 60_000 })
    expect([replies.map(({ status, closes }) => [status, closes]), closed]).toEqual([[[401, true]], true])
  }
  await Promise.all(framings.map(send))
})

test('a chunked body with a trailer is refused by the runtime, and its animal is not stored', async () => {
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n`
  const chunks = `${rex.length.toString(16)}\r\n${rex}\r\n0\r\nX-Trailer: 1\r\n\r\n`
  for (let i = 0; i < 5; i++) {
    const sent = `${head}Transfer-Encoding: chunked\r\n\r\n${chunks}`
    const { replies } = await exchange(service.port, [sent], { expected: 1, quietMs: 20 })
    expect(replies).toMatchObject([{ status: 400 }])
  }
  expect((await service.call('/v1/pets')).json).toEqual([])
})

test('an Idempotency-Key belongs to the API key that sent it', async () => {
  const request = { method: 'POST', body: rex, headers: { 'idempotency-key': 'order-1' } }
  const first = await service.call('/v1/pets', request)
  const other = await service.call('/v1/pets', { ...request, key: await service.newKey() })
  expect(other.json.id).not.toBe(first.json.id)
})
