import { describe, expect, test } from 'bun:test'
import { json } from './response.ts'
import { allowedMethods, type Operation, operationFor, type Route, Router } from './router.ts'

const list: Operation = { id: 'listPets', access: 'read', parameters: [], handle: () => json(200, '[]') }
const create: Operation = { ...list, id: 'createPet', access: 'write' }

const pets: Route = { path: '/pets', operations: { GET: list, POST: create } }
const pet: Route = { path: '/pets/{petId}', operations: { GET: list } }
const petTag: Route = { path: '/pets/{petId}/tags/{tag}', operations: { POST: create } }
const router = new Router([pets, pet, petTag])

describe('a path', () => {
  test.each<[string, Route, Record<string, string>]>([
    ['/pets', pets, {}],
    ['/p%65ts', pets, {}],
    ['/pets/%31', pet, { petId: '1' }],
    ['/pets/a%2Fb', pet, { petId: 'a/b' }],
    ['/pets/%F0%9F%98%80', pet, { petId: '😀' }],
    ['/pets/{petId}', pet, { petId: '{petId}' }],
    ['/pets/__proto__', pet, { petId: '__proto__' }],
    ['/pets/%C0%AF', pet, { petId: '%C0%AF' }],
    ['/p%65ts/1%2', pet, { petId: '1%2' }],
    ['/pets/1/tags/old', petTag, { petId: '1', tag: 'old' }],
  ])('%s has a route', (path, route, params) => {
    expect(router.find(path)).toEqual({ route, params })
  })

  test.each([
    ...['', '/', 'pets', '/Pets', '/pet', '/petss', '/pets/', '//pets', '/pets//', '/pets/1/', '/pets/1/tags'],
    ...['/pets//tags/old', '/pets/1/tags/', '/store/orders', '/pets%2F1', '/p%zzets', '/pets%', '/{petId}'],
  ])('"%s" has no route', path => {
    expect(router.find(path)).toBeUndefined()
  })

  test('has the route without parameters if two match, and otherwise the first', () => {
    const mine: Route = { path: '/pets/mine', operations: { GET: list } }
    const named: Route = { path: '/pets/{name}', operations: { GET: list } }
    expect(new Router([pet, mine]).find('/pets/mine')?.route).toBe(mine)
    expect(new Router([pet, named]).find('/pets/1')?.route).toBe(pet)
  })
})

describe('a method', () => {
  test.each<[string, Route, Operation | undefined]>([
    ['GET', pets, list],
    ['HEAD', pets, list],
    ['POST', pets, create],
    ['PUT', pets, undefined],
    ['post', pets, undefined],
    ['POST', pet, undefined],
    ['HEAD', petTag, undefined],
  ])('%s: %#', (method, route, operation) => {
    expect(operationFor(route, method)).toBe(operation)
  })

  test.each<[string, Route]>([
    ['GET, HEAD, POST', pets],
    ['GET, HEAD', pet],
    ['POST', petTag],
  ])('is one of %s', (allow, route) => {
    expect(allowedMethods(route)).toBe(allow)
  })
})
