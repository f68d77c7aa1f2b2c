import { expect, test } from 'bun:test'
import { Exchange, splitUrl } from './exchange.ts'

test.each([
  ['https://pets.example.com/v1/pets?limit=5&status=sold', '/v1/pets', 'limit=5&status=sold'],
  ['http://a/?a=/v1/pets', '/', 'a=/v1/pets'],
  ['http://a/v1/pets??limit=5', '/v1/pets', '?limit=5'],
  ['http://a/v1/../p%65ts%2F1?status=s%6Fld', '/v1/../p%65ts%2F1', 'status=s%6Fld'],
  ['/v1/pets?limit=5', '/v1/pets', 'limit=5'],
])('%s has the path %s and the query "%s"', (url, path, query) => {
  expect(splitUrl(url)).toEqual({ path, query })
})

const generated = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const environmentKey = 'a-key-from-outside-0123456789'
const chooseId = (sent?: string) => {
  const headers: Record<string, string> = sent === undefined ? {} : { 'x-request-id': sent }
  return new Exchange(new Request('http://a/', { headers }), undefined, environmentKey).id
}

test.each([
  ...['7', 'Root=1-67891233-abcdef012345678912345678', 'trace/span:7@host~1.2_3+x=='],
  ...['x'.repeat(128), environmentKey.slice(1), `pets_${'x'.repeat(11)}`],
])('the request id %s of the client is used', id => {
  expect(chooseId(id)).toBe(id)
})

test.each([
  ...[undefined, '', 'a b', '"a"', 'a,b', '<script>', '%0a', 'é', 'x'.repeat(129)],
  ...[environmentKey, `id=${environmentKey}.`, `pets_${'x'.repeat(36)}`, `id=pets_${'x'.repeat(12)}`],
])('the request id %j is absent, unsafe or has a key, and is replaced with another one each time', id => {
  expect(chooseId(id)).toMatch(generated)
  expect(chooseId(id)).not.toBe(chooseId(id))
})
