import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { advance, settle, standingClock } from '../../test/support/clock.ts'
import { StoreUnavailable } from '../errors.ts'
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
let health: Health
let clock: Disposable
beforeEach(() => {
  clock = standingClock()
  reads = 0
  readPets = readKeys = answers
  isWritable = true
  const count = (read: Read) => () => {
    reads++
    return read()
  }
  health = new Health({
    pets: { list: count(() => readPets()) } as unknown as PetStore,
    keys: { find: count(() => readKeys()) } as unknown as KeyStore,
    activity: () => ({ writesWaiting: 0, isWritable }),
  })
})
afterEach(() => clock[Symbol.dispose]())

const show = ({ status, body }: Reply) => `${status} ${body}`
/** The answer, after the time in which a check that hangs is given up. */
async function answer(asked: Promise<Reply>): Promise<string> {
  await settle()
  await advance(2_000)
  return show(await asked)
}
const readyz = () => answer(health.readyz())
const healthz = () => answer(health.healthz())

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
  health.isDraining = true
  expect([await readyz(), await healthz()]).toEqual(['503 draining', '503 draining'])
})

test('the animals and the keys are read once for all who ask at the same time', async () => {
  const asked = [healthz(), healthz(), health.isStoreUp(), health.isStoreUp()]
  expect([await Promise.all<unknown>(asked), reads]).toEqual([['200 ok', '200 ok', true, true], 2])
})

test('the store is not checked again for 500 ms, and no timer stays', async () => {
  const ask = async () => show(await health.healthz())
  readPets = fails
  expect([await ask(), jest.getTimerCount()]).toEqual(['503 store', 0])
  readPets = answers
  await advance(499)
  expect(await ask()).toBe('503 store')
  await advance(1)
  expect(await ask()).toBe('200 ok')
})
