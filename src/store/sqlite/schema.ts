import { Database } from 'bun:sqlite'
import { accessSync, constants, statSync } from 'node:fs'
import { readCode, StoreError, StoreUnavailable } from '../../errors.ts'
import { missingMigrations } from '../rows.ts'

const busyTimeoutMs = 5_000
/** Of an import or a restore: holds the pages of the table and its index that are being filled. */
export const cacheKilobytes = 16 * 1024
/** After a burst, the write-ahead log is truncated to this size. */
const walBytesMax = 64 * 1024 ** 2
/** Checking a larger file would delay the start: this takes about 0.1 s. */
const checkedBytesMax = 8 * 1024 ** 2
/** In the file's header: "pets" in ASCII marks a store. */
const applicationId = 0x70657473n

/** Up to the last date of JavaScript. */
const checkTime = (column: string) => `CHECK (${column} BETWEEN 0 AND 8640000000000000)`

// AUTOINCREMENT: no id is assigned twice, even if the animal with the highest one is removed. The checks guard changes
// by SQL and restores; the rules of POST /pets are in pet.ts.
const firstSchema = `
  CREATE TABLE pets (
    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 1000),
    category_id INTEGER NOT NULL,
    status TEXT CHECK (status IN ('available', 'pending', 'sold'))
  ) STRICT;
  -- An SQLite index ends in the row's id: within one status the animals are in the list's order.
  CREATE INDEX pets_by_status ON pets (status);
  CREATE TRIGGER fixed_id BEFORE UPDATE OF id ON pets BEGIN SELECT raise(ABORT, 'the id of an animal cannot change'); END;

  CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    shown TEXT NOT NULL,
    permission TEXT NOT NULL CHECK (permission IN ('manage', 'read-write', 'read-only', 'metrics')),
    created_at_ms INTEGER NOT NULL ${checkTime('created_at_ms')},
    expires_at_ms INTEGER ${checkTime('expires_at_ms')},
    revoked_at_ms INTEGER ${checkTime('revoked_at_ms')},
    last_used_at_ms INTEGER ${checkTime('last_used_at_ms')},
    deprecated_uses INTEGER NOT NULL DEFAULT 0,
    deprecated_last_used_at_ms INTEGER ${checkTime('deprecated_last_used_at_ms')}
  ) STRICT;

  CREATE TABLE idempotency_keys (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    pet_id INTEGER NOT NULL CHECK (pet_id > 0),
    created_at_ms INTEGER NOT NULL ${checkTime('created_at_ms')},
    PRIMARY KEY (scope, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at_ms)`

/** Append only: each step makes the next version. The file's user_version is the last version made. */
export const migrations: readonly string[] = [firstSchema]

/** Without safeIntegers, values beyond 2^53 are rounded; without strict, a missing parameter becomes NULL. */
export function connect(file: string, mode: 'readwrite' | 'readonly'): Database {
  const database = new Database(file, { [mode]: true, safeIntegers: true, strict: true })
  configure(database, 'main')
  // The first read opens the write-ahead log: now, while file descriptors are available.
  database.query('SELECT 1 FROM sqlite_schema LIMIT 1').get()
  return database
}

export function configure(database: Database, schema: string): void {
  database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  // FULL: COMMIT returns only when the data is on disk.
  database.run(`PRAGMA ${schema}.synchronous = FULL`)
  database.run(`PRAGMA ${schema}.journal_size_limit = ${walBytesMax}`)
}

/**
 * Makes the file ours, in WAL mode and up to date: each missing migration has its own transaction. Returns whether it was
 * new. Refuses damaged and foreign files.
 */
export function prepare(database: Database, file: string, steps: readonly string[]): boolean {
  const what = `Cannot open the store ${file}`
  // In this order: another process may create the tables, and the mark with them, at any time.
  if (!isEmpty(database) && !isOurs(database)) {
    throw new StoreError('wrong-file', `${what}: it is a database of another program`)
  }
  if (statSync(file).size <= checkedBytesMax) checkStore(database, file, 'main')
  switchToWal(database)
  const found = readVersion(database)
  for (const { version, sql } of missingMigrations(what, found, steps)) {
    const apply = database.transaction(() => {
      // Another process may have applied it meanwhile.
      if (readVersion(database) >= version) return
      database.run(sql)
      database.run(`PRAGMA application_id = ${applicationId}`)
      database.run(`PRAGMA user_version = ${version}`)
    })
    apply.immediate()
  }
  return found === 0
}

/** Whether it has no tables, as an empty file. */
export function isEmpty(database: Database): boolean {
  return !database.query('SELECT 1 FROM sqlite_schema LIMIT 1').get()
}

/** False for an empty file and for another program's. */
export function isOurs(database: Database, schema = 'main'): boolean {
  return readInteger(database, `PRAGMA ${schema}.application_id`) === applicationId
}

/** Refuses a damaged store. The quick check does not compare indexes with their tables. */
export function checkStore(database: Database, file: string, schema: string): void {
  if (isIntact(database, schema, 'quick_check')) return
  throw new StoreError('damaged', `Cannot open the store ${file}: the file is damaged (quick_check)`)
}

/** False if SQLite finds damage. It throws if there is too much of it to check further. */
export function isIntact(database: Database, schema: string, check: 'quick_check' | 'integrity_check'): boolean {
  const [[finding] = []] = database.query(`PRAGMA ${schema}.${check}(1)`).values()
  return finding === 'ok'
}

/** Retries, because the busy time-out does not apply when two processes switch a new file at once. */
function switchToWal(database: Database): void {
  const deadline = Date.now() + busyTimeoutMs
  for (;;) {
    try {
      return void database.run('PRAGMA journal_mode = WAL')
    } catch (error) {
      if (readCode(error) !== 'SQLITE_BUSY' || Date.now() > deadline) throw error
      Bun.sleepSync(20)
    }
  }
}

/** The schema's version: 0 if it is empty. */
export function readVersion(database: Database, schema = 'main'): number {
  return Number(readInteger(database, `PRAGMA ${schema}.user_version`))
}

/** 0 if there is no value. */
export function readInteger(database: Database, sql: string): bigint {
  const [[value] = []] = database.query(sql).safeIntegers(true).values()
  return (value ?? 0n) as bigint
}

/** Says more than SQLite, which has one code for several reasons. */
export function checkFile(file: string, what: string): void {
  if (!statSync(file).isFile()) throw new StoreError('wrong-file', `${what}: it is not a regular file`)
  accessSync(file, constants.R_OK | constants.W_OK)
}

/** Identifies the file even after it is renamed; undefined if it cannot be found. */
export function identify(file: string): string | undefined {
  try {
    const { dev, ino } = statSync(file)
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}

/** SQLite can still write to a file that was moved or deleted, and the data would be lost with it. */
export function checkSameFile(file: string, identity: string | undefined): void {
  if (identify(file) !== identity) throw new StoreUnavailable(`${file} was moved, replaced or deleted`)
}
