import { StoreError } from '../../errors.ts'
import type { OpenOptions, Stores } from '../../store-contract.ts'
import { WriteHealth } from '../commit-queue.ts'
import { Connections, readFrom } from './connections.ts'
import { postgresStoreError } from './errors.ts'
import { createPostgresKeys } from './keys.ts'
import { createPostgresPets } from './pets.ts'
import { migrate, migrations, missingRights } from './schema.ts'
import { checkServer } from './server.ts'
import { PostgresTransfer } from './transfer.ts'
import { type PostgresAddress, parsePostgresUrl } from './url.ts'

/** Connections for reads. Those for writes are added. */
const readConnectionsDefault = 10
/** One for the batches of new animals, and one for all other writes. Readers cannot delay them. */
const writeConnections = 2

export interface PostgresOptions {
  /** A second address for reads, such as that of a replica. */
  readonly readUrl?: string | undefined
  /** Whether the address is a connection pooler, which may run each transaction in another session. */
  readonly pooler?: boolean | undefined
  readonly connectionsMax?: number | undefined
}

export async function openPostgres(
  address: PostgresAddress,
  options: OpenOptions & PostgresOptions,
  steps = migrations,
): Promise<Stores> {
  const { location } = address
  const { create, onEvent = () => {}, readUrl, pooler, connectionsMax = readConnectionsDefault } = options
  try {
    for (const statement of await checkServer(address)) {
      onEvent('warn', { message: `A setting is missing behind the connection pooler: run ${statement}` })
    }
    const isNew = await migrate(address, create, steps)
    const writing = new Connections({ use: 'writing', address, connectionsMax: writeConnections, onEvent })
    const reading = new Connections({ use: 'reading', address, connectionsMax, onEvent })
    const readAddress = readUrl === undefined ? undefined : parsePostgresUrl(readUrl, pooler)
    const replica = readAddress && new Connections({ use: 'reading', address: readAddress, connectionsMax, onEvent })
    // Keys come from the second address only in an outage: it may not know yet that one is revoked.
    const animals = replica ? readFrom(replica, reading, onEvent) : reading
    const keys = replica ? readFrom(reading, replica, onEvent) : reading
    const health = new WriteHealth()
    const { pets, queues } = createPostgresPets(animals, writing, health)
    return {
      pets,
      keys: createPostgresKeys(keys, writing, health),
      transfer: new PostgresTransfer(address),
      location,
      ...(isNew && { newStorePath: location }),
      startWriting: () => startWriting(writing, location),
      activity: () => ({
        writesWaiting: queues.reduce((sum, { writesWaiting }) => sum + writesWaiting, 0),
        isWritable: writing.isUsable && health.isGood,
        pools: {
          reading: reading.activity,
          writing: writing.activity,
          ...(replica && { replica: replica.activity }),
        },
      }),
      async close() {
        await Promise.all(queues.map(queue => queue.close()))
        await Promise.all([writing.close(), reading.close(), replica?.close()])
      },
    }
  } catch (error) {
    throw postgresStoreError(error, location)
  }
}

/** Opens the connections for writing, and checks the rights. */
async function startWriting(writing: Connections, location: string): Promise<void> {
  try {
    const missing = await writing.run(sql => sql.unsafe<{ lacking: string }[]>(missingRights))
    if (missing.length === 0) return
    const rights = missing.map(({ lacking }) => lacking).join('; ')
    throw new StoreError('missing-right', `Cannot write to the store ${location}: the user lacks ${rights}`)
  } catch (error) {
    throw postgresStoreError(error, location)
  }
}
