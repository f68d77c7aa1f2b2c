import { constants, Database } from 'bun:sqlite'
import { accessSync, existsSync, constants as modes, statfsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../../errors.ts'
import { int64Min } from '../../int64.ts'
import { idempotencyKeyMs } from '../../store-contract.ts'
import { keyColumnsWithoutId, missingMigrations } from '../rows.ts'
import { type Problems, sqliteStoreError } from './errors.ts'
import { openSqlite } from './open.ts'
import {
  cacheKilobytes,
  checkSameFile,
  checkStore,
  configure,
  identify,
  isIntact,
  isOurs,
  migrations,
  readInteger,
  readVersion,
} from './schema.ts'

/** Copied in one statement. The signal is checked between two statements. */
const copiedPetsMax = 10_000

const petColumns = 'id, name, category_id, status'
const idempotencyColumns = 'scope, key, fingerprint, pet_id, created_at_ms'
const lastId = (schema: string) => `SELECT seq FROM ${schema}.sqlite_sequence WHERE name = 'pets'`
const missingKeys = `SELECT ${keyColumnsWithoutId} FROM backup.api_keys WHERE hash NOT IN (SELECT hash FROM store.api_keys)`

/** The columns of the tables that a restore reads. In a strict table, each value has the type of its column. */
const columnsIn = (schema: string) => `
  SELECT found.name, found.strict, each.name, each.type, each."notnull", each.pk, each.hidden
  FROM pragma_table_list AS found JOIN pragma_table_xinfo(found.name, found.schema) AS each
  WHERE found.schema = '${schema}' AND found.type = 'table' AND found.name IN ('pets', 'idempotency_keys', 'api_keys')
  ORDER BY found.name, each.cid`

const copyPets = `
  INSERT INTO store.pets (${petColumns}) SELECT ${petColumns} FROM backup.pets
  WHERE id > ifnull((SELECT max(id) FROM store.pets), ${int64Min}) ORDER BY id LIMIT ${copiedPetsMax}`

const copyTheRest = [
  // No id of the store or the backup is assigned again. The INSERT has created the row, even without animals.
  `UPDATE store.sqlite_sequence SET seq = max(seq, ifnull((${lastId('backup')}), 0)) WHERE name = 'pets'`,
  'DELETE FROM store.idempotency_keys',
  `INSERT INTO store.idempotency_keys (${idempotencyColumns}) SELECT ${idempotencyColumns} FROM backup.idempotency_keys
   WHERE created_at_ms > unixepoch() * 1000 - ${idempotencyKeyMs}`,
  `INSERT INTO store.api_keys (${keyColumnsWithoutId}) ${missingKeys} ORDER BY id`,
]

export type Restore = Awaited<ReturnType<typeof openSqliteRestore>>

/** Checks the backup, then the store, which it migrates. A missing store is created when the restore runs. */
export async function openSqliteRestore(file: string, backup: string, steps = migrations) {
  using opening = new DisposableStack()
  // One connection for both files, so that SQLite copies from one to the other.
  const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_CREATE, SQLITE_OPEN_URI } = constants
  const flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI
  const database = opening.adopt(new Database(':memory:', flags), connection => connection.close())
  const modifiedAt = attachChecked(database, backup, file, steps)
  const hasStore = existsSync(file)
  let identity = hasStore ? await attachStore(database, file, steps) : undefined
  const read = (sql: string) => readInteger(database, sql)
  const pets = read('SELECT count(*) FROM backup.pets')
  const keysToAdd = read(`SELECT count(*) FROM ${hasStore ? `(${missingKeys})` : 'backup.api_keys'}`)
  const connection = opening.move()
  return {
    location: file,
    modifiedAt,
    pets,
    petsNow: hasStore ? read('SELECT count(*) FROM store.pets') : undefined,
    keysToAdd,
    /** The store lacks ids or keys that the backup has, so it may not know later ones either. */
    isBehind: !hasStore || keysToAdd > 0n || read(lastId('store')) < read(lastId('backup')),
    /** Replaces everything or nothing. Rejects with the signal's reason if it aborts before COMMIT. */
    async run(onProgress: (fraction: number) => void, signal: AbortSignal): Promise<void> {
      const nothingChanged = `Nothing has changed in the store ${file}`
      identity ??= await attachStore(database, file, steps)
      try {
        checkSameFile(file, identity)
        checkRoom(statSync(backup).size, file, nothingChanged)
        database.run('BEGIN IMMEDIATE')
        database.run('DELETE FROM store.pets')
        const copy = database.query(copyPets)
        let copied = 0
        for (let { changes } = copy.run(); changes > 0; { changes } = copy.run()) {
          copied += changes
          onProgress(copied / Number(pets))
          await nextTick(signal)
        }
        if (BigInt(copied) !== pets) {
          const took = `the backup has ${pets} animals, and the store took ${copied}`
          throw new StoreError('foreign-trigger', `${nothingChanged}: ${took}`)
        }
        for (const sql of copyTheRest) {
          database.run(sql)
          await nextTick(signal)
        }
        if (statSync(backup).mtime.getTime() !== modifiedAt.getTime()) {
          throw new StoreError('temporary', `${nothingChanged}: the backup was changed meanwhile`)
        }
        checkSameFile(file, identity)
        database.run('COMMIT')
      } catch (error) {
        throw sqliteStoreError(error, nothingChanged, copyProblems)
      }
    },
    [Symbol.dispose]: () => connection.dispose(),
  }
}

/** Signals arrive between event-loop ticks. Throws if one has aborted the work. */
async function nextTick(signal: AbortSignal): Promise<void> {
  await new Promise(setImmediate)
  signal.throwIfAborted()
}

/** Refuses a file that is no intact backup. Returns when it was modified. */
function attachChecked(database: Database, backup: string, file: string, steps: readonly string[]): Date {
  const what = `Cannot restore ${backup}`
  const refuse = (happened: string) => {
    throw new StoreError('bad-backup', `${what}: ${happened}`)
  }
  try {
    const found = statSync(backup)
    if (!found.isFile()) refuse('it is not a regular file')
    if (identify(backup) === identify(file)) refuse('it is the store itself')
    accessSync(backup, modes.R_OK)
    // `immutable` creates no -shm file beside the backup, but ignores a log.
    const hasLog = existsSync(`${backup}-wal`) || existsSync(`${backup}-journal`)
    database.query('ATTACH ? AS backup').run(`${pathToFileURL(backup)}?mode=ro${hasLog ? '' : '&immutable=1'}`)
    const version = isOurs(database, 'backup') ? readVersion(database, 'backup') : 0
    if (version === 0) refuse(notABackup)
    missingMigrations(what, version, steps)
    if (!hasOurTables(database, steps.slice(0, version))) refuse('its tables are not those of this program')
    if (!isIntact(database, 'backup', 'integrity_check')) refuse('it is damaged (integrity_check)')
    // SQLite's own table accepts any value. The other values are checked by the tables of the store.
    if (typeof readInteger(database, lastId('backup')) !== 'bigint') refuse(impossibleValues)
    return found.mtime
  } catch (error) {
    throw sqliteStoreError(error, what, backupProblems)
  }
}

/** Compares the tables that are read with ours: a view can take for ever, and other columns can hold anything. */
function hasOurTables(database: Database, applied: readonly string[]): boolean {
  using expected = new Database(':memory:')
  for (const step of applied) expected.run(step)
  const ours = expected.query(columnsIn('main')).values()
  return Bun.deepEquals(database.query(columnsIn('backup')).values(), ours)
}

/** Creates the store if it is missing, migrates it, and returns the identity of its file. */
async function attachStore(database: Database, file: string, steps: readonly string[]): Promise<string | undefined> {
  await openSqlite(file, { create: true }, steps).close()
  try {
    database.query('ATTACH ? AS store').run(resolve(file))
    configure(database, 'store')
    database.run(`PRAGMA store.cache_size = -${cacheKilobytes}`)
    checkStore(database, file, 'store')
    return identify(file)
  } catch (error) {
    throw sqliteStoreError(error, `Cannot open the store ${file}`)
  }
}

/** The animals go to the write-ahead log and, after COMMIT, to the file: a disk full by then refuses every POST. */
function checkRoom(backupBytes: number, file: string, nothingChanged: string): void {
  const { bavail, bsize } = statfsSync(file)
  const logBytes = 1.1 * backupBytes
  if (bavail * bsize >= logBytes + Math.max(0, logBytes - statSync(file).size)) return
  throw new StoreError(
    'disk-full',
    `${nothingChanged}: the disk has no room for up to 2.2 times the size of the backup`,
  )
}

const notABackup = 'it is not a backup of this program'
const impossibleValues = 'the backup has values that this program never writes'
/** Errors of the backup file, not of the store. */
const backupProblems: Problems = [
  [/^(ENOENT|ENOTDIR)/, 'bad-backup', 'the file does not exist'],
  [/^(EACCES|EPERM)/, 'not-readable', 'no permission to read it'],
  [/^E/, 'bad-backup', 'it cannot be read'],
  [/^SQLITE_(NOTADB|ERROR)/, 'bad-backup', notABackup],
  [/^SQLITE_CORRUPT/, 'bad-backup', 'it is damaged'],
  [/^SQLITE_(CANTOPEN|READONLY)/, 'bad-backup', 'it was not closed cleanly'],
]
/** Both files were checked before. */
const copyProblems: Problems = [
  [/^SQLITE_CONSTRAINT_TRIGGER/, 'foreign-trigger', 'a trigger of the store refuses an animal'],
  [/^SQLITE_CONSTRAINT/, 'bad-backup', impossibleValues],
  [/^SQLITE_(CORRUPT|NOTADB)/, 'failing-disk', 'a file was changed meanwhile, or its disk fails'],
]
