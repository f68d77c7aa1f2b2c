import type { Database } from 'bun:sqlite'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StoreError } from '../../errors.ts'
import type { OpenOptions, Stores } from '../../store-contract.ts'
import { DamageGuard, sqliteStoreError } from './errors.ts'
import { createSqliteKeys } from './keys.ts'
import { createSqlitePets } from './pets.ts'
import { checkFile, connect, isEmpty, migrations, prepare } from './schema.ts'
import { SqliteTransfer } from './transfer.ts'
import { Writer } from './writer.ts'

/** Reads run on this thread through a read-only connection, writes in the writer thread. */
export function openSqlite(file: string, options: OpenOptions, steps = migrations): Stores {
  const { create, onEvent = () => {}, onEnd } = options
  const what = `Cannot open the store ${file}`
  try {
    provideFile(file, create, what)
    using opening = new DisposableStack()
    // Closed last: a read-only connection cannot open or remove the write-ahead log.
    const anchor = opening.adopt(connect(file, 'readwrite'), database => database.close())
    if (!create && isEmpty(anchor)) throw noStore(file, 'it has no tables')
    const isNew = prepare(anchor, file, steps)
    const reading = opening.adopt(connect(file, 'readonly'), database => database.close())
    const guard = new DamageGuard(({ message }) =>
      onEvent('error', { message: `The store ${resolve(file)} is damaged (${message})`, problem: 'damaged' }),
    )
    const writer = new Writer(file, guard, onEnd)
    const connections = opening.move()
    return {
      pets: createSqlitePets(reading, guard, writer),
      keys: createSqliteKeys(reading, guard, writer),
      transfer: new SqliteTransfer(file),
      location: file,
      ...(isNew && { newStorePath: resolve(file) }),
      startWriting: () => writer.start(),
      activity: () => ({ writesWaiting: writer.writesWaiting, isWritable: writer.isWritable }),
      async close() {
        await writer.finish()
        if (guard.damage) preventCheckpoint(anchor)
        else connections.dispose()
        // Last: it moves the write-ahead log into the file, and only the thread waits if the disk does not answer.
        await writer.close()
      },
    }
  } catch (error) {
    throw sqliteStoreError(error, what)
  }
}

/**
 * When the process ends, the last connection moves the write-ahead log into the file, and would damage it further. An
 * open read transaction prevents that.
 */
function preventCheckpoint(database: Database): void {
  try {
    database.run('BEGIN')
    database.query('SELECT 1 FROM sqlite_schema').get()
  } catch {
    // Not even the schema can be read.
  }
}

/** With the whole path, because the working folder may be the wrong one. */
function noStore(file: string, happened: string): StoreError {
  return new StoreError('no-file', `Cannot open the store ${resolve(file)}: ${happened}`)
}

/** Creates or checks the file before SQLite does, which has one code for missing folders and missing rights. */
function provideFile(file: string, create: boolean, what: string): void {
  if (!existsSync(file)) {
    if (!create) throw noStore(file, 'it does not exist')
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    // SQLite would make it readable for everyone. The -wal and -shm files get the same mode.
    closeSync(openSync(file, 'a', 0o600))
  }
  checkFile(file, what)
}
