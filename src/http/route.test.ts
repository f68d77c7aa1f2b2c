import { describe, expect, test } from 'bun:test'
import type { Operation } from './operation.ts'
import { allowedMethods, createRouter, type Route } from './route.ts'

const operation: Operation = { id: 'listPets', parameters: [], handle: () => ({ status: 200, body: '[]' }) }

const pets: Route = { path: '/pets', operations: { GET: operation, POST: operation } }
const pet: Route = { path: '/pets/{petId}', operations: { GET: operation } }
const petTag: Route = { path: '/pets/{petId}/tags/{tag}', operations: { POST: operation } }
const findRoute = createRouter([pets, pet, petTag])

describe('a path finds its route', () => {
  test.each<[string, Route, Record<string, string>]>([
    ['/pets', pets, {}],
    ['/p%65ts', pets, {}],
    ['/pets/1', pet, { petId: '1' }],
    ['/pets/-5', pet, { petId: '-5' }],
    ['/pets/abc', pet, { petId: 'abc' }],
    ['/pets/%31', pet, { petId: '1' }],
    ['/pets/a%2Fb', pet, { petId: 'a/b' }],
    ['/pets/%25', pet, { petId: '%' }],
    ['/pets/a+b', pet, { petId: 'a+b' }],
    ['/pets/%F0%9F%98%80', pet, { petId: '😀' }],
    ['/pets/{petId}', pet, { petId: '{petId}' }],
    ['/pets/..', pet, { petId: '..' }],
    ['/pets/__proto__', pet, { petId: '__proto__' }],
    ['/pets/%', pet, { petId: '%' }],
    ['/pets/%zz', pet, { petId: '%zz' }],
    ['/pets/%C0%AF', pet, { petId: '%C0%AF' }],
    ['/pets/%ED%A0%80', pet, { petId: '%ED%A0%80' }],
    ['/p%65ts/1%2', pet, { petId: '1%2' }],
    ['/pets/1/tags/old', petTag, { petId: '1', tag: 'old' }],
  ])('%s', (path, route, params) => {
    expect(findRoute(path)).toEqual({ route, params })
  })
})

describe('no route is at', () => {
  test.each([
    '',
    '/',
    'pets',
    '/Pets',
    '/pet',
    '/petss',
    '/pets/',
    '//pets',
    '/pets//',
    '/pets/1/',
    '/pets/1/tags',
    '/pets//tags/old',
    '/pets/1/tags/',
    '/store/orders',
    '/pets%2F1',
    '/p%zzets',
    '/pets%',
    '/{petId}',
  ])('"%s"', path => {
    expect(findRoute(path)).toBeUndefined()
  })
})

test('of two routes that fit, the one that stands first is taken', () => {
  const mine: Route = { path: '/pets/mine', operations: { GET: operation } }
  expect(createRouter([mine, pet])('/pets/mine')?.route).toBe(mine)
  expect(createRouter([pet, mine])('/pets/mine')?.route).toBe(pet)
})

test.each<[string, Route]>([
  ['GET, HEAD, POST', pets],
  ['GET, HEAD', pet],
  ['POST', petTag],
])('Allow is %s: HEAD stands wherever GET does', (allow, route) => {
  expect(allowedMethods(route)).toBe(allow)
})
