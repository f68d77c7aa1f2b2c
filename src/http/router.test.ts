import { expect, test } from 'bun:test'
import { Exchange } from './exchange.ts'
import { json, Refusal } from './response.ts'
import { findRoute, type Route, Router } from './router.ts'

const route = (method: 'GET' | 'POST', path: string): Route => {
  return { method, path: `/v1${path}`, access: 'read', handle: async () => json(200, '') }
}
const list = route('GET', '/pets')
const create = route('POST', '/pets')
const get = route('GET', '/pets/{petId}')
const tag = route('POST', '/pets/{petId}/tags/{tag}')
const page: Route = { ...list, path: '/docs' }
const router = new Router([list, create, get, tag, page])

test.each<[string, Route, Record<string, string>]>([
  ['/pets', list, {}],
  ['/pets/%31', get, { petId: '1' }],
  ['/pets/a%2Fb', get, { petId: 'a/b' }],
  ['/pets/%F0%9F%98%80', get, { petId: '😀' }],
  ['/pets/__proto__', get, { petId: '__proto__' }],
  ['/pets/%C0%AF', get, { petId: '%C0%AF' }],
  ['/pets/1%2', get, { petId: '1%2' }],
  ['/pets/1/tags/old', tag, { petId: '1', tag: 'old' }],
])('the path %s has a route', (path, { path: pattern }, params) => {
  const found = router.find(`/v1${path}`)
  expect([found.routes[0]?.path, found.params, found.isVersioned]).toEqual([pattern, params, true])
})

test.each([
  ...['', '/', 'pets', '/Pets', '/pet', '/petss', '/pets/', '//pets', '/pets//', '/pets/1/', '/pets/1/tags'],
  ...['/pets//tags/old', '/pets/1/tags/', '/store/orders', '/pets%2F1', '/p%65ts', '/pets%', '/{petId}'],
])('the path "%s" has no route', path => {
  expect(router.find(`/v1${path}`).routes).toEqual([])
})

test.each([
  ['/docs', 1, false],
  ['/v1', 0, true],
  ['/v1x', 0, false],
  ['/%761/pets', 0, false],
])('the path %s has %d routes, and is versioned: %p', (path, routes, isVersioned) => {
  const found = router.find(path)
  expect([found.routes.length, found.isVersioned]).toEqual([routes, isVersioned])
})

const find = (method: string, path: string) => {
  const exchange = new Exchange(new Request(`http://a/v1${path}`, { method }), undefined, undefined)
  return findRoute(router.find(`/v1${path}`), exchange)
}

test.each<[string, string, Route | undefined, allow: string]>([
  ['GET', '/pets', list, 'GET, HEAD, POST'],
  ['HEAD', '/pets', list, 'GET, HEAD, POST'],
  ['POST', '/pets', create, 'GET, HEAD, POST'],
  ['PUT', '/pets', undefined, 'GET, HEAD, POST'],
  ['POST', '/pets/1', undefined, 'GET, HEAD'],
  ['HEAD', '/pets/1/tags/old', undefined, 'POST'],
])('%s at %s: %#', (method, path, expected, allow) => {
  const message = `Method ${method} is not allowed here: expected ${allow}`
  expect(router.find(`/v1${path}`).allow).toBe(allow)
  if (expected) expect(find(method, path)).toBe(expected)
  else expect(() => find(method, path)).toThrow(new Refusal('method_not_allowed', message, { Allow: allow }))
})

test('a message about a path with nothing shows 80 characters of it, and a key across the limit in part', () => {
  const path = `/${'x'.repeat(76)}`
  expect(() => find('GET', path)).toThrow(`Nothing is at /v1${path}: `)
  expect(() => find('GET', `${path}y`)).toThrow(`Nothing is at /v1${path}…: `)
  const cutKey = `/${'x'.repeat(65)}/pets_`
  expect(() => find('GET', `${cutKey}${'0'.repeat(36)}`)).toThrow(`Nothing is at /v1${cutKey}0000…: `)
})
