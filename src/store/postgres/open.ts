import { StoreError } from '../../errors.ts'
import type { OnStoreEvent, OpenOptions, Stores } from '../../store.ts'
import { PostgresCatalogue } from './catalogue.ts'
import { postgresStoreError } from './errors.ts'
import { createPostgresKeys } from './keys.ts'
import { createPostgresPets } from './pets.ts'
import type { Pool } from './pool.ts'
import { Primary, writeConnections } from './primary.ts'
import { Replica } from './replica.ts'
import { migrate, migrations, missingRights } from './schema.ts'
import { findServer, type Server } from './server.ts'
import { type PostgresAddress, parsePostgresUrl } from './url.ts'

/** Connections for reads. Those for writes are added. */
const readConnectionsDefault = 10

export interface PostgresOptions {
  /** A replica to list and fetch from, while it answers. */
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
  const { hosts, location } = address
  const { create, onEvent = () => {}, readUrl, pooler, connectionsMax = readConnectionsDefault } = options
  try {
    const server = await findServer(hosts)
    const isNew = await migrate(server, location, create, steps)
    warnOfServer(server, connectionsMax, onEvent)
    const primary = new Primary(server, hosts, connectionsMax, onEvent)
    const { reading, writing } = primary
    const replicaHost = readUrl === undefined ? undefined : parsePostgresUrl(readUrl, pooler)?.hosts[0]
    const replica = replicaHost && new Replica(replicaHost, reading, connectionsMax, onEvent)
    await replica?.check()
    const { pets, queue } = createPostgresPets(primary, replica)
    return {
      pets,
      keys: createPostgresKeys(primary, replica),
      catalogue: new PostgresCatalogue(address),
      location,
      ...(isNew && { newStorePath: location }),
      startWriting: () => startWriting(writing, location),
      isReadOnly: () => !(reading.isReachable && writing.isReachable),
      activity: () => ({
        ...queue.activity(),
        isWritable: writing.isUsable(queue.failedAtMs),
        pools: {
          reading: reading.activity,
          writing: writing.activity,
          ...(replica && { replica: replica.pool.activity }),
        },
        ...(replica && { replica: replica.activity }),
      }),
      async close() {
        await queue.close()
        await Promise.all([primary.close(), replica?.close()])
      },
    }
  } catch (error) {
    throw postgresStoreError(error, location)
  }
}

function warnOfServer({ host, missingSettings, connectionsAllowed }: Server, readers: number, onEvent: OnStoreEvent) {
  for (const statement of missingSettings) {
    onEvent('warn', { message: `A setting is missing behind the connection pooler: run ${statement}` })
  }
  // One more for a check which server is the primary, or for a command.
  const needed = readers + writeConnections + 1
  if (host.pooled || connectionsAllowed >= needed) return
  const message = `PostgreSQL allows ${connectionsAllowed} connections and this instance may use ${needed}`
  onEvent('warn', { message, problem: 'no-free-connection' })
}

/** Before the first read: readers could take all connections that the server allows. */
async function startWriting(writing: Pool, location: string): Promise<void> {
  try {
    await writing.check()
    const missing = await writing.write(sql => sql.unsafe<{ lacking: string }[]>(missingRights))
    if (missing.length === 0) return
    const rights = missing.map(({ lacking }) => lacking).join('; ')
    throw new StoreError('listed-rights', `Cannot write to the store ${location}: the user lacks ${rights}`)
  } catch (error) {
    throw postgresStoreError(error, location)
  }
}
