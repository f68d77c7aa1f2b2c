import { Database } from 'bun:sqlite'

const busyTimeoutMs = 5_000
/** What a burst has made the write-ahead log grow to is given back to the disk above this. */
const walBytesKept = 64 * 1024 ** 2

// Without safeIntegers values beyond 2^53 are silently rounded; without strict a missing parameter is silently NULL.
export function connect(file: string, mode: 'readwrite' | 'readonly'): Database {
  const database = new Database(file, { [mode]: true, safeIntegers: true, strict: true })
  database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  // FULL: a commit is on the disk when it returns, not only safe from a crash of the process.
  database.run('PRAGMA synchronous = FULL')
  database.run('PRAGMA foreign_keys = ON')
  database.run(`PRAGMA journal_size_limit = ${walBytesKept}`)
  // SQLite opens the write-ahead log with the first read: now, while there are file descriptors.
  database.query('SELECT 1 FROM sqlite_schema LIMIT 1').get()
  return database
}

/** Two processes that switch a new file at once get BUSY whatever the timeout: the loser asks again. */
export function switchToWal(database: Database): void {
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
