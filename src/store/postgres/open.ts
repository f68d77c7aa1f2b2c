import { StoreUnreachable } from '../../errors.ts'
import type { OpenOptions, Stores } from '../../store.ts'
import { setupErrorOf } from './errors.ts'
import { PostgresKeys } from './keys.ts'
import { PostgresPets } from './pets.ts'
import { connectForLongWork, findServer, Pool, type Server } from './pool.ts'
import { migrate } from './schema.ts'
import { PostgresTransfer } from './transfer.ts'
import { type PostgresAddress, parsePostgresUrl } from './url.ts'

/** Connections for reads. Those for writes are added. */
const readConnectionsDefault = 10

/** One for the batches of new animals, and one for all other writes. */
const writeConnections = 2

/** Writes have their own connections, so that many readers cannot delay them. */
export async function openPostgres(address: PostgresAddress, options: OpenOptions): Promise<Stores> {
  const { hosts, location } = address
  const { onEvent = () => {}, readUrl, connectionsMax = readConnectionsDefault } = options
  try {
    const server = await findServer(hosts, 'primary')
    const isNew = await prepare(server, location, options.create)
    const replicas = readUrl === undefined ? undefined : parsePostgresUrl(readUrl)
    const replica = replicas && (await findReplica(replicas))
    const primaryPool = (purpose: string, connections: number) =>
      new Pool(server, { hosts, role: 'primary', purpose, connectionsMax: connections, onEvent })
    const writing = primaryPool('writing', writeConnections)
    const primary = primaryPool('reading', connectionsMax)
    const reading = replica
      ? new Pool(replica, {
          hosts: replicas.hosts,
          role: 'any',
          purpose: 'reading animals',
          connectionsMax,
          onEvent,
        })
      : primary
    const pets = new PostgresPets(reading, writing)
    return {
      pets,
      keys: new PostgresKeys(primary, writing),
      transfer: new PostgresTransfer(address),
      location,
      ...(isNew && { createdAt: location }),
      // Nothing to do: pools open connections as needed, and a failure to open one is StoreUnavailable.
      async startWriting() {},
      activity: () => pets.activity(),
      async close() {
        await pets.close()
        await Promise.all([...new Set([writing, primary, reading])].map(pool => pool.close()))
      },
    }
  } catch (error) {
    throw setupErrorOf(error, location)
  }
}

async function prepare(server: Server, location: string, create: boolean): Promise<boolean> {
  await using connection = connectForLongWork(server)
  return await migrate(connection.sql, location, create)
}

/** Messages about a replica name its own setting. */
async function findReplica({ hosts, location }: PostgresAddress): Promise<Server> {
  try {
    return await findServer(hosts, 'any')
  } catch (cause) {
    const error = setupErrorOf(cause, location)
    if (!(error instanceof StoreUnreachable)) throw error
    throw new StoreUnreachable(error.message.replaceAll('DATABASE_URL', 'PETSTORE_READ_URL'), { cause })
  }
}
