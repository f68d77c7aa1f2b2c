import { beforeEach, expect, test } from 'bun:test'
import { StoreUnavailable } from '../errors.ts'
import { Histogram } from '../histogram.ts'
import type { KeyStore, PetStore } from '../store-contract.ts'
import { Health } from './health.ts'
import type { Reply } from './response.ts'

type Read = () => Promise<undefined>

const answers: Read = async () => undefined
const fails: Read = () => Promise.reject(new StoreUnavailable('away'))
const hangs: Read = () => new Promise(() => {})

let reads: number
let readPets: Read
let readKeys: Read
let isWritable: boolean
let isDraining: boolean
let health: Health

const start = (checkedForMs: number) => {
  const counted = (read: () => Promise<undefined>) => () => {
    reads++
    return read()
  }
  health = new Health({
    stores: {
      pets: { list: counted(() => readPets()) } as unknown as PetStore,
      keys: { find: counted(() => readKeys()) } as unknown as KeyStore,
      activity: () => ({ writesWaiting: 0, commitSizes: new Histogram([]), isWritable }),
    },
    isDraining: () => isDraining,
    checkMs: 20,
    checkedForMs,
  })
}
beforeEach(() => {
  reads = 0
  readPets = readKeys = answers
  isWritable = true
  isDraining = false
  start(0)
})

const shown = ({ status, body }: Reply) => `${status} ${body}`
const readyz = async () => shown(await health.readyz())
const healthz = async () => shown(await health.healthz())

test.each([
  ['animals fail', fails, answers],
  ['keys fail', answers, fails],
  ['animals hang', hangs, answers],
  ['keys hang', answers, hangs],
])('if %s, /healthz is 503, and /readyz only until the store was read once', async (_, pets, keys) => {
  ;[readPets, readKeys] = [pets, keys]
  expect([await readyz(), await healthz()]).toEqual(['503 starting', '503 store'])
  readPets = readKeys = answers
  expect([await readyz(), await healthz()]).toEqual(['200 ok', '200 ok'])
  ;[readPets, readKeys] = [pets, keys]
  // Without waiting for another check: the last known state.
  expect(await readyz()).toBe('200 ok')
  expect([await healthz(), await readyz()]).toEqual(['503 store', '200 store'])
})

test('both say that nothing can be written, and are 503 while the server stops', async () => {
  isWritable = false
  expect([await readyz(), await healthz()]).toEqual(['200 read-only', '200 read-only'])
  isDraining = true
  expect([await readyz(), await healthz()]).toEqual(['503 draining', '503 draining'])
})

test('the store is checked once for all who ask at the same time', async () => {
  const asked = Array.from({ length: 100 }, (_, index) => (index % 2 ? healthz() : health.isStoreUp()))
  expect(new Set(await Promise.all(asked))).toEqual(new Set(['200 ok', true]))
  expect(reads).toBe(2)
  await healthz()
  expect(reads).toBe(4)
})

test.each([
  ['503 store', fails, answers],
  ['200 ok', answers, fails],
])('the store is not checked again for a while after %s', async (expected, first, second) => {
  start(60_000)
  readPets = first
  expect(await healthz()).toBe(expected)
  readPets = second
  reads = 0
  expect([await healthz(), reads]).toEqual([expected, 0])
})
