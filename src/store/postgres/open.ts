import { SetupError, StoreUnreachable } from '../../errors.ts'
import type { OnStoreEvent, OpenOptions, Stores } from '../../store.ts'
import { postgresSetupError } from './errors.ts'
import { createPostgresKeys } from './keys.ts'
import { createPostgresPets } from './pets.ts'
import { connectionsLeftFree, findServer, Pool, type Server, writeConnections } from './pool.ts'
import { migrate, migrations } from './schema.ts'
import { PostgresTransfer } from './transfer.ts'
import { type PostgresAddress, parsePostgresUrl } from './url.ts'

/** Connections for reads. Those for writes are added. */
const readConnectionsDefault = 10

export interface PostgresOptions {
  /** The replicas to list and fetch from. */
  readonly readUrl?: string | undefined
  /** Whether the address is a connection pooler, which may run each transaction in another session. */
  readonly pooler?: boolean | undefined
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
    warnOfServer(server, connectionsMax, onEvent)
    const replicas = readUrl === undefined ? undefined : parsePostgresUrl(readUrl, pooler)
    const replica = replicas && (await openReplica(replicas, connectionsMax, onEvent))
    const primary = { hosts, role: 'primary', onEvent } as const
    const reading = new Pool(server, { ...primary, purpose: 'reading', connectionsMax })
    const writing = new Pool(server, {
      ...primary,
      purpose: 'writing',
      connectionsMax: writeConnections,
      readers: reading,
    })
    const { pets, queue } = createPostgresPets(replica ?? reading, writing)
    return {
      pets,
      keys: createPostgresKeys(reading, writing, replica),
      transfer: new PostgresTransfer(address),
      location,
      ...(isNew && { newStorePath: location }),
      startWriting: () => startWriting(server, writing, location),
      isReadOnly: () => !(reading.isReachable && writing.isReachable),
      activity: () => ({
        ...queue.activity(),
        isWritable: writing.isUsable(queue.failedAtMs),
        pools: { reading: reading.activity, writing: writing.activity, ...(replica && { replica: replica.activity }) },
      }),
      async close() {
        await queue.close()
        await Promise.all([writing, reading, replica].map(pool => pool?.close()))
      },
    }
  } catch (error) {
    throw postgresSetupError(error, location)
  }
}

const limitAdvice = 'raise the limit of the role, the database or the server'

function warnOfServer({ missingSettings, connectionsAllowed }: Server, connectionsMax: number, onEvent: OnStoreEvent) {
  for (const statement of missingSettings) {
    onEvent('warn', `A setting is missing behind the connection pooler: run ${statement}`)
  }
  const needed = connectionsMax + connectionsLeftFree
  if (connectionsAllowed >= needed) return
  const problem = `PostgreSQL allows ${connectionsAllowed} connections and this instance may use ${needed}`
  onEvent('warn', `${problem}: it reads with fewer; ${limitAdvice}`)
}

/** Before the first read: readers could take all connections that the server allows. */
async function startWriting({ connectionsAllowed, host }: Server, writing: Pool, location: string): Promise<void> {
  const needed = writeConnections + 1
  if (connectionsAllowed < needed) {
    const problem = `it allows ${connectionsAllowed} connections, and an instance needs ${needed}`
    throw new SetupError(`Cannot use ${host.name}: ${problem}; ${limitAdvice}`)
  }
  await writing.open().catch((error: unknown) => {
    throw postgresSetupError(error, location)
  })
}

/** Messages about a replica name its own setting. */
async function openReplica({ hosts, location }: PostgresAddress, connectionsMax: number, onEvent: OnStoreEvent) {
  const server = await findServer(hosts, 'any').catch((cause: unknown) => {
    const error = postgresSetupError(cause, location)
    if (!(error instanceof StoreUnreachable)) throw error
    throw new StoreUnreachable(error.message.replaceAll('DATABASE_URL', 'PETSTORE_READ_URL'), { cause })
  })
  return new Pool(server, { hosts, role: 'any', purpose: 'reading animals', connectionsMax, onEvent })
}
