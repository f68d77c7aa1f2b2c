import { type Database, SQLiteError } from 'bun:sqlite'
import type { Pet, PetStatus } from '../../pet.ts'
import { batchPetsMax, type ImportedPet, type ImportIds, type Transfer } from '../../store-contract.ts'
import { checkIdsLeft, type PetRow, storeNotEmpty, toPet } from '../rows.ts'
import { sqliteStoreError } from './errors.ts'
import { statements } from './pets.ts'
import { cacheKilobytes, checkSameFile, connect, identify, readInteger } from './schema.ts'

/** Animals moved in one statement, in about 10 ms. The signal is checked between two statements. */
const movedPetsMax = 10_000

/** Every call has its own connection and transaction: closing the connection rolls back. */
export class SqliteTransfer implements Transfer {
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  /** Walks the smallest index: 10 ms for a million animals. */
  async estimate(): Promise<number> {
    try {
      using database = connect(this.#file, 'readonly')
      return Number(readInteger(database, 'SELECT count(*) FROM pets'))
    } catch (error) {
      throw this.#translate('Cannot read the store', error)
    }
  }

  /** One read transaction for all batches: the write-ahead log keeps the data as of its start. */
  async *read(): AsyncGenerator<readonly Pet[]> {
    try {
      using database = connect(this.#file, 'readonly')
      database.run('BEGIN')
      const page = database.query<PetRow, { after: bigint; rows: number }>(statements.list)
      for (let after: bigint | undefined = 0n; after !== undefined; ) {
        const rows: PetRow[] = page.all({ after, rows: batchPetsMax })
        if (rows.length > 0) yield rows.map(toPet)
        after = rows.at(-1)?.id
      }
    } catch (error) {
      throw this.#translate('Cannot read the store', error)
    }
  }

  /** Takes the write lock only after all animals are in a temporary table, so a slow source does not block writers. */
  async load(batches: AsyncIterable<readonly ImportedPet[]>, ids: ImportIds, signal?: AbortSignal): Promise<bigint> {
    try {
      using database = connect(this.#file, 'readwrite')
      const identity = identify(this.#file)
      // Fails early; checked again under the lock.
      if (ids === 'keep') this.#checkEmpty(database)
      const count = await stage(database, batches)
      database.run('BEGIN IMMEDIATE')
      const lastId = readInteger(database, "SELECT seq FROM sqlite_sequence WHERE name = 'pets'")
      if (ids === 'keep') this.#checkEmpty(database)
      else checkIdsLeft(this.#file, count, lastId)
      const columns = ids === 'keep' ? 'id, name, category_id, status' : 'name, category_id, status'
      const move = database.query<never, { after: number; to: number }>(
        `INSERT INTO pets (${columns}) SELECT ${columns} FROM staged WHERE place > $after AND place <= $to ORDER BY place`,
      )
      for (let after = 0; after < count; after += movedPetsMax) {
        move.run({ after, to: after + movedPetsMax })
        await new Promise(setImmediate)
        signal?.throwIfAborted()
      }
      checkSameFile(this.#file, identity)
      database.run('COMMIT')
      return BigInt(count)
    } catch (error) {
      throw this.#translate('Nothing has changed in the store', error)
    }
  }

  #checkEmpty(database: Database): void {
    if (database.query('SELECT 1 FROM pets LIMIT 1').get()) throw storeNotEmpty(this.#file)
  }

  /** The system's errors stay as they are: they may be those of the animals' source. */
  #translate(what: string, error: unknown): unknown {
    return error instanceof SQLiteError ? sqliteStoreError(error, `${what} ${this.#file}`) : error
  }
}

/** Inserts every batch into a temporary table, and returns the number of animals. */
async function stage(database: Database, batches: AsyncIterable<readonly ImportedPet[]>) {
  // SQLite stores temporary tables in an unnamed file, so nothing is left behind after a crash.
  database.run('PRAGMA temp_store = FILE')
  database.run(`PRAGMA cache_size = -${cacheKilobytes}`)
  database.run(
    'CREATE TEMP TABLE staged (place INTEGER PRIMARY KEY, id INTEGER, name TEXT, category_id INTEGER, status TEXT) STRICT',
  )
  const insert = database.query<never, [bigint | null, string, bigint, PetStatus | null]>(
    'INSERT INTO staged (id, name, category_id, status) VALUES (?, ?, ?, ?)',
  )
  let count = 0
  const insertBatch = database.transaction((pets: readonly ImportedPet[]) => {
    for (const { id, name, categoryId, status } of pets) {
      insert.run(id ?? null, name, categoryId, status ?? null)
    }
    count += pets.length
  })
  for await (const pets of batches) insertBatch(pets)
  return count
}
