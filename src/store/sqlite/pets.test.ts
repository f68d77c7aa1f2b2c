import { expect, spyOn, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../../test/support/process.ts'
import { issueApiKey } from '../../api-key.ts'
import { StoreDamaged } from '../../errors.ts'
import { type PetStatus, petStatuses } from '../../pet.ts'
import { DamageGuard } from './errors.ts'
import { openSqlite } from './open.ts'
import { createSqlitePets } from './pets.ts'
import { connect } from './schema.ts'
import { Writer } from './writer.ts'

async function newStore() {
  await using stack = new AsyncDisposableStack()
  const file = join(stack.use(temporaryFolder()).path, 'pets.db')
  const stores = openSqlite(file, { create: true })
  stack.defer(() => stores.close())
  const writer = { commits: 0, write: () => Promise.reject(new Error('no test writes with this writer')) }
  const reading = stack.use(connect(file, 'readonly'))
  const guard = new DamageGuard()
  const pets = createSqlitePets(reading, guard, writer)
  return Object.assign(stack.move(), {
    ...{ file, stores, writer, reading, pets },
    changeByAnotherProcess() {
      using other = connect(file, 'readwrite')
      other.run("INSERT INTO pets (name, category_id) VALUES ('Rex', 1)")
    },
  })
}

const rex = { name: 'Rex', categoryId: 1n }

test('a commit shows at once, but in a first page that was read before, one of another process 0.1 ms later', async () => {
  using clock = spyOn(performance, 'now').mockReturnValue(10_000)
  await using store = await newStore()
  const countListed = async () => (await store.pets.list({ limit: 9 })).pets.length
  expect(await countListed()).toBe(0)
  store.changeByAnotherProcess()
  expect([await countListed(), await store.pets.get(1n)]).toEqual([0, { ...rex, id: 1n }])
  clock.mockReturnValue(10_000.1)
  expect(await countListed()).toBe(1)
  store.changeByAnotherProcess()
  store.writer.commits++
  expect(await countListed()).toBe(2)
})

test('a first page is read once for equal requests, until something is committed; at most 64 are kept', async () => {
  using clock = spyOn(performance, 'now').mockReturnValue(10_000)
  await using store = await newStore()
  const requests = [{ limit: 1 }, { limit: 2 }, ...petStatuses.map(status => ({ limit: 1, status }))]
  const list = async () => new Set(await Promise.all(requests.map(request => store.pets.list(request))))
  const before = await list()
  expect(before.size).toBe(requests.length)
  expect(before.isSupersetOf(await list())).toBe(true)
  store.changeByAnotherProcess()
  clock.mockReturnValue(10_000.1)
  expect(before.isDisjointFrom(await list())).toBe(true)
  const first = () => store.pets.list({ limit: 1 })
  const kept = await first()
  for (let limit = 3; limit <= 61; limit++) await store.pets.list({ limit })
  expect(await first()).toBe(kept)
  await store.pets.list({ limit: 62 })
  expect(await first()).not.toBe(kept)
})

test('the write-ahead log is gone when a store is closed', async () => {
  await using store = await newStore()
  store.changeByAnotherProcess()
  await store.pets.list({ limit: 9 })
  store.reading.close()
  await store.stores.close()
  expect(existsSync(`${store.file}-wal`)).toBe(false)
})

/** A writer for this store. */
function startWriter({ file }: { readonly file: string }) {
  const guard = new DamageGuard()
  const writer = new Writer(file, guard)
  return { guard, writer, [Symbol.asyncDispose]: () => writer.close() }
}

const outcomeOf = (write: Promise<unknown>) => write.then(() => 'written', String)

test('a write that is refused fails alone and leaves nothing: its neighbours in the same transaction are stored', async () => {
  await using store = await newStore()
  await using started = startWriter(store)
  const { writer } = started
  const { record } = issueApiKey({ name: 'test', permission: 'read-write', createdAt: new Date() })
  // The animal is in the table by the time its Idempotency-Key is refused.
  const wrongKey = { scope: null as unknown as string, key: 'k', at: new Date() }
  const together = [
    writer.write('createKey', record),
    writer.write('createKey', record),
    writer.write('createPet', { ...rex, status: 'lost' as PetStatus }),
    writer.write('createPetOnce', rex, wrongKey),
    writer.write('createPet', { ...rex, name: 'After' }),
  ]
  const refusals = ['UNIQUE', 'CHECK', 'NOT NULL'].map(text => expect.stringContaining(text))
  expect(await Promise.all(together.map(outcomeOf))).toEqual(['written', ...refusals, 'written'])
  expect((await store.stores.pets.list({ limit: 9 })).pets).toMatchObject([{ name: 'After' }])
  expect(await store.stores.keys.list()).toHaveLength(1)
})

test('a write is not acknowledged once a reader has found the file damaged', async () => {
  await using store = await newStore()
  await using started = startWriter(store)
  const writing = started.writer.write('createPet', rex)
  started.guard.note(new StoreDamaged('SQLite: SQLITE_CORRUPT'))
  const writes = [writing, started.writer.write('createPet', rex)].map(outcomeOf)
  const damaged = expect.stringContaining('SQLITE_CORRUPT')
  expect(await Promise.all(writes)).toEqual([damaged, damaged])
})

test('a writer counts its commit before the write resolves, and may be closed while it starts', async () => {
  await using store = await newStore()
  await using started = startWriter(store)
  const first = started.writer.start()
  expect(await started.writer.write('createPet', rex)).toBe(1n)
  expect(started.writer.commits).toBe(1)
  await first
  const starting = store.stores.startWriting()
  await store.stores.close()
  await starting
})
