import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import {
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { StoreUnavailable } from '../../src/errors.ts'
import { writeMsMax } from '../../src/store/commit-queue.ts'
import { openStores } from '../../src/store/open.ts'
import { openSqlite } from '../../src/store/sqlite/open.ts'
import { statements } from '../../src/store/sqlite/pets.ts'
import { openSqliteRestore } from '../../src/store/sqlite/restore.ts'
import { migrations } from '../../src/store/sqlite/schema.ts'
import { advance, eventually, standingClock } from '../support/clock.ts'
import { createKey, memoryFolder, temporaryFolder } from '../support/process.ts'
import { closing, failureOf, rex } from './stores.ts'

let folder: ReturnType<typeof temporaryFolder>
let file: string
beforeEach(() => {
  folder = temporaryFolder(memoryFolder)
  file = join(folder.path, 'pets.db')
})
afterEach(() => folder[Symbol.dispose]())

const opened = (path = file, create = true) => openStores(`sqlite:${path}`, { create })

/** The first column of the first row. */
function valueIn(sql: string): unknown {
  using database = new Database(file, { readonly: true, safeIntegers: true })
  return database.query(sql).values()[0]?.[0]
}

function change(sql: string): void {
  using database = new Database(file)
  database.run(sql)
}

/** The step of a made-up next version. */
const colours = 'ALTER TABLE pets ADD COLUMN colour TEXT'

test('a creation waits for the lock of another process as long as a write may, and is refused with nothing stored', async () => {
  using _ = standingClock()
  await using stores = closing(await opened())
  await stores.startWriting()
  using other = new Database(file)
  other.run('BEGIN IMMEDIATE')
  using sent = spyOn(Worker.prototype, 'postMessage')
  const refused = failureOf(() => stores.pets.create(rex))
  await eventually('a second attempt', () => sent.mock.calls.length > 1 || undefined)
  await advance(writeMsMax - 1)
  const waiting = stores.pets.create({ ...rex, name: 'Tom' })
  await advance(1)
  expect(await refused).toBeInstanceOf(StoreUnavailable)
  other.run('ROLLBACK')
  expect(await waiting).toMatchObject({ name: 'Tom', id: 1n })
})

test('it has our application id, version 1 and WAL mode', async () => {
  const stores = await opened()
  expect(stores.newStorePath).toBe(file)
  await stores.close()
  expect(valueIn('PRAGMA application_id')).toBe(0x70657473n)
  expect(valueIn('PRAGMA user_version')).toBe(1n)
  expect(valueIn('PRAGMA journal_mode')).toBe('wal')
  const again = await opened()
  expect(again).not.toHaveProperty('newStorePath')
  await again.close()
})

test('only its owner may read it', async () => {
  const deep = join(folder.path, 'deep', 'er', 'pets.db')
  const stores = await opened(deep)
  await stores.pets.create(rex)
  const modes = [deep, `${deep}-wal`, `${deep}-shm`].map(path => statSync(path).mode & 0o777)
  await stores.close()
  expect(modes).toEqual([0o600, 0o600, 0o600])
})

test('a write is refused, not lost, if the file was moved or replaced', async () => {
  await using stores = closing(await opened())
  const add = async () => (await stores.pets.create(rex)).id
  const isWritable = () => stores.activity().isWritable
  expect([await add(), isWritable()]).toEqual([1n, true])
  renameSync(file, `${file}.moved`)
  // Nothing is there, a loop of links, which cannot even be looked at, or another file.
  for (const replace of [() => {}, () => symlinkSync(file, file), () => writeFileSync(file, '')]) {
    rmSync(file, { force: true })
    replace()
    expect(isWritable()).toBe(false)
    expect(await failureOf(add)).toBeInstanceOf(StoreUnavailable)
  }
  expect((await stores.pets.list({ limit: 5 })).pets).toHaveLength(1)
  renameSync(`${file}.moved`, file)
  // A write without a change says nothing.
  expect(await stores.keys.revoke(99n, new Date())).toBe(false)
  expect(isWritable()).toBe(false)
  expect([await add(), isWritable()]).toEqual([2n, true])
})

test('a file that is missing, of another program, a folder or not a database is refused', async () => {
  const refusal = (path = file, create = true) => failureOf(() => opened(path, create))
  expect(await refusal(file, false)).toMatchObject({ problem: 'no-file' })
  expect(String(await refusal(folder.path))).toContain('not a regular file')
  change('CREATE TABLE invoices (id INTEGER PRIMARY KEY)')
  const theirs = readFileSync(file)
  expect(String(await refusal())).toContain('another program')
  expect(readFileSync(file).equals(theirs)).toBe(true)
  change('PRAGMA application_id = 0x70657473; PRAGMA user_version = -1')
  expect(String(await refusal())).toContain('schema version -1')
  writeFileSync(file, 'These are my notes, and they are quite long. '.repeat(100))
  expect(String(await refusal())).toContain('not an SQLite database')
})

test('a migration that fails leaves the file at the version before', async () => {
  await (await opened()).close()
  const failing = 'CREATE TABLE toys (id INTEGER PRIMARY KEY); CREATE TABLE pets (id INTEGER PRIMARY KEY)'
  expect(() => openSqlite(file, { create: false }, [...migrations, failing])).toThrow(/pets already exists/)
  expect(valueIn('PRAGMA user_version')).toBe(1n)
  expect(valueIn("SELECT count(*) FROM sqlite_schema WHERE name = 'toys'")).toBe(0n)
})

test('a backup of a lower schema version is restored', async () => {
  const stores = await opened()
  await stores.pets.create(rex)
  await stores.close()
  const other = join(folder.path, 'other.db')
  using restore = await openSqliteRestore(other, file, [...migrations, colours])
  await restore.run(() => {}, new AbortController().signal)
  const upgraded = openSqlite(other, { create: false }, [...migrations, colours])
  expect((await upgraded.pets.list({ limit: 5 })).pets).toEqual([{ ...rex, id: 1n }])
  await upgraded.close()
})

test('a server continues beside one of a made-up next version, but cannot start again', async () => {
  const stores = await opened()
  const upgraded = openSqlite(file, { create: false }, [...migrations, colours])
  expect((await stores.pets.create(rex)).id).toBe(1n)
  expect(await upgraded.pets.create(rex)).toEqual({ ...rex, id: 2n })
  expect((await stores.pets.list({ limit: 5 })).pets).toHaveLength(2)
  await Promise.all([stores.close(), upgraded.close()])
  expect(valueIn('SELECT count(*) - count(colour) FROM pets')).toBe(2n)
  expect(() => opened()).toThrow(/schema version 2, .* up to 1$/)
})

test('eight processes that open a new file at once migrate it once', async () => {
  const url = `sqlite:${file}`
  const creating = Array.from({ length: 8 }, () => createKey(folder.path, 'till', '--database-url', url))
  expect(new Set(await Promise.all(creating)).size).toBe(8)
  expect(valueIn('SELECT count(*) FROM api_keys')).toBe(8n)
})

test.each<[string, string, string]>([
  ['a page of all animals', statements.list, 'USING INTEGER PRIMARY KEY (rowid>?)'],
  ['a page of one status', statements.listByStatus, 'USING INDEX pets_by_status (status=? AND rowid>?)'],
  ['one animal', statements.get, 'USING INTEGER PRIMARY KEY (rowid=?)'],
])('%s is read from an index without a sort', async (_, statement, plan) => {
  await (await opened()).close()
  using database = new Database(file, { readonly: true })
  const steps = database.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${statement}`).all()
  expect(steps.map(({ detail }) => detail)).toEqual([`SEARCH pets ${plan}`])
})

test('an import changes nothing if the file is moved meanwhile', async () => {
  const stores = await opened()
  async function* moving() {
    yield [rex]
    renameSync(file, `${file}.moved`)
  }
  expect(await failureOf(() => stores.transfer.load(moving(), 'new'))).toBeInstanceOf(StoreUnavailable)
  renameSync(`${file}.moved`, file)
  expect(await stores.transfer.estimate()).toBe(0)
  await stores.close()
  expect(readdirSync(folder.path)).toEqual(['pets.db'])
})

test('a restore changes nothing if the backup is changed meanwhile', async () => {
  const stores = await opened()
  await stores.pets.create(rex)
  await stores.close()
  const backup = join(folder.path, 'backup.db')
  copyFileSync(file, backup)
  change("UPDATE pets SET name = 'Tom'")
  using restore = await openSqliteRestore(file, backup)
  utimesSync(backup, 0, 0)
  const restoring = restore.run(() => {}, new AbortController().signal)
  expect(await restoring.catch(error => error)).toMatchObject({ problem: 'temporary' })
  expect(valueIn('SELECT name FROM pets')).toBe('Tom')
})
