import { beforeEach, describe, expect, spyOn, test } from 'bun:test'
import type { PetStore } from '../store.ts'
import { PageCache } from './page-cache.ts'
import { json, type Reply } from './response.ts'

let version: unknown
const pets = { version: () => version } as PetStore
const page = (body: string) => json(200, body)

/** Asks for a page as listPets does, and returns whether it was cached. */
function ask(cache: PageCache, query: string, reply: Reply = page(`${query}@${version}`)): boolean {
  const asked = cache.version()
  const cached = cache.get(query)
  if (cached) expect(cached).toEqual(reply)
  else cache.set(query, reply, asked)
  return cached !== undefined
}

beforeEach(() => {
  version = 1n
})

describe('a page', () => {
  let cache: PageCache
  beforeEach(() => {
    cache = new PageCache(pets, 10_000)
  })

  test('is cached for its query until the store changes', () => {
    expect([ask(cache, 'a'), ask(cache, 'a'), ask(cache, 'b')]).toEqual([false, true, false])
    version = 2n
    expect([ask(cache, 'a'), ask(cache, 'a')]).toEqual([false, true])
    version = 1n
    expect(ask(cache, 'a')).toBe(false)
  })

  test('is not cached if the store changed while it was read', () => {
    const asked = cache.version()
    version = 2n
    cache.version()
    cache.set('a', page('as of version 1'), asked)
    expect(cache.get('a')).toBeUndefined()
  })

  test('is not cached if the store has no version', () => {
    for (const store of [pets, {} as PetStore]) {
      version = undefined
      const cache = new PageCache(store, 10_000)
      expect([ask(cache, 'a'), ask(cache, 'a')]).toEqual([false, false])
    }
  })

  test.each<[string, string, Reply, boolean]>([
    ['a query of 200 characters', 'q'.repeat(200), page('[]'), true],
    ['a query of 201 characters', 'q'.repeat(201), page('[]'), false],
    ['bytes', 'a', { ...page(''), body: new Uint8Array() }, false],
    ['no body', 'a', { ...page(''), body: null }, false],
  ])('with %s is cached or not', (_what, query, reply, cached) => {
    ask(cache, query, reply)
    expect(ask(cache, query, reply)).toBe(cached)
  })
})

describe('a full cache', () => {
  const fullMs = 100
  /** 512 bytes, and two for each character of body and query. */
  const pageBytes = 512 + 2 * (40 + 1)
  const reply = page('x'.repeat(40))

  test.each([
    [3 * pageBytes, true],
    [3 * pageBytes - 1, false],
  ])('of %p bytes has a third page: %p', (bytesMax, third) => {
    const cache = new PageCache(pets, bytesMax, fullMs)
    for (const query of ['a', 'b', 'c']) ask(cache, query, reply)
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([reply, reply, third ? reply : undefined])
  })

  test('drops its pages for new ones only some time after it was last emptied', () => {
    using clock = spyOn(performance, 'now').mockReturnValue(5_000)
    const cache = new PageCache(pets, 2 * pageBytes, fullMs)
    for (const query of ['a', 'b']) ask(cache, query, reply)
    clock.mockReturnValue(5_000 + fullMs - 1)
    expect([ask(cache, 'c', reply), cache.get('a'), cache.get('c')]).toEqual([false, reply, undefined])
    clock.mockReturnValue(5_000 + fullMs)
    expect([ask(cache, 'c', reply), cache.get('a'), cache.get('c')]).toEqual([false, undefined, reply])
    expect([ask(cache, 'd', reply), cache.get('d')]).toEqual([false, reply])
    expect([ask(cache, 'e', reply), cache.get('e')]).toEqual([false, undefined])
  })

  test('has room again when the store changes', () => {
    const cache = new PageCache(pets, pageBytes, fullMs)
    ask(cache, 'a', reply)
    version = 2n
    expect([ask(cache, 'b', reply), cache.get('b')]).toEqual([false, reply])
  })
})
