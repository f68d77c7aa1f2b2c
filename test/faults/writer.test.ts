import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { issueApiKey } from '../../src/api-key.ts'
import { StoreDamaged, StoreUnavailable } from '../../src/errors.ts'
import type { PetStatus } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import { DamageGuard } from '../../src/store/sqlite/errors.ts'
import { Writer } from '../../src/store/sqlite/writer.ts'
import type { Stores } from '../../src/store-contract.ts'
import { temporaryFolder } from '../support/process.ts'

let folder: ReturnType<typeof temporaryFolder>
/** Beside the writer: it has made the file, and it reads. */
let stores: Stores
let writer: Writer
let guard: DamageGuard

beforeEach(async () => {
  folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  stores = await openStores(`sqlite:${file}`, { create: true })
  guard = new DamageGuard()
  writer = new Writer(file, guard)
})

afterEach(async () => {
  await writer.close()
  await stores.close()
  folder[Symbol.dispose]()
})

const add = (name: string) => outcomeOf(writer.write('createPet', { name, categoryId: 9007199254740993n }))
/** Writes that are sent at once. */
const addMany = (count: number, name: string) => Array.from({ length: count }, (_, index) => add(`${name} ${index}`))

/** What became of it, in a word. */
const outcomeOf = (write: Promise<unknown>): Promise<string> =>
  write.then(() => 'written').catch(error => (error instanceof StoreUnavailable ? 'unavailable' : String(error)))

const expectAll = async (writes: readonly Promise<string>[], outcome: string) =>
  expect(await Promise.all(writes)).toEqual(writes.map(() => outcome))

async function names(): Promise<readonly string[]> {
  return (await stores.pets.list({ limit: 1_000 })).pets.map(({ name }) => name)
}

test('a write that is refused fails alone and leaves nothing: its neighbours in the same transaction are stored', async () => {
  const { record } = issueApiKey({ name: 'test', permission: 'read-write', createdAt: new Date() })
  expect(await outcomeOf(writer.write('createKey', record))).toBe('written')
  // The animal is in the table by the time its Idempotency-Key is refused.
  const wrongKey = { scope: null as unknown as string, key: 'k', at: new Date() }
  // Sent in one tick, these are committed together.
  const together = [
    add('Before'),
    outcomeOf(writer.write('createKey', record)),
    outcomeOf(writer.write('createPet', { name: 'Refused', categoryId: 1n, status: 'lost' as PetStatus })),
    outcomeOf(writer.write('createPetOnce', { name: 'Refused', categoryId: 7n }, wrongKey)),
    add('After'),
  ]
  const refusals = ['UNIQUE', 'CHECK', 'NOT NULL'].map(text => expect.stringContaining(text))
  expect(await Promise.all(together)).toEqual(['written', ...refusals, 'written'])
  expect(await names()).toEqual(['Before', 'After'])
  expect(await stores.keys.list()).toHaveLength(1)
})

test('closing commits what is waiting, and takes nothing more', async () => {
  const waiting = addMany(50, 'Animal')
  const closed = writer.close()
  const late = add('Too late')
  await closed
  expect(writer.writesWaiting).toBe(0)
  expect(await late).toBe('unavailable')
  await expectAll(waiting, 'written')
  expect(await names()).toHaveLength(50)
  await writer.close()
  expect(await add('Later still')).toBe('unavailable')
})

test('a write is not acknowledged once a reader has found the file damaged', async () => {
  const writing = add('Rex')
  guard.note(new StoreDamaged('SQLite: SQLITE_CORRUPT'))
  expect(await writing).toBe('unavailable')
  expect(await add('Tom')).toBe('unavailable')
  await writer.close()
  expect(await names()).not.toContain('Tom')
})
