import { beforeEach, describe, expect, test } from 'bun:test'
import { StoreUnavailable } from '../errors.ts'
import type { KeyStore, PetStore } from '../store.ts'
import { Health } from './health.ts'
import type { Reply } from './response.ts'

type Read = () => Promise<undefined>

const answers: Read = async () => undefined
const fails: Read = () => Promise.reject(new StoreUnavailable('away'))
const hangs: Read = () => new Promise(() => {})

let reads: number
let readPets: Read
let readKeys: Read
let isReadOnly: boolean
let isDraining: boolean
let health: Health

const start = (checkedForMs: number) => {
  const counted = (read: () => Promise<undefined>) => () => {
    reads++
    return read()
  }
  health = new Health({
    pets: { list: counted(() => readPets()) } as unknown as PetStore,
    keys: { find: counted(() => readKeys()) } as unknown as KeyStore,
    isReadOnly: () => isReadOnly,
    isDraining: () => isDraining,
    checkMs: 20,
    checkedForMs,
  })
}
beforeEach(() => {
  reads = 0
  readPets = readKeys = answers
  isReadOnly = isDraining = false
  start(0)
})

const shown = ({ status, body }: Reply) => `${status} ${body}`
const readyz = async () => shown(await health.readyz())
const healthz = async () => shown(await health.healthz())

/** A store that is in trouble, in every way that a check distinguishes. */
const troubles: readonly (readonly [string, Read, Read])[] = [
  ['animals fail', fails, answers],
  ['keys fail', answers, fails],
  ['animals hang', hangs, answers],
  ['keys hang', answers, hangs],
]

describe('/healthz', () => {
  test.each(troubles)('is 503 while %s, and 200 before and after', async (_, pets, keys) => {
    expect(await healthz()).toBe('200 ok')
    ;[readPets, readKeys] = [pets, keys]
    expect(await healthz()).toBe('503 store')
    readPets = readKeys = answers
    expect(await healthz()).toBe('200 ok')
  })

  test('says that nothing can be written, and that the server stops', async () => {
    isReadOnly = true
    expect(await healthz()).toBe('200 read-only')
    isDraining = true
    expect(await healthz()).toBe('503 draining')
  })

  test('is checked once for all who ask at the same time', async () => {
    const asked = Array.from({ length: 100 }, (_, index) => (index % 2 ? healthz() : health.isStoreUp()))
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['200 ok', true]))
    expect(reads).toBe(2)
    await healthz()
    expect(reads).toBe(4)
  })

  test('is not checked again for a while, whatever the result was', async () => {
    for (const [pets, expected] of [
      [fails, '503 store'],
      [answers, '200 ok'],
    ] as const) {
      start(60_000)
      readPets = pets
      expect(await healthz()).toBe(expected)
      readPets = pets === fails ? answers : fails
      reads = 0
      expect([await healthz(), reads]).toEqual([expected, 0])
    }
  })
})

describe('/readyz', () => {
  test.each(troubles)('waits until the store was read once, if %s', async (_, pets, keys) => {
    ;[readPets, readKeys] = [pets, keys]
    expect(await readyz()).toBe('503 starting')
    readPets = readKeys = answers
    expect(await readyz()).toBe('200 ok')
  })

  test.each(troubles)('stays 200 with the last known state when %s later, without waiting', async (_, pets, keys) => {
    expect(await readyz()).toBe('200 ok')
    ;[readPets, readKeys] = [pets, keys]
    expect(await readyz()).toBe('200 ok')
    expect(await health.isStoreUp()).toBe(false)
    expect(await readyz()).toBe('200 store')
    readPets = readKeys = hangs
    expect(await readyz()).toBe('200 store')
  })

  test('says that nothing can be written, and is 503 while the server stops', async () => {
    isReadOnly = true
    expect(await readyz()).toBe('200 read-only')
    isDraining = true
    expect(await readyz()).toBe('503 draining')
  })
})
