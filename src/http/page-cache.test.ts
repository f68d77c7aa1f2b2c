import { heapStats } from 'bun:jsc'
import { beforeEach, describe, expect, test } from 'bun:test'
import type { PetStore } from '../store.ts'
import { PageCache } from './page-cache.ts'
import { json, type Reply } from './response.ts'

let version: bigint | undefined
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
    version = undefined
    expect([ask(cache, 'a'), ask(cache, 'a')]).toEqual([false, false])
  })
})

describe('a full cache', () => {
  /** 512 bytes, and two for each character of body and query. */
  const pageBytes = 512 + 2 * (40 + 1)
  const reply = page('x'.repeat(40))
  const cachedIn = (cache: PageCache, queries: string) => [...queries].filter(query => cache.get(query)).join('')

  test.each([
    ['pages that fit exactly', 6 * pageBytes, 'abcdef', 'abcdef'],
    ['the newer half and the newest page, however often older ones are asked for', 6 * pageBytes, 'abcdefabcg', 'defg'],
    ['one page less in each half if a byte is missing', 6 * pageBytes - 1, 'abcde', 'cde'],
  ])('holds %s', (_what, bytesMax, asked, held) => {
    const cache = new PageCache(pets, bytesMax)
    for (const query of asked) ask(cache, query, reply)
    expect(cachedIn(cache, 'abcdefg')).toBe(held)
  })

  test('has 16 MiB by default, half of them for the newest pages', () => {
    const cache = new PageCache(pets)
    const chars = (8 * 1024 ** 2 - 512) / 2 - 1
    ask(cache, 'a', page('x'.repeat(chars)))
    ask(cache, 'b', page('x'.repeat(chars + 1)))
    expect(cachedIn(cache, 'ab')).toBe('a')
  })

  test('drops nothing for a page that is larger than half of it', () => {
    const cache = new PageCache(pets, 2 * pageBytes)
    for (const query of 'ab') ask(cache, query, reply)
    ask(cache, 'c', page('x'.repeat(41)))
    expect(cachedIn(cache, 'abc')).toBe('ab')
  })

  test('counts a page once that two requests have read at the same time, and has room when the store changes', () => {
    const cache = new PageCache(pets, 4 * pageBytes)
    const asked = cache.version()
    for (const query of 'aaabbccbad') cache.set(query, reply, asked)
    expect(cachedIn(cache, 'abcd')).toBe('abcd')
    version = 2n
    for (const query of 'efgh') ask(cache, query, reply)
    expect(cachedIn(cache, 'abcdefgh')).toBe('efgh')
  })

  test('does not keep the URL of a query in memory', () => {
    const cache = new PageCache(pets, 10_000_000)
    const asked = cache.version()
    const before = heapBytes()
    for (let i = 0; i < 1_000; i++) {
      const url = `http://${'x'.repeat(100_000)}/v1/pets?limit=20&x=${i}`
      cache.set(url.slice(url.indexOf('?') + 1), page('[]'), asked)
    }
    expect(heapBytes() - before).toBeLessThan(10_000_000)
    expect(cache.get('limit=20&x=999')).toBeDefined()
  })
})

function heapBytes(): number {
  Bun.gc(true)
  const { heapSize, extraMemorySize } = heapStats()
  return heapSize + extraMemorySize
}
