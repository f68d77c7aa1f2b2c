import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openCrowd } from '../support/connections.ts'
import { engines } from '../support/engines.ts'
import { until } from '../support/process.ts'
import { type Service, startService } from './service.ts'

async function scrape(of: Service): Promise<readonly string[]> {
  const key = await of.newKey({ name: 'prometheus', permission: 'metrics' })
  const response = await fetch(`${of.origin}/metrics`, { headers: { authorization: `Bearer ${key}` } })
  const type = 'text/plain; version=0.0.4; charset=utf-8'
  expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
  return (await response.text()).split('\n')
}

describe.each(engines)('on %s', engine => {
  let service: Service
  beforeAll(async () => {
    service = await startService({ engine })
  })
  afterAll(() => service[Symbol.asyncDispose]())

  test.each([
    ['GET', '/v1/nothing', 404, 'not_found'],
    ['DELETE', '/v1/pets', 405, 'method_not_allowed'],
  ])('%s %s with a key without the permission is %p: that is checked later', async (method, path, status, code) => {
    const answer = await service.call(path, { key: await service.newKey({ permission: 'metrics' }), method })
    expect([answer.status, answer.json.code]).toEqual([status, code])
  })

  test('the metrics count requests by operation and status, and animals', async () => {
    await using counted = await startService({ engine })
    const rex = '{"name":"Rex","categoryId":1}'
    // The second one is a replay.
    const headers = { 'idempotency-key': 'k' }
    for (const body of [rex, rex, '{"name":""}']) await counted.call('/v1/pets', { method: 'POST', body, headers })
    await counted.call('/v1/pets', { key: null })
    const expected = [
      'petstore_http_requests_total{operation="createPet",status="201"} 2',
      'petstore_http_requests_total{operation="none",status="401"} 1',
      'petstore_http_requests_in_flight 1',
      'petstore_pets_created_total 1',
      'petstore_store_up 1',
    ]
    expect(await scrape(counted)).toEqual(expect.arrayContaining(expected))
    expect(counted.logged.at(-1)).toMatchObject({ path: '/metrics', key: 'prometheus' })
  })

  test('the metrics count a client that closes the connection inside its body as 499, not as slow', async () => {
    await using left = await startService({ engine })
    const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${left.key}\r\nContent-Length: 99\r\n\r\n{`
    using crowd = await openCrowd(left.port, 1, head)
    const inFlight = 'petstore_http_requests_in_flight 2'
    await until('the request to begin', async () => (await scrape(left)).includes(inFlight) || undefined)
    crowd[Symbol.dispose]()
    await until('the request to end', () => left.logged.find(({ status }) => status === 499))
    const isCounted = (line: string) => line.includes('_total{operation="createPet"') && !line.endsWith(' 0')
    const creations = (await scrape(left)).filter(isCounted)
    expect(creations).toEqual(['petstore_http_requests_total{operation="createPet",status="499"} 1'])
    expect(left.logged.find(({ status }) => status === 499)).toMatchObject({ client: '127.0.0.1' })
  })

  test('the log has a line for each request: id, operation, status, duration, key name, and never the key', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const key = await service.newKey({ name: 'till' })
    await service.call('/v1/pets', { key, headers: { 'x-request-id': 'line-1', traceparent } })
    const request = { client: '127.0.0.1', requestId: 'line-1', method: 'GET', operation: 'listPets', path: undefined }
    const response = { status: 200, durationMs: expect.any(Number) }
    expect(service.logged.at(-1)).toEqual({ message: 'request', ...request, ...response, key: 'till', traceparent })
    expect(JSON.stringify(service.logged)).not.toContain(key)
  })
})
