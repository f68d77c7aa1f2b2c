import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueApiKey } from '../../src/api-key.ts'
import { SetupError, StoreUnavailable } from '../../src/errors.ts'
import { openStores } from '../../src/store/open.ts'
import { statements } from '../../src/store/sqlite/pets.ts'
import { migrations } from '../../src/store/sqlite/schema.ts'
import { temporaryFolder } from '../support/folder.ts'
import { describeStoreContract, type StoreUnderTest } from './contract.ts'
import { openAtOnce } from './open-at-once.ts'
import { describeTransferContract } from './transfer-contract.ts'

async function sqliteUnderTest(): Promise<StoreUnderTest> {
  const folder = temporaryFolder()
  return {
    open: async () => openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true }),
    async [Symbol.asyncDispose]() {
      folder[Symbol.dispose]()
    },
  }
}

describeStoreContract('SQLite', sqliteUnderTest)
describeTransferContract('SQLite', sqliteUnderTest)

describe('SQLite: the file', () => {
  const opened = (file: string, create = true) => openStores(`sqlite:${file}`, { create })

  test('integers live exactly in the file', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    const stores = await opened(file)
    await stores.pets.create({ name: 'Rex', categoryId: 9223372036854775807n })
    await stores.close()
    using database = new Database(file, { readonly: true })
    const row = database
      .query('SELECT typeof(category_id) AS type, CAST(category_id AS TEXT) AS digits FROM pets')
      .get()
    expect(row).toEqual({ type: 'integer', digits: '9223372036854775807' })
  })

  test('it carries our application id and its schema version, in WAL mode with STRICT tables', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    await (await opened(file)).close()
    using database = new Database(file, { readonly: true })
    const value = (sql: string) => database.query(sql).values()[0]?.[0]
    expect(value('PRAGMA application_id')).toBe(0x50455453)
    expect(value('PRAGMA user_version')).toBe(migrations.length)
    expect(value('PRAGMA journal_mode')).toBe('wal')
    expect(
      value("SELECT count(*) FROM pragma_table_list WHERE name IN ('pets', 'api_keys') AND strict = 1"),
    ).toBe(2)
  })

  test('a metrics key is stored as read-only too: an instance of the version before never lets it write', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    const stores = await opened(file)
    await stores.keys.create(
      issueApiKey({ name: 'prometheus', permission: 'metrics', createdAt: new Date() }).record,
    )
    await stores.close()
    using database = new Database(file, { readonly: true })
    expect(database.query('SELECT read_only FROM api_keys').all()).toEqual([{ read_only: 1 }])
  })

  test('only its owner may read it', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'deep', 'er', 'pets.db')
    const stores = await opened(file)
    await stores.pets.create({ name: 'Rex', categoryId: 1n })
    const modes = [file, `${file}-wal`, `${file}-shm`].map(path => statSync(path).mode & 0o777)
    await stores.close()
    expect(modes).toEqual([0o600, 0o600, 0o600])
  })

  test('an animal is refused, not lost, where the file was moved or deleted under the store', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    const stores = await opened(file)
    const add = async () => {
      try {
        return (await stores.pets.create({ name: 'Rex', categoryId: 1n })).id
      } catch (error) {
        return error instanceof StoreUnavailable ? 'unavailable' : error
      }
    }
    expect(await add()).toBe(1n)
    renameSync(file, `${file}.moved`)
    expect(await add()).toBe('unavailable')
    expect((await stores.pets.list({ limit: 5 })).pets).toHaveLength(1)
    writeFileSync(file, '')
    expect(await add()).toBe('unavailable')
    renameSync(`${file}.moved`, file)
    expect(await add()).toBe(2n)
    await stores.close()
  })

  test('a missing file is made only where that was asked for', () => {
    using folder = temporaryFolder()
    expect(() => opened(join(folder.path, 'none.db'), false)).toThrow(SetupError)
  })

  test('a file of a newer version is refused, and stays as it was', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    await (await opened(file)).close()
    const newer = new Database(file)
    newer.run('PRAGMA user_version = 1000')
    newer.close()
    expect(() => opened(file)).toThrow(/schema version 1000.*upgrade the program/)
  })

  test('a file that is no database, or another program’s, is refused', () => {
    using folder = temporaryFolder()
    const text = join(folder.path, 'notes.txt')
    writeFileSync(text, 'These are my notes, and they are quite long. '.repeat(100))
    expect(() => opened(text)).toThrow(/not an SQLite database/)
    const theirs = join(folder.path, 'theirs.db')
    const database = new Database(theirs)
    database.run('CREATE TABLE invoices (id INTEGER PRIMARY KEY)')
    database.close()
    expect(() => opened(theirs)).toThrow(/another program/)
  })

  test('a migration that fails leaves the file at the version before', async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    const blocked = new Database(file)
    blocked.run('PRAGMA application_id = 0x50455453')
    blocked.run('CREATE TABLE api_keys (id INTEGER PRIMARY KEY)')
    blocked.close()
    expect(() => opened(file)).toThrow()
    using after = new Database(file, { readonly: true })
    expect(after.query('PRAGMA user_version').values()).toEqual([[0]])
    expect(after.query("SELECT name FROM sqlite_schema WHERE name = 'pets'").values()).toEqual([])
  })

  test('eight processes that open a new file at once all get it, migrated once', async () => {
    using folder = temporaryFolder()
    const url = `sqlite:${join(folder.path, 'pets.db')}`
    await openAtOnce(url, 8)
    const stores = await openStores(url, { create: false })
    expect((await stores.pets.list({ limit: 100 })).pets).toHaveLength(8)
    await stores.close()
  })
})

describe('SQLite: every page costs the same at any depth', () => {
  const plan = async (sql: string, parameters: Record<string, unknown>): Promise<string> => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    await (await openStores(`sqlite:${file}`, { create: true })).close()
    using database = new Database(file, { readonly: true, strict: true })
    const rows = database
      .query<{ detail: string }, [never]>(`EXPLAIN QUERY PLAN ${sql}`)
      .all(parameters as never)
    return rows.map(({ detail }) => detail).join('\n')
  }

  test('a page of all animals is a range of the primary key, without a sort', async () => {
    expect(await plan(statements.list, { after: 1, rows: 21 })).toBe(
      'SEARCH pets USING INTEGER PRIMARY KEY (rowid>?)',
    )
  })

  test('a page of one status is a range of its index, without a sort', async () => {
    expect(await plan(statements.listByStatus, { status: 'sold', after: 1, rows: 21 })).toBe(
      'SEARCH pets USING INDEX pets_by_status (status=? AND rowid>?)',
    )
  })

  test('one animal is one look-up', async () => {
    expect(await plan(statements.get, { id: 1 })).toBe('SEARCH pets USING INTEGER PRIMARY KEY (rowid=?)')
  })
})
