import type { Database } from 'bun:sqlite'
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { SetupError } from '../../errors.ts'
import type { OpenOptions, Stores } from '../../store.ts'
import { connect, switchToWal } from './connection.ts'
import { DamageGuard, setupErrorOf } from './fault.ts'
import { createKeyStore } from './keys.ts'
import { claim, migrate } from './migrations.ts'
import { createPetStore } from './pets.ts'
import { createTransfer } from './transfer.ts'
import { createWriter } from './writer.ts'

/** Opens the file: reads on this thread through a connection that cannot write, writes in a thread of their own. */
export function openSqlite(file: string, { create, onEvent = () => {} }: OpenOptions): Stores {
  try {
    provideFile(file, create)
    const { anchor, isNew } = prepare(file)
    const reading = connect(file, 'readonly')
    const guard = new DamageGuard(({ message }) =>
      onEvent(
        'error',
        `The store ${resolve(file)} is damaged (${message}): stop the server and restore a backup`,
      ),
    )
    const writer = createWriter(file, guard, message => onEvent('error', message))
    return {
      pets: createPetStore(reading, writer, guard),
      keys: createKeyStore(reading, writer, guard),
      transfer: createTransfer(file),
      location: file,
      ...(isNew && { createdAt: resolve(file) }),
      startWriting: () => writer.start(),
      activity: () => ({ writesWaiting: writer.waiting, commitSizes: writer.commitSizes }),
      async close() {
        await writer.close()
        if (guard.damage) return leaveOpen(anchor)
        reading.close()
        anchor.close()
      },
    }
  } catch (error) {
    throw setupErrorOf(error, file)
  }
}

/**
 * The file is ours, in WAL mode and up to date before a second connection is opened. This first connection stays open:
 * the last one to close moves the write-ahead log into the file, and one that only reads could not.
 */
function prepare(file: string): { readonly anchor: Database; readonly isNew: boolean } {
  const database = connect(file, 'readwrite')
  try {
    claim(database, file)
    if (statSync(file).size <= checkedBytesMax) refuseDamage(database)
    switchToWal(database)
    return { anchor: database, isNew: migrate(database, file) }
  } catch (error) {
    database.close()
    throw error
  }
}

/** Checking a larger file would delay the start: this takes about 0.1 s. */
const checkedBytesMax = 8 * 1024 ** 2

function refuseDamage(database: Database): void {
  const [finding] = database.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').all()
  if (finding?.quick_check !== 'ok') {
    throw Object.assign(new Error(finding?.quick_check), { code: 'SQLITE_CORRUPT' })
  }
}

/**
 * The last connection to close moves the write-ahead log into the file, at the end of the process if not before. A damaged file
 * would be changed further: a read transaction that is still open prevents that.
 */
function leaveOpen(database: Database): void {
  try {
    database.run('BEGIN')
    database.query('SELECT 1 FROM sqlite_schema').get()
  } catch {
    // Not even the schema can be read.
  }
}

/** SQLite says no more than that it cannot open a file; here it is still known whether that is a right or a folder. */
function provideFile(file: string, create: boolean): void {
  if (!existsSync(file)) {
    if (!create)
      throw new SetupError(`There is no store at ${file}: start the server once, or set DATABASE_URL`)
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    // SQLite would make it readable by everyone; -wal and -shm take its mode.
    closeSync(openSync(file, 'a', 0o600))
  }
  if (!statSync(file).isFile()) throw Object.assign(new Error('no file'), { code: 'EISDIR' })
  accessSync(file, constants.R_OK | constants.W_OK)
}
