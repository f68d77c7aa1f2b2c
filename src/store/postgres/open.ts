import { StoreUnreachable } from '../../errors.ts'
import type { OpenOptions, Stores } from '../../store.ts'
import { setupErrorOf } from './fault.ts'
import { createKeyStore } from './keys.ts'
import { migrate } from './migrations.ts'
import { createPetStore } from './pets.ts'
import { createPool } from './pool.ts'
import { connectForLong, findServer, type Server } from './server.ts'
import { createTransfer } from './transfer.ts'
import { type PostgresAddress, parsePostgresUrl } from './url.ts'
import { createPetWriter } from './writer.ts'

/** Connections for reading, unless told otherwise. Those for writing come on top of them. */
const readingMaxDefault = 10

/** One that adds animals, in groups, and one for all other writes. */
const writingMax = 2

/** Opens the database: writes through connections of their own, so that no crowd of readers holds them up. */
export async function openPostgres(address: PostgresAddress, options: OpenOptions): Promise<Stores> {
  const { hosts, place } = address
  const { onEvent = () => {}, readUrl, connectionsMax = readingMaxDefault } = options
  try {
    const server = await findServer(hosts, 'writing')
    const isNew = await prepare(server, place, options.create)
    const replicas = readUrl === undefined ? undefined : parsePostgresUrl(readUrl)
    const replica = replicas && (await findReplica(replicas))
    const pool = (purpose: string, max: number) =>
      createPool(server, { hosts, role: 'writing', purpose, max, onEvent })
    const writing = pool('writing', writingMax)
    const primary = pool('reading', connectionsMax)
    const reading = replica
      ? createPool(replica, {
          hosts: replicas.hosts,
          role: 'reading',
          purpose: 'reading animals',
          max: connectionsMax,
          onEvent,
        })
      : primary
    const writer = createPetWriter(writing)
    return {
      pets: createPetStore(reading, writing, writer),
      keys: createKeyStore(primary, writing),
      transfer: createTransfer(address),
      location: place,
      ...(isNew && { createdAt: place }),
      // Pools open connections whenever they need them; a failure to do so is StoreUnavailable.
      async startWriting() {},
      activity: () => ({ writesWaiting: writer.waiting, commitSizes: writer.commitSizes }),
      async close() {
        await writer.close()
        await Promise.all([...new Set([writing, primary, reading])].map(pool => pool.close()))
      },
    }
  } catch (error) {
    throw setupErrorOf(error, place)
  }
}

/** What is wrong with the replicas is said of them, and not of the store. */
async function findReplica({ hosts, place }: PostgresAddress): Promise<Server> {
  try {
    return await findServer(hosts, 'reading')
  } catch (error) {
    const told = setupErrorOf(error, place)
    if (!(told instanceof StoreUnreachable)) throw told
    throw new StoreUnreachable(told.message.replaceAll('DATABASE_URL', 'PETSTORE_READ_URL'), {
      cause: error,
    })
  }
}

async function prepare(server: Server, place: string, create: boolean): Promise<boolean> {
  await using connection = connectForLong(server)
  return await migrate(connection.sql, place, create)
}
