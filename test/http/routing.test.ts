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
    expect([head.headers.has('date'), head.text]).toEqual([true, ''])
  },
)

const raw = async (line: string, host: string, rest = '\r\n') => {
  const head = `${line} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${service.key}\r\n`
  return (await exchange(service.port, [head + rest], { expected: 1, quietMs: 20 })).replies
}

test.each(['', 'a b', ']][', 'a/b?c#d', 'x:99999', 'user@x', '\xff', '[::1', 'a'.repeat(3000)])(
  'the Host header "%s" changes nothing',
  async host => {
    const text = '{"id":1,"name":"Rex","categoryId":7,"status":"available"}'
    expect(await raw('GET /v1/pets/1?limit=1', host)).toMatchObject([{ status: 200, text }])
  },
)

test.each(['//v1/pets/1', '/v1/pets//1', '/v1/pets/1/', '/v1/pets%2F1'])('the target %s is 404', async target =>
  expect(await raw(`GET ${target}`, 'x')).toMatchObject([{ status: 404 }]),
)

test('a chunked body with a trailer is refused by the runtime, and its animal is not stored', async () => {
  const animal = '{"name":"Trailer","categoryId":1}'
  const chunks = `${animal.length.toString(16)}\r\n${animal}\r\n0\r\nX-Trailer: 1\r\n\r\n`
  for (let i = 0; i < 5; i++) {
    const replies = await raw('POST /v1/pets', 'x', `Transfer-Encoding: chunked\r\n\r\n${chunks}`)
    expect(replies).toMatchObject([{ status: 400 }])
  }
  const { pets } = await service.stores.pets.list({ limit: 100 })
  expect(pets.map(({ name }) => name)).not.toContain('Trailer')
})
