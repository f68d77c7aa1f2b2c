import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { issueApiKey } from '../../src/api-key.ts'
import { StoreDamaged, StoreUnavailable } from '../../src/errors.ts'
import type { PetStatus } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import { DamageGuard } from '../../src/store/sqlite/errors.ts'
import { Writer } from '../../src/store/sqlite/writer.ts'
import type { Stores } from '../../src/store.ts'
import { temporaryFolder, until } from '../support/process.ts'
import { diesAfter, diesBefore } from './dying-writer-thread.ts'

let folder: ReturnType<typeof temporaryFolder>
/** Beside the writer: it has made the file, and it reads. */
let stores: Stores
let writer: Writer
let troubles: string[]
let guard: DamageGuard

/** A writer whose thread runs this module. */
function newWriter(module: URL): Writer {
  return new Writer(join(folder.path, 'pets.db'), { guard, onEnd: message => troubles.push(message), module })
}

beforeEach(async () => {
  folder = temporaryFolder()
  stores = await openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true })
  troubles = []
  guard = new DamageGuard()
  writer = newWriter(new URL('./dying-writer-thread.ts', import.meta.url))
})

afterEach(async () => {
  await writer.close()
  await stores.close()
  folder[Symbol.dispose]()
})

const create = (name: string) => writer.write({ type: 'createPet', name, categoryId: 9007199254740993n })
const add = (name: string) => outcomeOf(create(name))
/** Writes that are sent at once. */
const addMany = (count: number, name: string) => numbered(count, name).map(add)
const numbered = (count: number, name: string) => Array.from({ length: count }, (_, index) => `${name} ${index}`)

/** What became of it, in a word. */
const outcomeOf = (write: Promise<unknown>): Promise<string> =>
  write.then(() => 'written').catch(error => (error instanceof StoreUnavailable ? 'unavailable' : String(error)))

const expectAll = async (writes: readonly Promise<string>[], outcome: string) =>
  expect(await Promise.all(writes)).toEqual(writes.map(() => outcome))

async function names(): Promise<readonly string[]> {
  return (await stores.pets.list({ limit: 1_000 })).pets.map(({ name }) => name)
}

test('when the writer thread dies, writes passed to it fail, reads go on, and the next animal is added', async () => {
  expect(await add('Rex')).toBe('written')
  const waiting = [add(diesBefore), ...addMany(15, 'Waiting')]
  const reading = Promise.all([names(), Bun.sleep(1).then(names)])
  await expectAll(waiting, 'unavailable')
  expect(await reading).toEqual([['Rex'], ['Rex']])

  expect(await add('Bella')).toBe('written')
  expect(troubles).toEqual(['The writer thread ended; restarting'])
  expect(await names()).toEqual(['Rex', 'Bella'])
})

test('writes that were not yet passed to a thread that dies are committed by the next one', async () => {
  const early = [add(diesBefore), ...addMany(31, 'Early')]
  // They are passed to the thread at the end of the tick.
  await new Promise(setImmediate)
  const late = addMany(10, 'Late')
  await expectAll(early, 'unavailable')
  await expectAll(late, 'written')
  expect(await names()).toEqual(numbered(10, 'Late'))
  expect(troubles).toHaveLength(1)
})

test('while a thread dies again and again, each client learns the outcome of its own animal', async () => {
  for (let round = 1; round <= 5; round++) {
    const written: Promise<string | bigint>[] = [add(diesBefore)]
    while (troubles.length < round) {
      written.push(create(`Animal ${written.length}`).catch(String))
      await new Promise(setImmediate)
    }
    // The queue is full until another thread has started.
    const last = await until('the next thread', () => create(`Last ${round}`).catch(() => undefined))
    expect((await stores.pets.get(last))?.name).toBe(`Last ${round}`)
    for (const [index, id] of (await Promise.all(written)).entries()) {
      if (typeof id === 'bigint') expect((await stores.pets.get(id))?.name).toBe(`Animal ${index}`)
    }
    expect(troubles).toHaveLength(round)
  }
})

test('an animal stored by a thread that died before it replied is not doubled by sending its Idempotency-Key again', async () => {
  const key = { scope: 'test', key: 'one', at: new Date() }
  const createOnce = () => writer.write({ type: 'createPetOnce', pet: { name: 'Rex', categoryId: 7n }, key })
  expect(await add('First')).toBe('written')
  await expectAll([outcomeOf(createOnce()), add(diesAfter)], 'unavailable')
  expect(await createOnce()).toMatchObject({ outcome: 'replayed', pet: { id: 2n, name: 'Rex' } })
  expect(await names()).toEqual(['First', 'Rex', diesAfter])
})

test('a write that is refused fails alone and leaves nothing: its neighbours in the same transaction are stored', async () => {
  const { record } = issueApiKey({ name: 'test', permission: 'read-write', createdAt: new Date() })
  expect(await outcomeOf(writer.write({ type: 'createKey', key: record }))).toBe('written')
  // The animal is in the table by the time its Idempotency-Key is refused.
  const wrongKey = { scope: null as unknown as string, key: 'k', at: new Date() }
  // Sent in one tick, these are committed together.
  const together = [
    add('Before'),
    outcomeOf(writer.write({ type: 'createKey', key: record })),
    outcomeOf(writer.write({ type: 'createPet', name: 'Refused', categoryId: 1n, status: 'lost' as PetStatus })),
    outcomeOf(writer.write({ type: 'createPetOnce', pet: { name: 'Refused', categoryId: 7n }, key: wrongKey })),
    add('After'),
  ]
  const refusals = ['UNIQUE', 'CHECK', 'NOT NULL'].map(text => expect.stringContaining(text))
  expect(await Promise.all(together)).toEqual(['written', ...refusals, 'written'])
  expect(await names()).toEqual(['Before', 'After'])
  expect(await stores.keys.list()).toHaveLength(1)
  expect(troubles).toEqual([])
})

test('the failure of a thread is reported in one line', async () => {
  const module = join(folder.path, 'failing-thread.ts')
  writeFileSync(module, "addEventListener('message', () => { throw new TypeError('out of luck') })\n")
  const failing = newWriter(pathToFileURL(module))
  expect(await outcomeOf(failing.write({ type: 'createPet', name: 'Rex', categoryId: 1n }))).toBe('unavailable')
  const [trouble] = await until('its end', () => (troubles.length > 0 ? troubles : undefined))
  expect(trouble).toBe('The writer thread ended (TypeError: out of luck); restarting')
  await failing.close()
})

test('closing commits what is waiting, and takes nothing more', async () => {
  const waiting = addMany(50, 'Animal')
  const closed = writer.close()
  const late = add('Too late')
  await closed
  expect(writer.queue.activity().writesWaiting).toBe(0)
  expect(await late).toBe('unavailable')
  await expectAll(waiting, 'written')
  expect(await names()).toHaveLength(50)
  await writer.close()
  expect(await add('Later still')).toBe('unavailable')
  expect(troubles).toEqual([])
})

test('a thread that dies while it closes leaves no write waiting', async () => {
  const waiting = [add('Rex'), add(diesBefore)]
  await writer.close()
  await expectAll(waiting, 'unavailable')
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
