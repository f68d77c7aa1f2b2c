import type { Database } from 'bun:sqlite'
import type { Pet } from '../../pet.ts'
import { batchPetsMax, type Transfer } from '../../store.ts'
import { connect } from './connection.ts'
import { guarded, setupErrorOf } from './fault.ts'
import { type PetRow, petOf, statements } from './pets.ts'

/** Every read and every load has a connection of its own, and with it a transaction of its own. */
export function createTransfer(file: string): Transfer {
  return {
    // It walks the smallest index from end to end: 10 ms for a million animals.
    estimate: async () =>
      onConnection(file, 'readonly', database =>
        guarded(() => Number(database.query<{ n: bigint }, []>('SELECT count(*) AS n FROM pets').get()?.n)),
      ),
    read: () => readPets(file),
    async load(batches, ids, interrupted) {
      // A server starts without it.
      const { loadPets } = await import('./load.ts')
      return onConnection(file, 'readwrite', database => loadPets(database, file, batches, ids, interrupted))
    },
  }
}

/** One read transaction from the first batch to the last: the write-ahead log keeps what it saw at its beginning. */
async function* readPets(file: string): AsyncGenerator<readonly Pet[]> {
  const database = open(file, 'readonly')
  try {
    const page = guarded(() => {
      database.run('BEGIN')
      return database.query<PetRow, { after: bigint; rows: number }>(statements.list)
    })
    const petsAfter = (after: bigint) => guarded(() => page.all({ after, rows: batchPetsMax })).map(petOf)
    for (let pets = petsAfter(0n); pets.length > 0; pets = petsAfter(pets.at(-1)?.id ?? 0n)) yield pets
  } finally {
    close(database)
  }
}

async function onConnection<T>(
  file: string,
  mode: 'readonly' | 'readwrite',
  work: (database: Database) => T | Promise<T>,
): Promise<T> {
  const database = open(file, mode)
  try {
    return await work(database)
  } finally {
    close(database)
  }
}

function open(file: string, mode: 'readonly' | 'readwrite'): Database {
  try {
    return connect(file, mode)
  } catch (error) {
    throw setupErrorOf(error, file)
  }
}

/** A transaction left open would live on in a statement that is not collected yet. */
function close(database: Database): void {
  if (database.inTransaction) database.run('ROLLBACK')
  database.close()
}
