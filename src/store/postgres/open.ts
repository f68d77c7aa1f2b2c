import { SetupError, StoreUnreachable } from '../../errors.ts'
import type { OnStoreEvent, OpenOptions, Stores } from '../../store.ts'
import { postgresSetupError } from './errors.ts'
import { createPostgresKeys } from './keys.ts'
import { createPostgresPets } from './pets.ts'
import { findServer, Pool, type Server } from './pool.ts'
import { migrate, migrations } from './schema.ts'
import { PostgresTransfer } from './transfer.ts'
import { type PostgresAddress, parsePostgresUrl } from './url.ts'

/** Connections for reads. Those for writes are added. */
const readConnectionsDefault = 10

/** One for the batches of new animals, and one for all other writes. */
const writeConnections = 2
/** For a check which server is the primary, or for a command. */
const spareConnections = 1

export interface PostgresOptions {
  /** The replicas to list and fetch from. */
  readonly readUrl?: string | undefined
  /** Whether the address is a connection pooler, which may run each transaction in another session. */
  readonly pooler?: boolean | undefined
  /** The size of the connection pool for reads. */
  readonly connectionsMax?: number | undefined
}

/** Writes have their own connections, so that many readers cannot delay them. */
export async function openPostgres(
  address: PostgresAddress,
  options: OpenOptions & PostgresOptions,
  known = migrations,
): Promise<Stores> {
  const { hosts, location } = address
  const { create, onEvent = () => {}, readUrl, pooler, connectionsMax = readConnectionsDefault } = options
  try {
    const server = await findServer(hosts, 'primary')
    const isNew = await migrate(server, location, create, known)
    for (const statement of server.missingSettings) {
      onEvent('warn', `A setting is missing behind the connection pooler: run ${statement}`)
    }
    const replicas = readUrl === undefined ? undefined : parsePostgresUrl(readUrl, pooler)
    const replica = replicas && (await findReplica(replicas))
    const primary = { hosts, role: 'primary', onEvent } as const
    const connectionsForOthers = writeConnections + spareConnections
    const reading = new Pool(server, { ...primary, purpose: 'reading', connectionsMax, connectionsForOthers })
    const writing = new Pool(server, {
      ...primary,
      purpose: 'writing',
      connectionsMax: writeConnections,
      connectionsForOthers: 0,
      keepOpen: { before: reading },
    })
    warnOfLimit(server, connectionsMax + writeConnections + spareConnections, onEvent)
    const replicaPool =
      replica &&
      new Pool(replica, {
        hosts: replicas.hosts,
        role: 'any',
        purpose: 'reading animals',
        connectionsMax,
        connectionsForOthers: spareConnections,
        onEvent,
      })
    const { pets, queue } = createPostgresPets(replicaPool ?? reading, writing)
    return {
      pets,
      keys: createPostgresKeys(reading, writing, replicaPool),
      transfer: new PostgresTransfer(address),
      location,
      ...(isNew && { newStorePath: location }),
      // Before the first read: readers could take all connections that the server allows.
      async startWriting() {
        checkLimit(server, writeConnections + 1)
        await writing.open().catch((error: unknown) => {
          throw postgresSetupError(error, location)
        })
      },
      isReadOnly: () => !(reading.isReachable && writing.isReachable),
      activity: () => ({ ...queue.activity(), isWritable: isWritable(writing, queue.failedAtMs) }),
      async close() {
        await queue.close()
        await Promise.all([writing, reading, replicaPool].map(pool => pool?.close()))
      },
    }
  } catch (error) {
    throw postgresSetupError(error, location)
  }
}

function checkLimit({ connectionsAllowed, host }: Server, neededMin: number): void {
  if (connectionsAllowed >= neededMin) return
  const message = `Cannot use ${host.name}: it allows ${connectionsAllowed} connections, and an instance needs ${neededMin}`
  throw new SetupError(`${message}; raise the limit of the role, the database or the server`)
}

function warnOfLimit({ connectionsAllowed }: Server, needed: number, onEvent: OnStoreEvent): void {
  if (connectionsAllowed >= needed) return
  const message = `PostgreSQL allows ${connectionsAllowed} connections and this instance may use ${needed}`
  onEvent('warn', `${message}: it reads with fewer; raise the limit of the role, the database or the server`)
}

/** A failure before the connections were opened again says nothing about now. */
function isWritable({ usableSinceMs }: Pool, failedAtMs = Number.NEGATIVE_INFINITY): boolean {
  return usableSinceMs !== undefined && failedAtMs < usableSinceMs
}

/** Messages about a replica name its own setting. */
async function findReplica({ hosts, location }: PostgresAddress): Promise<Server> {
  try {
    return await findServer(hosts, 'any')
  } catch (cause) {
    const error = postgresSetupError(cause, location)
    if (!(error instanceof StoreUnreachable)) throw error
    throw new StoreUnreachable(error.message.replaceAll('DATABASE_URL', 'PETSTORE_READ_URL'), { cause })
  }
}
