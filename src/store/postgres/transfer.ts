import type { Pet } from '../../pet.ts'
import { batchPetsMax, type Transfer } from '../../store.ts'
import { runtimeErrorOf, setupErrorOf } from './fault.ts'
import { loadPets } from './load.ts'
import { type PetRow, petOf, statements } from './pets.ts'
import { type Connection, connectForLong, findServer } from './server.ts'
import type { PostgresAddress } from './url.ts'

/** Every read and every load has a connection of its own, and with it a transaction of its own. */
export function createTransfer(address: PostgresAddress): Transfer {
  return {
    // Ids rise without gaps, and the interface deletes nothing.
    estimate: () =>
      guarded(address, async ({ sql }) => {
        const [row] = await sql.unsafe<{ last_id: bigint }[]>('SELECT last_id FROM pet_ids')
        return row && Number(row.last_id)
      }),
    read: () => readPets(address),
    load: (batches, ids, interrupted) =>
      guarded(address, ({ sql }) => loadPets(sql, address.place, batches, ids, interrupted)),
  }
}

/** One transaction from the first batch to the last: each sees what the first one saw. */
async function* readPets(address: PostgresAddress): AsyncGenerator<readonly Pet[]> {
  await using connection = await open(address)
  try {
    // Reserved: where this connection is lost the pool would go on with another, and so at another moment.
    using sql = await connection.sql.reserve()
    await sql.unsafe('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    for (let after: bigint | undefined = 0n; after !== undefined; ) {
      const rows: PetRow[] = await sql.unsafe<PetRow[]>(statements.list, [after, batchPetsMax])
      if (rows.length > 0) yield rows.map(petOf)
      after = rows.at(-1)?.id
    }
  } catch (error) {
    throw setupErrorOf(runtimeErrorOf(error), address.place)
  }
}

async function guarded<T>(
  address: PostgresAddress,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  await using connection = await open(address)
  try {
    return await work(connection)
  } catch (error) {
    throw setupErrorOf(runtimeErrorOf(error), address.place)
  }
}

async function open({ hosts, place }: PostgresAddress): Promise<Connection> {
  try {
    return connectForLong(await findServer(hosts, 'writing'))
  } catch (error) {
    throw setupErrorOf(error, place)
  }
}
