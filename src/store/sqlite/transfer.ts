import type { Database } from 'bun:sqlite'
import type { Pet, PetStatus } from '../../pet.ts'
import { batchPetsMax, type ImportedPet, type ImportIds, type Transfer } from '../../store.ts'
import { checkedKeptId, checkIdsLeft, type PetRow, petOf, storeNotEmpty } from '../rows.ts'
import { setupErrorOf, withStoreErrors } from './errors.ts'
import { statements as petStatements } from './pets.ts'
import { checkSameFile, connect, identityOf } from './schema.ts'

const statements = {
  // Walks the smallest index: 10 ms for a million animals.
  count: 'SELECT count(*) AS n FROM pets',
  // SQLite stores temporary tables in an unnamed file, so nothing is left behind after a crash.
  createStaged: `
    CREATE TEMP TABLE staged (
      place INTEGER PRIMARY KEY, id INTEGER, name TEXT, category_id INTEGER, status TEXT
    ) STRICT`,
  stage: 'INSERT INTO staged (id, name, category_id, status) VALUES (?, ?, ?, ?)',
  keep: `
    INSERT INTO pets (id, name, category_id, status)
    SELECT id, name, category_id, status FROM staged WHERE place > $after AND place <= $to ORDER BY place`,
  new: `
    INSERT INTO pets (name, category_id, status)
    SELECT name, category_id, status FROM staged WHERE place > $after AND place <= $to ORDER BY place`,
  hasAnimals: 'SELECT EXISTS (SELECT 1 FROM pets) AS found',
  lastId: "SELECT seq FROM sqlite_sequence WHERE name = 'pets'",
} as const

/** Animals moved in one statement, in about 10 ms. The signal is checked between two statements. */
const movedPetsMax = 10_000

/** Holds the pages of the table and its index that are being filled. */
const cacheKilobytes = 16 * 1024

/** Every read and every import has its own connection and transaction. */
export class SqliteTransfer implements Transfer {
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  async estimate(): Promise<number> {
    using connection = this.#connect('readonly')
    const { database } = connection
    return withStoreErrors(() => Number(database.query<{ n: bigint }, []>(statements.count).get()?.n))
  }

  /** One read transaction for all batches: the write-ahead log keeps the data as of its start. */
  async *read(): AsyncGenerator<readonly Pet[]> {
    using connection = this.#connect('readonly')
    const { database } = connection
    const page = withStoreErrors(() => {
      database.run('BEGIN')
      return database.query<PetRow, { after: bigint; rows: number }>(petStatements.list)
    })
    const petsAfter = (after: bigint) => withStoreErrors(() => page.all({ after, rows: batchPetsMax })).map(petOf)
    for (let pets = petsAfter(0n); pets.length > 0; pets = petsAfter(pets.at(-1)?.id ?? 0n)) yield pets
  }

  /** Takes the write lock only after all animals are in a temporary table, so a slow source does not block writers. */
  async load(batches: AsyncIterable<readonly ImportedPet[]>, ids: ImportIds, signal?: AbortSignal): Promise<bigint> {
    using connection = this.#connect('readwrite')
    const { database } = connection
    const identity = identityOf(this.#file)
    // Fails early; checked again under the lock.
    if (ids === 'keep') withStoreErrors(() => this.#checkEmpty(database))
    const count = await stage(database, batches, ids)
    withStoreErrors(() => {
      database.run('BEGIN IMMEDIATE')
      if (ids === 'keep') this.#checkEmpty(database)
      else checkIdsLeft(this.#file, count, lastIdIn(database))
    })
    const move = database.query<never, { after: number; to: number }>(statements[ids])
    for (let after = 0; after < count; after += movedPetsMax) {
      withStoreErrors(() => move.run({ after, to: after + movedPetsMax }))
      await new Promise(setImmediate)
      signal?.throwIfAborted()
    }
    checkSameFile(this.#file, identity)
    withStoreErrors(() => database.run('COMMIT'))
    return BigInt(count)
  }

  #checkEmpty(database: Database): void {
    const row = database.query<{ found: bigint }, []>(statements.hasAnimals).get()
    if (row?.found !== 0n) throw storeNotEmpty(this.#file)
  }

  #connect(mode: 'readonly' | 'readwrite'): Disposable & { readonly database: Database } {
    try {
      const database = connect(this.#file, mode)
      return { database, [Symbol.dispose]: () => closeWithoutCommit(database) }
    } catch (error) {
      throw setupErrorOf(error, this.#file)
    }
  }
}

/** Inserts every batch into a temporary table, and returns the number of animals. */
async function stage(
  database: Database,
  batches: AsyncIterable<readonly ImportedPet[]>,
  ids: ImportIds,
): Promise<number> {
  withStoreErrors(() => {
    database.run('PRAGMA temp_store = FILE')
    database.run(`PRAGMA cache_size = -${cacheKilobytes}`)
    database.run(statements.createStaged)
  })
  const insert = database.query<never, [bigint | null, string, bigint, PetStatus | null]>(statements.stage)
  let previous = 0n
  let count = 0
  const insertBatch = database.transaction((pets: readonly ImportedPet[]) => {
    for (const { id, name, categoryId, status } of pets) {
      if (ids === 'keep') previous = checkedKeptId(id, previous)
      insert.run(id ?? null, name, categoryId, status ?? null)
    }
    count += pets.length
  })
  for await (const pets of batches) withStoreErrors(() => insertBatch(pets))
  return count
}

function lastIdIn(database: Database): bigint {
  return database.query<{ seq: bigint }, []>(statements.lastId).get()?.seq ?? 0n
}

/** An open transaction would outlive close() until its statements are garbage-collected. */
function closeWithoutCommit(database: Database): void {
  if (database.inTransaction) database.run('ROLLBACK')
  database.close()
}
