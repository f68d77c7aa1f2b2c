import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { issueApiKey } from '../../src/api-key.ts'
import { StoreDamaged, StoreUnavailable } from '../../src/errors.ts'
import type { NewPet, PetStatus } from '../../src/pet.ts'
import { writesWaitingMax } from '../../src/store/commit-queue.ts'
import { openStores } from '../../src/store/open.ts'
import { DamageGuard } from '../../src/store/sqlite/errors.ts'
import { Writer } from '../../src/store/sqlite/writer.ts'
import type { Writes } from '../../src/store/sqlite/writer-thread.ts'
import type { Stores } from '../../src/store.ts'
import { temporaryFolder } from '../support/process.ts'
import { diesAfter, diesBefore } from './dying-writer-thread.ts'

const dyingThread = new URL('./dying-writer-thread.ts', import.meta.url)

let folder: ReturnType<typeof temporaryFolder>
/** Beside the writer: it has made the file, and it reads. */
let stores: Stores
let writer: Writer<Writes>
let troubles: string[]
let guard: DamageGuard

beforeEach(async () => {
  folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  stores = await openStores(`sqlite:${file}`, { create: true })
  troubles = []
  guard = new DamageGuard()
  writer = new Writer(file, guard, message => troubles.push(message), dyingThread)
})

afterEach(async () => {
  await writer.close()
  await stores.close()
  folder[Symbol.dispose]()
})

const animal = (name: string): NewPet => ({ name, categoryId: 9007199254740993n })
const add = (name: string) => outcomeOf(writer.write('createPet', name, 9007199254740993n, null))

/** What became of it, in a word. */
function outcomeOf(write: Promise<unknown>): Promise<string> {
  return write.then(
    () => 'written',
    error => (error instanceof StoreUnavailable ? 'unavailable' : String(error)),
  )
}

async function names(): Promise<readonly string[]> {
  const { pets } = await stores.pets.list({ limit: 100 })
  return pets.map(({ name }) => name)
}

test('when the writer thread dies, writes passed to it fail, reads go on, and the next animal is added', async () => {
  expect(await add('Rex')).toBe('written')
  const waiting = [diesBefore, ...Array.from({ length: 15 }, (_, index) => `Waiting ${index}`)].map(add)
  const reading = Promise.all([names(), Bun.sleep(1).then(names)])
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'unavailable'))
  expect(await reading).toEqual([['Rex'], ['Rex']])
  expect(troubles).toEqual([expect.stringContaining('16 writes failed')])

  expect(await add('Bella')).toBe('written')
  expect(await names()).toEqual(['Rex', 'Bella'])
  expect(troubles).toHaveLength(1)
})

test('writes that were not yet passed to a thread that dies are committed by the next one', async () => {
  const early = [diesBefore, ...Array.from({ length: 31 }, (_, index) => `Early ${index}`)].map(add)
  const late = Array.from({ length: 10 }, (_, index) => add(`Late ${index}`))
  expect(await Promise.all(early)).toEqual(early.map(() => 'unavailable'))
  expect(await Promise.all(late)).toEqual(late.map(() => 'written'))
  expect(await names()).toEqual(Array.from({ length: 10 }, (_, index) => `Late ${index}`))
  expect(troubles).toHaveLength(1)
})

test('a thread that dies again and again holds nobody up', async () => {
  for (let round = 1; round <= 5; round++) {
    expect(await add('Kept')).toBe('written')
    expect(await Promise.all([add(diesBefore), add('Neighbour')])).toEqual(['unavailable', 'unavailable'])
    expect(troubles).toHaveLength(round)
  }
  expect(await names()).toEqual(Array.from({ length: 5 }, () => 'Kept'))
})

test('whoever writes while the thread dies is told what became of their own animal', async () => {
  for (let round = 1; round <= 5; round++) {
    const written: Promise<string | bigint>[] = [add(diesBefore)]
    while (troubles.length < round) {
      written.push(writer.write('createPet', `Animal ${written.length}`, 1n, null).catch(String))
      await new Promise(setImmediate)
    }
    const last = await writer.write('createPet', `Last ${round}`, 1n, null)
    expect((await stores.pets.get(last))?.name).toBe(`Last ${round}`)
    for (const [index, id] of (await Promise.all(written)).entries()) {
      if (typeof id === 'bigint') expect((await stores.pets.get(id))?.name).toBe(`Animal ${index}`)
    }
  }
})

test('an animal kept by a thread that died before saying so is not doubled by sending its Idempotency-Key again', async () => {
  const once = { scope: 'test', key: 'one', at: new Date() }
  const create = () => writer.write('createPetOnce', animal('Rex'), once)
  expect(await add('First')).toBe('written')
  const unanswered = [outcomeOf(create()), add(diesAfter)]
  expect(await Promise.all(unanswered)).toEqual(['unavailable', 'unavailable'])
  expect(await create()).toMatchObject({ outcome: 'replayed', pet: { id: 2n, name: 'Rex' } })
  expect(await names()).toEqual(['First', 'Rex', diesAfter])
})

test('a write that is refused fails alone: its neighbours in the same transaction are kept', async () => {
  const { record } = issueApiKey({ name: 'test', permission: 'read-write', createdAt: new Date() })
  expect(await outcomeOf(writer.write('createKey', record))).toBe('written')
  // Sent in one turn, these three are committed together.
  const together = [add('Before'), outcomeOf(writer.write('createKey', record)), add('After')]
  expect(await Promise.all(together)).toEqual(['written', expect.stringContaining('UNIQUE'), 'written'])
  expect(await names()).toEqual(['Before', 'After'])
  expect(await stores.keys.list()).toHaveLength(1)
  expect(troubles).toEqual([])
})

test('so does an animal that is refused, or whose Idempotency-Key is, and nothing of it stays', async () => {
  const before = add('Before')
  const wrongStatus = outcomeOf(writer.write('createPet', 'Refused', 1n, 'lost' as PetStatus))
  // The animal is in the table by the time its key is refused.
  const wrongKey = { scope: null as unknown as string, key: 'k', at: new Date() }
  const refusedOnce = outcomeOf(writer.write('createPetOnce', animal('Refused'), wrongKey))
  expect(await Promise.all([before, wrongStatus, refusedOnce, add('After')])).toEqual([
    'written',
    expect.stringContaining('CHECK'),
    expect.stringContaining('NOT NULL'),
    'written',
  ])
  expect(await names()).toEqual(['Before', 'After'])
})

test('why a thread failed is told in one line', async () => {
  const module = join(folder.path, 'failing-thread.ts')
  writeFileSync(module, "addEventListener('message', () => { throw new TypeError('out of luck') })\n")
  const file = join(folder.path, 'pets.db')
  const failing = new Writer<Writes>(file, new DamageGuard(), message => troubles.push(message), pathToFileURL(module))
  expect(await outcomeOf(failing.write('createPet', 'Rex', 1n, null))).toBe('unavailable')
  await failing.close()
  expect(troubles[0]).toBe('The writer thread failed: TypeError: out of luck')
})

test('more writes than may wait are refused at once, and all the others are made', async () => {
  const surplus = 20
  let settled = 0
  const outcomes = Array.from({ length: writesWaitingMax + surplus }, async (_, index) => {
    const outcome = await add(`Animal ${index}`)
    settled += 1
    return { outcome, place: settled }
  })
  const made = await Promise.all(outcomes.slice(0, writesWaitingMax))
  const refused = await Promise.all(outcomes.slice(writesWaitingMax))
  expect(made.filter(({ outcome }) => outcome !== 'written')).toEqual([])
  expect(refused.filter(({ outcome }) => outcome !== 'unavailable')).toEqual([])
  expect(Math.max(...refused.map(({ place }) => place))).toBe(surplus)
  expect((await stores.pets.list({ limit: writesWaitingMax * 2 })).pets).toHaveLength(writesWaitingMax)
  expect(await add('And one more')).toBe('written')
})

test('closing commits what is waiting, and takes nothing more', async () => {
  const waiting = Array.from({ length: 50 }, (_, index) => add(`Animal ${index}`))
  const closed = writer.close()
  const late = add('Too late')
  await closed
  expect(writer.activity().writesWaiting).toBe(0)
  expect(await late).toBe('unavailable')
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'written'))
  expect(await names()).toHaveLength(50)
  await writer.close()
  expect(await add('Later still')).toBe('unavailable')
  expect(troubles).toEqual([])
})

test('a thread that dies while it closes leaves nobody waiting', async () => {
  const waiting = [add('Rex'), add(diesBefore)]
  await writer.close()
  expect(await Promise.all(waiting)).toEqual(['unavailable', 'unavailable'])
  expect(await names()).toEqual([])
})

test('a write is not acknowledged once a reader has found the file damaged', async () => {
  const writing = add('Rex')
  guard.note(new StoreDamaged('SQLite: SQLITE_CORRUPT'))
  expect(await writing).toBe('unavailable')
  expect(await add('Tom')).toBe('unavailable')
  await writer.close()
  expect(await names()).not.toContain('Tom')
})
