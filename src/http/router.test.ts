import { describe, expect, test } from 'bun:test'
import { json } from './response.ts'
import { type Operation, operationFor, Router } from './router.ts'

const operation = (method: 'GET' | 'POST', path: string): Operation => ({
  ...{ id: 'listPets', method, path, access: 'read', parameters: [] },
  handle: async () => json(200, ''),
})
const list = operation('GET', '/pets')
const create = operation('POST', '/pets')
const get = operation('GET', '/pets/{petId}')
const tag = operation('POST', '/pets/{petId}/tags/{tag}')
const router = new Router([list, create, get, tag])

describe('a path', () => {
  test.each<[string, Operation, Record<string, string>]>([
    ['/pets', list, {}],
    ['/p%65ts', list, {}],
    ['/pets/%31', get, { petId: '1' }],
    ['/pets/a%2Fb', get, { petId: 'a/b' }],
    ['/pets/%F0%9F%98%80', get, { petId: '😀' }],
    ['/pets/{petId}', get, { petId: '{petId}' }],
    ['/pets/__proto__', get, { petId: '__proto__' }],
    ['/pets/%C0%AF', get, { petId: '%C0%AF' }],
    ['/p%65ts/1%2', get, { petId: '1%2' }],
    ['/pets/1/tags/old', tag, { petId: '1', tag: 'old' }],
  ])('%s has a route', (path, { path: pattern }, params) => {
    const found = router.find(path)
    expect([found?.operations[0]?.path, found?.params]).toEqual([pattern, params])
  })

  test.each([
    ...['', '/', 'pets', '/Pets', '/pet', '/petss', '/pets/', '//pets', '/pets//', '/pets/1/', '/pets/1/tags'],
    ...['/pets//tags/old', '/pets/1/tags/', '/store/orders', '/pets%2F1', '/p%zzets', '/pets%', '/{petId}'],
  ])('"%s" has no route', path => {
    expect(router.find(path)).toBeUndefined()
  })

  test('has the route without parameters if two match, and otherwise the first', () => {
    const mine = operation('GET', '/pets/mine')
    for (const path of ['/pets/mine', '/pets/m%69ne']) {
      expect(new Router([get, mine]).find(path)?.operations).toEqual([mine])
    }
    expect(new Router([get, operation('GET', '/pets/{name}')]).find('/pets/1')?.operations).toEqual([get])
  })
})

describe('a method', () => {
  test.each<[string, string, Operation | undefined, allow: string]>([
    ['GET', '/pets', list, 'GET, HEAD, POST'],
    ['HEAD', '/pets', list, 'GET, HEAD, POST'],
    ['POST', '/pets', create, 'GET, HEAD, POST'],
    ['PUT', '/pets', undefined, 'GET, HEAD, POST'],
    ['post', '/pets', undefined, 'GET, HEAD, POST'],
    ['POST', '/pets/1', undefined, 'GET, HEAD'],
    ['HEAD', '/pets/1/tags/old', undefined, 'POST'],
  ])('%s at %s: %#', (method, path, expected, allow) => {
    const found = router.find(path)
    expect([found && operationFor(found, method), found?.allow]).toEqual([expected, allow])
  })
})
