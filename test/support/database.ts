import { Database } from 'bun:sqlite'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { temporaryFolder } from './folder.ts'
import { sharedDatabase } from './with-postgres.ts'

/** An empty database of its own, gone with the test. */
export interface AnyDatabase extends AsyncDisposable {
  /** For DATABASE_URL. */
  readonly url: string
  /** Whether what is kept contains the text anywhere. */
  holds(text: string): Promise<boolean>
  /** As if this id had been given to an animal: the next one gets a higher one. */
  setLastId(id: bigint): Promise<void>
}

/** The tests over HTTP are run twice, once on each store: `npm test` does both. */
export const storeUnderTest: StoreKind =
  process.env['PETSTORE_TEST_STORE'] === 'postgres' ? 'postgres' : 'sqlite'

export type StoreKind = 'postgres' | 'sqlite'

export function newTestDatabase(store = storeUnderTest): Promise<AnyDatabase> {
  return store === 'postgres' ? postgresDatabase() : sqliteDatabase()
}

async function sqliteDatabase(): Promise<AnyDatabase> {
  const folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  return {
    url: `sqlite:${file}`,
    holds: async text =>
      [file, `${file}-wal`].some(path => existsSync(path) && readFileSync(path).includes(text)),
    async setLastId(id) {
      using database = new Database(file, { readwrite: true, strict: true })
      database.run("DELETE FROM sqlite_sequence WHERE name = 'pets'")
      database.run("INSERT INTO sqlite_sequence VALUES ('pets', ?)", [id])
    },
    [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
  }
}

async function postgresDatabase(): Promise<AnyDatabase> {
  const database = await sharedDatabase()
  return {
    url: database.url,
    async holds(text) {
      await using sql = new SQL(database.url, { max: 1 })
      const tables = ['pets', 'api_keys', 'creation_keys']
      const rows = tables.map(table => `SELECT to_json(${table})::text AS row FROM ${table}`)
      const all = await sql.unsafe<{ row: string }[]>(rows.join(' UNION ALL '))
      return all.some(({ row }) => row.includes(text))
    },
    async setLastId(id) {
      await using sql = new SQL(database.url, { max: 1 })
      await sql`UPDATE pet_ids SET last_id = ${id}`
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
