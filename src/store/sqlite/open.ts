import type { Database } from 'bun:sqlite'
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { SetupError, StoreUnavailable } from '../../errors.ts'
import type { OnStoreEvent, OpenOptions, SharedMemory, Stores } from '../../store.ts'
import { DamageGuard, setupErrorOf } from './errors.ts'
import { createSqliteKeys } from './keys.ts'
import { createSqlitePets } from './pets.ts'
import { checkSameFile, connect, identityOf, prepare } from './schema.ts'
import { SqliteTransfer } from './transfer.ts'
import { Writer, WriterThread } from './writer.ts'
import type { Writes } from './writer-thread.ts'

/** Reads run on this thread through a read-only connection, writes in the writer thread. */
export function openSqlite(file: string, { create, onEvent = () => {} }: OpenOptions): Stores {
  try {
    provideFile(file, create)
    using opening = new DisposableStack()
    // Stays open: if the writer thread has ended, this is the last connection, which moves the write-ahead log into the file.
    const anchor = opening.adopt(connect(file, 'readwrite'), database => database.close())
    const isNew = prepare(anchor, file)
    const thread = new WriterThread(file, message => onEvent('error', message))
    const damaged = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const shared = { commits: thread.commits, damaged, identity: identityOf(file) }
    const { reading, writer, guard, ...stores } = openTables(file, shared, onEvent, () => void thread.start())
    opening.adopt(reading, database => database.close())
    thread.connect(writer.connect)
    const connections = opening.move()
    return {
      ...stores,
      ...(isNew && { newStorePath: resolve(file) }),
      startWriting: () => thread.start(),
      forThreads: {
        shared,
        connect: onPort => thread.connect(onPort),
        disconnect: onPort => thread.disconnect(onPort),
      },
      async close() {
        await writer.close()
        if (guard.damage) preventCheckpoint(anchor)
        else connections.dispose()
        // Last: it moves the write-ahead log into the file, and only this thread waits if the disk does not answer.
        await thread.close()
      },
    }
  } catch (error) {
    throw setupErrorOf(error, file)
  }
}

/** Opens a store that the main thread has open, for another thread. Writes wait up to 1 s for `connectWriter`. */
export function openSqliteInThread(file: string, shared: SharedMemory, onEvent: OnStoreEvent = () => {}): Stores {
  try {
    // Otherwise a thread that starts later would serve the file that has taken its place.
    checkSameFile(file, shared.identity)
    const { reading, writer, guard: _, ...stores } = openTables(file, shared, onEvent)
    return {
      ...stores,
      startWriting: async () => {},
      connectWriter: writer.connect,
      async close() {
        await writer.close()
        reading.close()
      },
    }
  } catch (error) {
    throw error instanceof StoreUnavailable ? new SetupError(error.message) : setupErrorOf(error, file)
  }
}

/** The reading connection and the tables of one thread. */
function openTables(file: string, { commits, damaged }: SharedMemory, onEvent: OnStoreEvent, start = () => {}) {
  const reading = connect(file, 'readonly')
  const onDamage = ({ message }: Error) =>
    onEvent('error', `The store ${resolve(file)} is damaged (${message}): stop the server and restore a backup`)
  const guard = new DamageGuard(onDamage, damaged)
  const writer = new Writer<Writes>({ guard, commits, start })
  return {
    reading,
    writer,
    guard,
    pets: createSqlitePets(reading, writer, guard),
    keys: createSqliteKeys(reading, writer, guard),
    transfer: new SqliteTransfer(file),
    location: file,
    activity: () => writer.activity(),
  }
}

/**
 * When the process ends, the last connection moves the write-ahead log into the file, and would damage it further. An open read
 * transaction prevents that.
 */
function preventCheckpoint(database: Database): void {
  try {
    database.run('BEGIN')
    database.query('SELECT 1 FROM sqlite_schema').get()
  } catch {
    // Not even the schema can be read.
  }
}

/** Creates or checks the file before SQLite does, which reports missing folders and missing rights with the same code. */
function provideFile(file: string, create: boolean): void {
  if (!existsSync(file)) {
    if (!create) throw new SetupError(`There is no store at ${file}: start the server once, or set DATABASE_URL`)
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    // SQLite would make it readable for everyone. The -wal and -shm files get the same mode.
    closeSync(openSync(file, 'a', 0o600))
  }
  if (!statSync(file).isFile()) throw Object.assign(new Error('not a regular file'), { code: 'EISDIR' })
  accessSync(file, constants.R_OK | constants.W_OK)
}
