import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DamageGuard } from './errors.ts'
import { openSqlite } from './open.ts'
import { createSqlitePets } from './pets.ts'
import { connect } from './schema.ts'
import { Writer, WriterThread } from './writer.ts'
import type { Writes } from './writer-thread.ts'

async function newStore() {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'petstore-version-'))
  stack.defer(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'pets.db')
  const stores = openSqlite(file, { create: true })
  stack.defer(() => stores.close())
  const writer = { commits: 0, write: () => Promise.reject(new Error('not used')) }
  const pets = createSqlitePets(stack.use(connect(file, 'readonly')), writer, new DamageGuard())
  const owned = stack.move()
  return {
    ...{ file, stores, writer },
    version: () => pets.version?.(),
    changeByAnotherProcess() {
      using other = connect(file, 'readwrite')
      other.run("INSERT INTO pets (name, category_id) VALUES ('Rex', 1)")
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

const nextTick = () => new Promise(setImmediate)

test('the file is asked once in an event-loop tick: a change by another process shows in the next one', async () => {
  await using store = await newStore()
  const before = store.version()
  expect(before).toBeDefined()
  await nextTick()
  expect(store.version()).toBe(before)
  store.changeByAnotherProcess()
  expect(store.version()).toBe(before)
  await nextTick()
  const after = store.version()
  expect(after).not.toBe(before)
  // A commit of our own writer shows in the same tick.
  store.changeByAnotherProcess()
  store.writer.commits++
  expect(store.version()).not.toBe(after)
})

test('a writer counts its commit before the write resolves', async () => {
  await using store = await newStore()
  const thread = new WriterThread(store.file)
  const writer = new Writer<Writes>({ commits: thread.commits })
  thread.connect(writer.connect)
  await thread.start()
  await writer.write('createPet', 'Rex', 1n, null)
  expect(writer.commits).toBe(1)
  await writer.close()
  await thread.close()
})

test('the writer thread may be started early and awaited later, or be closed while it starts', async () => {
  await using store = await newStore()
  const starting = store.stores.startWriting()
  await store.stores.close()
  await starting
  const missing = new WriterThread(store.file, () => {}, new URL('file:///no/such/thread.ts'))
  const failing = missing.start()
  expect(await failing).toBeUndefined()
  await missing.close()
})
