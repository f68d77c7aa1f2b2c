import { afterEach, beforeEach, expect, type Mock, spyOn, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../../test/support/process.ts'
import { issueApiKey } from '../../api-key.ts'
import { StoreDamaged } from '../../errors.ts'
import type { Page } from '../../page.ts'
import { type PetStatus, petStatuses } from '../../pet.ts'
import { DamageGuard } from './errors.ts'
import { createSqliteKeys } from './keys.ts'
import { openSqlite } from './open.ts'
import { createSqlitePets } from './pets.ts'
import { connect } from './schema.ts'
import { Writer } from './writer.ts'

let nowMs: number
let clock: Mock<typeof performance.now>
beforeEach(() => {
  nowMs = 10_000
  clock = spyOn(performance, 'now').mockImplementation(() => nowMs)
})
afterEach(() => clock.mockRestore())

const unexpected = () => Promise.reject(new Error('no test writes with this writer'))

async function newStore() {
  await using stack = new AsyncDisposableStack()
  const file = join(stack.use(temporaryFolder()).path, 'pets.db')
  const stores = openSqlite(file, { create: true })
  stack.defer(() => stores.close())
  const writer = { commits: 0, write: unexpected }
  const reading = stack.use(connect(file, 'readonly'))
  const guard = new DamageGuard()
  const pets = createSqlitePets(reading, guard, writer)
  const keys = createSqliteKeys(reading, guard, writer)
  return Object.assign(stack.move(), {
    ...{ file, stores, writer, reading, pets, keys },
    /** What a reader can see, each asked for on its own. */
    seen: async () => ({ listed: await pets.list({ limit: 9 }), got: await pets.get(2n) }),
    changeByAnotherProcess(sql = "INSERT INTO pets (name, category_id) VALUES ('Rex', 1)") {
      using other = connect(file, 'readwrite')
      other.run(sql)
    },
  })
}

test('a change by another process shows at once, in a first page 0.1 ms later', async () => {
  await using store = await newStore()
  await store.seen()
  store.changeByAnotherProcess()
  store.changeByAnotherProcess()
  expect(await store.seen()).toMatchObject({ listed: { pets: [] }, got: { id: 2n } })
  nowMs += 0.1
  expect(await store.seen()).toMatchObject({ listed: { pets: [{ id: 1n }, { id: 2n }] } })
})

test('a commit of our own writer shows in a first page at once', async () => {
  await using store = await newStore()
  expect((await store.seen()).listed.pets).toEqual([])
  store.changeByAnotherProcess()
  store.writer.commits++
  expect((await store.seen()).listed.pets).toMatchObject([{ id: 1n }])
})

test('a first page is the same object for equal requests, until something is committed', async () => {
  await using store = await newStore()
  const requests = [{ limit: 2 }, { limit: 3 }, ...petStatuses.map(status => ({ limit: 2, status }))]
  const list = () => Promise.all(requests.map(request => store.pets.list(request)))
  const before = await list()
  expect(new Set(before).size).toBe(requests.length)
  const again = await list()
  for (const [index, page] of again.entries()) expect(page).toBe(before[index] as Page)
  store.changeByAnotherProcess()
  nowMs += 0.1
  for (const [index, page] of (await list()).entries()) expect(page).not.toBe(before[index] as Page)
  const next = () => store.pets.list({ limit: 2, after: 0n })
  expect(await next()).not.toBe(await next())
})

test('at most 64 first pages are kept', async () => {
  await using store = await newStore()
  const list = (limit: number) => store.pets.list({ limit })
  const first = await list(1)
  for (let limit = 2; limit <= 64; limit++) await list(limit)
  expect(await list(1)).toBe(first)
  await list(65)
  expect(await list(1)).not.toBe(first)
})

test('a key that another process revokes shows at once', async () => {
  await using store = await newStore()
  const { record } = issueApiKey({ name: 'till', permission: 'read-only', createdAt: new Date() })
  await store.stores.keys.create(record)
  expect((await store.keys.find(record.hash))?.revokedAt).toBeUndefined()
  store.changeByAnotherProcess('UPDATE api_keys SET revoked_at_ms = 1')
  expect(await store.keys.find(record.hash)).toHaveProperty('revokedAt', new Date(1))
  expect(await store.keys.list()).toMatchObject([{ revokedAt: new Date(1) }])
})

test('the write-ahead log is gone when a store is closed', async () => {
  await using store = await newStore()
  store.changeByAnotherProcess()
  await store.seen()
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
const rex = { name: 'Rex', categoryId: 1n }

test('a writer counts its commit before the write resolves', async () => {
  await using store = await newStore()
  await using started = startWriter(store)
  await started.writer.write('createPet', rex)
  expect(started.writer.commits).toBe(1)
})

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

test('the writer thread may be started early and awaited later, or be closed while it starts', async () => {
  await using store = await newStore()
  await using started = startWriter(store)
  const first = started.writer.start()
  expect(await started.writer.write('createPet', rex)).toBe(1n)
  await first
  const starting = store.stores.startWriting()
  await store.stores.close()
  await starting
})
