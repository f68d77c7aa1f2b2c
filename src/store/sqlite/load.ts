import type { Database } from 'bun:sqlite'
import { int64Max } from '../../int64.ts'
import type { PetStatus } from '../../pet.ts'
import type { ImportedPet, ImportIds } from '../../store.ts'
import { holdsAnimals, keptId, lacksIds } from '../load-refusals.ts'
import { guarded } from './fault.ts'
import { identityOf, refuseAnother } from './identity.ts'

const statements = {
  // SQLite keeps temporary tables in a file without a name: whatever happens, nothing of it stays behind.
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
  holdsAny: 'SELECT EXISTS (SELECT 1 FROM pets) AS any',
  lastId: "SELECT seq FROM sqlite_sequence WHERE name = 'pets'",
} as const

/** Animals moved in one statement: a signal is heard between two of them, some ten milliseconds apart. */
const movedAtOnce = 10_000

/** Pages of the table and of its index that are being filled stay in memory until they are full. */
const cacheKilobytes = 16 * 1024

/**
 * Gathers everything in a temporary table first, and only then takes the write lock: it is held for as long as the
 * database needs to take the animals in, and not for as long as somebody needs to send them.
 */
export async function loadPets(
  database: Database,
  file: string,
  batches: AsyncIterable<readonly ImportedPet[]>,
  ids: ImportIds,
  interrupted?: AbortSignal,
): Promise<bigint> {
  const identity = identityOf(file)
  // It is checked again under the lock; but whoever sends a million animals is better told before.
  if (ids === 'keep') guarded(() => refuseAnimals(database, file))
  const count = await stage(database, batches, ids)
  guarded(() => database.run('BEGIN IMMEDIATE'))
  guarded(() => (ids === 'keep' ? refuseAnimals(database, file) : refuseLackOfIds(database, file, count)))
  const move = database.query<never, { after: number; to: number }>(statements[ids])
  for (let after = 0; after < count; after += movedAtOnce) {
    guarded(() => move.run({ after, to: after + movedAtOnce }))
    await new Promise(setImmediate)
    interrupted?.throwIfAborted()
  }
  refuseAnother(file, identity)
  guarded(() => database.run('COMMIT'))
  return BigInt(count)
}

async function stage(
  database: Database,
  batches: AsyncIterable<readonly ImportedPet[]>,
  ids: ImportIds,
): Promise<number> {
  guarded(() => {
    database.run('PRAGMA temp_store = FILE')
    database.run(`PRAGMA cache_size = -${cacheKilobytes}`)
    database.run(statements.createStaged)
  })
  const insert = database.query<never, [bigint | null, string, bigint, PetStatus | null]>(statements.stage)
  let before = 0n
  let count = 0
  const stageBatch = database.transaction((pets: readonly ImportedPet[]) => {
    for (const { id, name, categoryId, status } of pets) {
      if (ids === 'keep') before = keptId(id, before)
      insert.run(id ?? null, name, categoryId, status ?? null)
    }
    count += pets.length
  })
  for await (const pets of batches) guarded(() => stageBatch(pets))
  return count
}

function refuseAnimals(database: Database, file: string): void {
  if (database.query<{ any: bigint }, []>(statements.holdsAny).get()?.any !== 0n) throw holdsAnimals(file)
}

/** SQLite would say that the disk is full. */
function refuseLackOfIds(database: Database, file: string, count: number): void {
  const last = database.query<{ seq: bigint }, []>(statements.lastId).get()?.seq ?? 0n
  if (last > int64Max - BigInt(count)) throw lacksIds(file, count, last)
}
