import { Database } from 'bun:sqlite'
import { statSync } from 'node:fs'
import { SetupError, StoreUnavailable } from '../../errors.ts'
import { blankCodePoints, type Migration, missingMigrations } from '../rows.ts'

export const busyTimeoutMs = 5_000
/** After a burst, the write-ahead log is truncated to this size. */
const walBytesMax = 64 * 1024 ** 2
/** Checking a larger file would delay the start: this takes about 0.1 s. */
const checkedBytesMax = 8 * 1024 ** 2
/** "PETS" in ASCII, in the file's header: marks the database as ours. */
const applicationId = 0x50455453

// AUTOINCREMENT: an id is never assigned twice, even if the highest one was deleted by hand.
const firstSchema = `
  CREATE TABLE pets (
    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
    name TEXT NOT NULL,
    category_id INTEGER NOT NULL,
    status TEXT CHECK (status IN ('available', 'pending', 'sold'))
  ) STRICT;
  -- An SQLite index ends in the row's id: within one status the animals are in the list's order.
  CREATE INDEX pets_by_status ON pets (status);

  CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    shown TEXT NOT NULL,
    read_only INTEGER NOT NULL CHECK (read_only IN (0, 1)),
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    revoked_at_ms INTEGER,
    last_used_at_ms INTEGER,
    deprecated_uses INTEGER NOT NULL DEFAULT 0,
    deprecated_last_used_at_ms INTEGER,
    metrics INTEGER NOT NULL DEFAULT 0 CHECK (metrics IN (0, 1))
  ) STRICT;

  CREATE TABLE creation_keys (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    pet_id INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX creation_keys_by_age ON creation_keys (created_at_ms)`

// For changes by SQL: the rules of POST /pets, and ids that are never assigned again. `length` ends at U+0000. A new
// table, because SQLite cannot add a constraint to an existing one.
const protectPets = `
  CREATE TABLE protected_pets (
    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
    name TEXT NOT NULL CONSTRAINT "name of 1 to 1,000 characters, not blank" CHECK (
      length(name) <= 1000 AND instr(name, char(0)) = 0 AND name GLOB '*[^' || char(${blankCodePoints.join(', ')}) || ']*'
    ),
    category_id INTEGER NOT NULL,
    status TEXT CHECK (status IN ('available', 'pending', 'sold'))
  ) STRICT;
  INSERT INTO protected_pets SELECT id, name, category_id, status FROM pets ORDER BY id;
  -- Keeps the last id assigned: RENAME changes the name here, too.
  DELETE FROM sqlite_sequence WHERE name = 'protected_pets';
  UPDATE sqlite_sequence SET name = 'protected_pets' WHERE name = 'pets';
  DROP TABLE pets;
  ALTER TABLE protected_pets RENAME TO pets;
  CREATE INDEX pets_by_status ON pets (status);
  CREATE TRIGGER fixed_id BEFORE UPDATE OF id ON pets BEGIN SELECT raise(ABORT, 'the id of an animal cannot change'); END`

/** Append only. The file's user_version is the version of the last one applied. Versions below 3 were never released. */
export const migrations: readonly Migration[] = [
  { version: 3, sql: firstSchema },
  { version: 4, sql: protectPets },
]

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

/** Makes the file ours, in WAL mode and up to date, and returns whether it was new. Refuses damaged and foreign files. */
export function prepare(database: Database, file: string, known: readonly Migration[]): boolean {
  claim(database, file)
  if (statSync(file).size <= checkedBytesMax) checkIntegrity(database, 'main.quick_check')
  switchToWal(database)
  return migrate(database, file, known)
}

/** Marks an empty file as ours; refuses another program's database before anything in it changes. */
function claim(database: Database, file: string): void {
  if (isOurs(database)) return
  const mark = database.transaction(() => {
    if (isOurs(database)) return
    if (database.query('SELECT 1 FROM sqlite_schema LIMIT 1').get()) {
      throw new SetupError(
        `Cannot use ${file}: it is a database of another program; move it away, or set DATABASE_URL to another file`,
      )
    }
    database.run(`PRAGMA application_id = ${applicationId}`)
  })
  mark.immediate()
}

export function isOurs(database: Database, schema = 'main'): boolean {
  return pragma(database, `${schema}.application_id`) === applicationId
}

/** Throws SQLITE_CORRUPT if it finds damage. The quick check does not compare indexes with their tables. */
export function checkIntegrity(database: Database, check: `${string}.${'quick' | 'integrity'}_check`): void {
  const [[finding] = []] = database.query(`PRAGMA ${check}(1)`).values()
  if (finding !== 'ok') throw Object.assign(new Error(String(finding)), { code: 'SQLITE_CORRUPT' })
}

/** Retries, because the busy time-out does not apply when two processes switch a new file at once. */
function switchToWal(database: Database): void {
  const deadline = Date.now() + busyTimeoutMs
  for (;;) {
    try {
      return void database.run('PRAGMA journal_mode = WAL')
    } catch (error) {
      if ((error as { code?: string }).code !== 'SQLITE_BUSY' || Date.now() > deadline) throw error
      Bun.sleepSync(20)
    }
  }
}

/** Applies missing migrations, each in its own transaction, and returns whether there were none before. */
function migrate(database: Database, file: string, known: readonly Migration[]): boolean {
  const found = versionOf(database)
  for (const { version, sql } of missingMigrations(file, found, known)) {
    const apply = database.transaction(() => {
      // Another process may have applied it meanwhile.
      if (versionOf(database) >= version) return
      database.run(sql)
      database.run(`PRAGMA user_version = ${version}`)
    })
    apply.immediate()
  }
  return found === 0
}

/** The schema's version: 0 if it is empty. */
export function versionOf(database: Database, schema = 'main'): number {
  return pragma(database, `${schema}.user_version`)
}

function pragma(database: Database, name: string): number {
  const [[value] = []] = database.query(`PRAGMA ${name}`).values()
  return Number(value)
}

/** Identifies the file even after it is renamed; undefined if there is none. */
export function identityOf(file: string): string | undefined {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat && `${stat.dev}:${stat.ino}`
}

/** SQLite can still write to a file that was moved or deleted, and the data would be lost with it. */
export function checkSameFile(file: string, identity: string | undefined): void {
  if (identityOf(file) !== identity) throw new StoreUnavailable(`${file} was moved, replaced or deleted`)
}
