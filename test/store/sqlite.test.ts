import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, spyOn } from 'bun:test'
import { readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueApiKey } from '../../src/api-key.ts'
import { SetupError, StoreUnavailable } from '../../src/errors.ts'
import { backUp, openStores } from '../../src/store/open.ts'
import { openSqlite } from '../../src/store/sqlite/open.ts'
import { statements } from '../../src/store/sqlite/pets.ts'
import { migrations } from '../../src/store/sqlite/schema.ts'
import { Committer } from '../../src/store/sqlite/writer-thread.ts'
import { createKey, memoryFolder, temporaryFolder, until } from '../support/process.ts'
import { petsOf } from '../support/service.ts'
import { test } from '../support/test.ts'
import { batches, closing, describeStoreContract, failureOf, rex } from './contract.ts'

describeStoreContract('SQLite', 'sqlite')

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

describe('SQLite: the file', () => {
  test('it has our application id, its schema version, WAL mode, STRICT tables and exact integers', async () => {
    const stores = await opened()
    expect(stores.newStorePath).toBe(file)
    await stores.pets.create({ name: 'Rex', categoryId: 9223372036854775807n })
    await stores.keys.create(issueApiKey({ name: 'prometheus', permission: 'metrics', createdAt: new Date() }).record)
    await stores.close()
    expect(valueIn('PRAGMA application_id')).toBe(0x50455453n)
    expect(valueIn('PRAGMA user_version')).toBe(4n)
    expect(valueIn('PRAGMA journal_mode')).toBe('wal')
    expect(valueIn("SELECT count(*) FROM pragma_table_list WHERE name IN ('pets', 'api_keys') AND strict = 1")).toBe(2n)
    expect(valueIn("SELECT typeof(category_id) || ' ' || category_id FROM pets")).toBe('integer 9223372036854775807')
    // A metrics key is read-only, too.
    expect(valueIn('SELECT read_only FROM api_keys')).toBe(1n)
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
    const add = async () => stores.pets.create(rex)
    expect((await add()).id).toBe(1n)
    expect(stores.activity()).toMatchObject({ writesWaiting: 0, commitSizes: { sum: 1 } })
    renameSync(file, `${file}.moved`)
    expect(String(await failureOf(add))).toBe(`StoreUnavailable: ${file} was moved, replaced or deleted`)
    expect(petsOf(await stores.pets.list({ limit: 5 }))).toHaveLength(1)
    writeFileSync(file, '')
    expect(await failureOf(add)).toBeInstanceOf(StoreUnavailable)
    renameSync(`${file}.moved`, file)
    expect((await add()).id).toBe(2n)
  })

  test('a batch that has waited behind others waits that much less for a lock', async () => {
    await (await opened()).close()
    const committer = new Committer(file)
    const waitMs = (sentAtMs: number) => {
      expect(committer.commit([{ type: 'createPet', ...rex }], sentAtMs)).not.toHaveProperty('failures')
      return Number(committer.open().database.query('PRAGMA busy_timeout').values()[0]?.[0])
    }
    expect(waitMs(Date.now() + 60_000)).toBe(5_000)
    expect(waitMs(Date.now() - 3_000)).toBeWithin(0, 2_001)
    expect(waitMs(Date.now() - 5_000)).toBe(0)
    committer.close()
  })

  test('a file that is missing, of an older version, of another program, a folder or not a database is refused', async () => {
    expect(() => opened(file, false)).toThrow(
      new SetupError(`There is no store at ${file}: start the server once, or set DATABASE_URL`),
    )
    expect(() => opened(folder.path)).toThrow(/not a regular file; .*\(EISDIR\)$/)
    await (await opened()).close()
    change('PRAGMA user_version = 2')
    expect(() => opened()).toThrow(/schema version 2, .* from 3: export the animals with the program that made it, and/)
    rmSync(file)
    change('CREATE TABLE invoices (id INTEGER PRIMARY KEY)')
    expect(() => opened()).toThrow(/another program/)
    writeFileSync(file, 'These are my notes, and they are quite long. '.repeat(100))
    expect(() => opened()).toThrow(/not an SQLite database/)
  })

  test('one of version 3 keeps its animals, keys and last id, and gets the tables of a new one', async () => {
    change(readFileSync(join(import.meta.dir, 'sqlite-3.sql'), 'utf8'))
    const stores = await opened(file, false)
    expect(petsOf(await stores.pets.list({ limit: 5 })).map(({ name }) => name)).toEqual(['Rex', 'Tom'])
    expect(await stores.keys.list()).toMatchObject([{ name: 'prometheus', permission: 'metrics' }])
    expect((await stores.pets.create(rex)).id).toBe(51n)
    await stores.close()
    const tables = "SELECT group_concat(sql, ';' ORDER BY name) FROM sqlite_schema WHERE sql IS NOT NULL"
    const words = (sql: unknown) => String(sql).replace(/\s/g, '')
    const migrated = [valueIn('PRAGMA user_version'), words(valueIn(tables))]
    rmSync(file)
    await (await opened()).close()
    expect(migrated).toEqual([4n, words(valueIn(tables))])
  })

  test('one of version 3 with a name that POST /pets would refuse is refused, and says what to do', async () => {
    change(readFileSync(join(import.meta.dir, 'sqlite-3.sql'), 'utf8'))
    change("UPDATE pets SET name = ' ' WHERE id = 2")
    expect(() => opened()).toThrow(/an animal in it has a name that POST \/pets would refuse; correct the name by SQL/)
    change("UPDATE pets SET name = 'Tom' WHERE id = 2")
    await (await opened()).close()
  })

  test('a migration that fails leaves the file at the version before', () => {
    change('PRAGMA application_id = 0x50455453')
    change('CREATE TABLE api_keys (id INTEGER PRIMARY KEY)')
    expect(() => opened()).toThrow()
    expect(valueIn('PRAGMA user_version')).toBe(0n)
    expect(valueIn("SELECT count(*) FROM sqlite_schema WHERE name = 'pets'")).toBe(0n)
  })

  test('a server continues beside one of a made-up next version, but cannot start again', async () => {
    const next = { version: 5, sql: 'ALTER TABLE pets ADD COLUMN colour TEXT' }
    const stores = await opened()
    const upgraded = openSqlite(file, { create: false }, [...migrations, next])
    expect((await stores.pets.create(rex)).id).toBe(1n)
    expect(await upgraded.pets.create(rex)).toEqual({ ...rex, id: 2n })
    expect(petsOf(await stores.pets.list({ limit: 5 }))).toHaveLength(2)
    await Promise.all([stores.close(), upgraded.close()])
    expect(valueIn('SELECT count(*) - count(colour) FROM pets')).toBe(2n)
    expect(() => opened()).toThrow(/schema version 5, .* up to 4: upgrade the program$/)
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
})

test('a backup reports how much of it is done every 100 ms, and counts the animals', async () => {
  await (await opened()).close()
  change(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
    INSERT INTO pets (name, category_id) SELECT 'An animal with quite a long name, number ' || i, i FROM n`)
  const copy = join(folder.path, 'copy.db')
  writeFileSync(copy, '')
  const done: number[] = []
  const report = (fraction: number) => void done.push(fraction)
  using timers = spyOn(globalThis, 'setInterval')
  using cleared = spyOn(globalThis, 'clearInterval')
  const copying = backUp(`sqlite:${file}`, copy, report, new AbortController().signal)
  const [showProgress, everyMs] = await until('a timer', () => timers.mock.calls[0])
  showProgress()
  expect([everyMs, await copying]).toEqual([100, 5_000n])
  expect(cleared).toHaveBeenCalledWith(timers.mock.results[0]?.value)
  showProgress()
  expect(done.at(-1)).toBe(Math.min(0.99, statSync(copy).size / statSync(file).size))
  expect(done).toEqual(done.toSorted((a, b) => a - b))
  truncateSync(copy, statSync(file).size / 2)
  showProgress()
  expect(done.at(-1)).toBe(0.5)
})

describe('SQLite: import', () => {
  test('ids of animals that were deleted by hand are not assigned again', async () => {
    await using stores = closing(await opened())
    await stores.transfer.load(batches([{ ...rex, id: 50n }]), 'keep')
    change('DELETE FROM pets')
    await stores.transfer.load(batches([{ ...rex, id: 7n }]), 'keep')
    expect((await stores.pets.create(rex)).id).toBe(51n)
  })

  test('it is refused if too few ids are left, and nothing changes', async () => {
    await using stores = closing(await opened())
    await stores.pets.create(rex)
    change('UPDATE sqlite_sequence SET seq = 9223372036854775806')
    const refused = await failureOf(() => stores.transfer.load(batches([rex, rex]), 'new'))
    expect(refused).toBeInstanceOf(SetupError)
    expect(String(refused)).toMatch(/Cannot assign 2 new ids: .* up to 9223372036854775806,/)
    expect(await stores.transfer.estimate()).toBe(1)
    expect(await stores.transfer.load(batches([rex]), 'new')).toBe(1n)
  })

  test('it can be interrupted while the animals are inserted', async () => {
    await using stores = closing(await opened())
    const interruption = new AbortController()
    async function* interrupted() {
      yield Array.from({ length: 50_000 }, () => rex)
      setImmediate(() => interruption.abort(new Error('Ctrl-C')))
    }
    const loaded = await stores.transfer.load(interrupted(), 'new', interruption.signal).catch(error => error)
    expect(loaded).toBe(interruption.signal.reason)
    expect(await stores.transfer.estimate()).toBe(0)
    expect((await stores.pets.create(rex)).id).toBe(1n)
  })

  test('it changes nothing if the file is moved meanwhile', async () => {
    const stores = await opened()
    async function* moving() {
      yield [rex]
      renameSync(file, `${file}.moved`)
    }
    expect(await stores.transfer.load(moving(), 'new').catch(error => error)).toBeInstanceOf(StoreUnavailable)
    renameSync(`${file}.moved`, file)
    expect(await stores.transfer.estimate()).toBe(0)
    await stores.close()
    expect(readdirSync(folder.path)).toEqual(['pets.db'])
  })
})
