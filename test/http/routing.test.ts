import { afterAll, expect, test } from 'bun:test'
import { exchange } from '../support/connections.ts'
import { type Answer, startService } from '../support/service.ts'

const service = await startService()
await service.stores.pets.create({ name: 'Rex', categoryId: 7n, status: 'available' })
afterAll(() => service[Symbol.asyncDispose]())

test.each(['/v1/pets?limit=1', '/v1/pets/99', '/v1/pets?limit=0', '/v1/nothing', '/openapi.json'])(
  'HEAD %s has the headers of GET and no body',
  async path => {
    const [get, head] = [await service.call(path), await service.call(path, { method: 'HEAD' })]
    const comparable = ({ status, headers }: Answer) => [
      status,
      [...headers].filter(([name]) => !/^(x-request-id|date)$/.test(name)).sort(),
    ]
    expect(comparable(head)).toEqual(comparable(get))
    expect(head.headers.get('date')).not.toBeNull()
    expect(head.text).toBe('')
  },
)

const raw = async (target: string, host: string) => {
  const head = `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${service.key}\r\n\r\n`
  return (await exchange(service.port, [head], { expected: 1, quietMs: 20 })).replies
}

test.each(['', 'a b', ']][', 'a/b?c#d', 'x:99999', 'user@x', '\xff', '[::1', 'a'.repeat(3000)])(
  'the Host header "%s" changes nothing',
  async host => {
    const text = '{"id":1,"name":"Rex","categoryId":7,"status":"available"}'
    expect(await raw('/v1/pets/1?limit=1', host)).toMatchObject([{ status: 200, text }])
  },
)

test.each(['//v1/pets/1', '/v1/pets//1', '/v1/pets/1/', '/v1/pets%2F1'])('the target %s is 404', async target =>
  expect(await raw(target, 'x')).toMatchObject([{ status: 404 }]),
)

test('a chunked body with a trailer is refused by the runtime, and its animal is not stored', async () => {
  const animal = '{"name":"Trailer","categoryId":1}'
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\nTransfer-Encoding: chunked`
  const body = `${animal.length.toString(16)}\r\n${animal}\r\n0\r\nX-Trailer: 1\r\n\r\n`
  for (let i = 0; i < 5; i++) {
    const { replies } = await exchange(service.port, [`${head}\r\n\r\n${body}`], { expected: 1, quietMs: 20 })
    expect(replies).toMatchObject([{ status: 400 }])
  }
  const { pets } = await service.stores.pets.list({ limit: 100 })
  expect(pets.map(({ name }) => name)).not.toContain('Trailer')
})
