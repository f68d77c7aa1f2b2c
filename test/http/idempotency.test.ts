import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service[Symbol.asyncDispose]())

const rex = '{"name":"Rex","categoryId":9223372036854775807}'
const post = (idempotencyKey: string, body = rex, key = service.key) =>
  service.call('/v1/pets', { method: 'POST', body, key, headers: { 'idempotency-key': idempotencyKey } })
const count = async () => (await service.stores.pets.list({ limit: 100 })).pets.length

describe('Idempotency-Key on POST /v1/pets', () => {
  test('gives the first answer again, and says so', async () => {
    const before = await count()
    const first = await post('order-1')
    expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([201, null])
    const again = await post('order-1')
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
    expect(again.text).toBe(first.text)
    expect(again.headers.get('location')).toBe(first.headers.get('location'))
    expect(await count()).toBe(before + 1)
  })

  test('knows the same animal however it is written', async () => {
    const { text } = await post('order-2')
    const again = await post(
      'order-2',
      '{ "categoryId": 9223372036854775807.0, "colour": "brown", "name": "\\u0052ex" }',
    )
    expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([text, 'true'])
  })

  test.each([
    '{"name":"Max","categoryId":1}',
    '{"name":"Rex","categoryId":9223372036854775807,"status":"sold"}',
  ])('is 422 with another animal: %s', async other => {
    await post('order-3')
    const before = await count()
    const { status, json } = await post('order-3', other)
    expect({ status, code: json.code }).toEqual({ status: 422, code: 'idempotency_key_reused' })
    expect(await count()).toBe(before)
  })

  test('belongs to the API key that sent it', async () => {
    const { text } = await post('order-4')
    const other = await post('order-4', rex, await service.newKey())
    expect([other.status, other.headers.get('idempotency-replayed')]).toEqual([201, null])
    expect(other.text).not.toBe(text)
  })

  test('may be quoted or bare, and is the same key', async () => {
    const { text } = await post('"quoted \\"key\\""'.replace(' ', '-'))
    const again = await post('quoted-"key"')
    expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([text, 'true'])
  })

  test.each(['x', 'x'.repeat(255), '!#$%&()*+,-./:;<=>?@[]^_`{|}~', `"${'x'.repeat(255)}"`])(
    'may be %s',
    async key => {
      expect((await post(key)).status).toBe(201)
    },
  )

  test.each(['""', '"', '"a', 'a b', '"a b"', 'é', 'x'.repeat(256), `"${'x'.repeat(256)}"`, '"a"b"'])(
    'may not be %s',
    async key => {
      const before = await count()
      const { status, json } = await post(key)
      expect({ status, code: json.code }).toEqual({ status: 400, code: 'invalid_request' })
      expect(json.message).toStartWith('Cannot read Idempotency-Key')
      expect(await count()).toBe(before)
    },
  )

  test('is not spent on a request that failed', async () => {
    expect((await post('order-5', '{"name":""}')).status).toBe(400)
    const { status, headers } = await post('order-5')
    expect([status, headers.get('idempotency-replayed')]).toEqual([201, null])
  })

  test('makes one animal of a hundred requests at once', async () => {
    const before = await count()
    const answers = await Promise.all(Array.from({ length: 100 }, () => post('order-6')))
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
