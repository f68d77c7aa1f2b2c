import { Database } from 'bun:sqlite'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { SetupError } from '../../fault.ts'
import type { OpenOptions, Stores } from '../open.ts'
import { setupErrorOf } from './fault.ts'
import { createKeyStore } from './keys.ts'
import { claim, migrate } from './migrations.ts'
import { createPetStore } from './pets.ts'

const busyTimeoutMs = 5_000

/** Opens the file, one connection for writing and one that cannot write for reading. */
export function openSqlite(file: string, { create }: OpenOptions): Stores {
  if (!existsSync(file)) {
    if (!create)
      throw new SetupError(`There is no store at ${file}: start the server once, or set DATABASE_URL`)
    createFile(file)
  }
  try {
    const writing = connect(file, 'readwrite')
    claim(writing, file)
    switchToWal(writing)
    migrate(writing, file)
    const reading = connect(file, 'readonly')
    return {
      pets: createPetStore(reading, writing),
      keys: createKeyStore(reading, writing),
      place: file,
      close() {
        reading.close()
        writing.close()
      },
    }
  } catch (error) {
    throw setupErrorOf(error, file)
  }
}

/** Made before SQLite sees it, because SQLite would make it readable by everyone; -wal and -shm take its mode. */
function createFile(file: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    closeSync(openSync(file, 'a', 0o600))
  } catch (error) {
    throw setupErrorOf(error, file)
  }
}

// Without safeIntegers values beyond 2^53 are silently rounded; without strict a missing parameter is silently NULL.
function connect(file: string, mode: 'readwrite' | 'readonly'): Database {
  const database = new Database(file, { [mode]: true, safeIntegers: true, strict: true })
  database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  // FULL: a commit is on the disk when it returns, not only safe from a crash of the process.
  database.run('PRAGMA synchronous = FULL')
  database.run('PRAGMA foreign_keys = ON')
  return database
}

/** Two processes that switch a new file at once get BUSY whatever the timeout: the loser asks again. */
function switchToWal(database: Database): void {
  const deadline = Date.now() + busyTimeoutMs
  for (;;) {
    try {
      database.run('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if ((error as { code?: string }).code !== 'SQLITE_BUSY' || Date.now() > deadline) throw error
      Bun.sleepSync(20)
    }
  }
}
