import type { Database } from 'bun:sqlite'
import { SetupError } from '../../errors.ts'

/** "PETS" in ASCII, in the file's header: this database is ours. */
const applicationId = 0x50455453

/** Append only: a step that has been released is never edited. The file's user_version is the number of steps taken. */
export const migrations: readonly string[] = [
  // AUTOINCREMENT: an id is never given twice, not even after the highest one was deleted by hand.
  `CREATE TABLE pets (
     id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
     name TEXT NOT NULL,
     category_id INTEGER NOT NULL,
     status TEXT CHECK (status IN ('available', 'pending', 'sold'))
   ) STRICT;

   -- An SQLite index ends in the row's id: within one status the animals stand in the list's order.
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
     deprecated_last_used_at_ms INTEGER
   ) STRICT;`,

  `CREATE TABLE creation_keys (
     scope TEXT NOT NULL,
     key TEXT NOT NULL,
     fingerprint TEXT NOT NULL,
     pet_id INTEGER NOT NULL,
     created_at_ms INTEGER NOT NULL,
     PRIMARY KEY (scope, key)
   ) STRICT, WITHOUT ROWID;

   CREATE INDEX creation_keys_by_age ON creation_keys (created_at_ms);`,

  'ALTER TABLE api_keys ADD COLUMN metrics INTEGER NOT NULL DEFAULT 0 CHECK (metrics IN (0, 1))',
]

/** Takes the steps that the file lacks, each in a transaction of its own, and says whether it had none before. */
export function migrate(database: Database, file: string): boolean {
  const found = pragma(database, 'user_version')
  if (found > migrations.length) {
    throw new SetupError(
      `The store ${file} has schema version ${found}, and this program knows only up to ${migrations.length}: it is older than the store; upgrade it`,
    )
  }
  for (const [index, sql] of migrations.entries()) step(database, index + 1, sql)
  return found === 0
}

/** Writing the version inside the step's transaction makes two processes that start at once take it once. */
function step(database: Database, version: number, sql: string): void {
  if (pragma(database, 'user_version') >= version) return
  const take = database.transaction(() => {
    if (pragma(database, 'user_version') >= version) return
    database.run(sql)
    database.run(`PRAGMA user_version = ${version}`)
  })
  take.immediate()
}

/** An empty file becomes ours; a database that somebody else made is refused before anything in it changes. */
export function claim(database: Database, file: string): void {
  if (isOurs(database)) return
  const take = database.transaction(() => {
    if (isOurs(database)) return
    const tables = database.query<{ n: bigint }, []>('SELECT count(*) AS n FROM sqlite_schema').get()
    if (tables?.n !== 0n) {
      throw new SetupError(
        `Cannot use ${file}: it is a database of another program; move it away, or name another file in DATABASE_URL`,
      )
    }
    database.run(`PRAGMA application_id = ${applicationId}`)
  })
  take.immediate()
}

export function isOurs(database: Database): boolean {
  return pragma(database, 'application_id') === applicationId
}

function pragma(database: Database, name: 'application_id' | 'user_version'): number {
  const row = database.query<Record<string, bigint>, []>(`PRAGMA ${name}`).get()
  return Number(row?.[name])
}
