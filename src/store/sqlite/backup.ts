import { constants, Database } from 'bun:sqlite'
import { accessSync, existsSync, constants as modes, rmSync, statfsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { explained, type Problems, SetupError } from '../../errors.ts'
import { idempotencyKeyMs } from '../../store.ts'
import { keyColumnsWithoutId, missingMigrations } from '../rows.ts'
import { sqliteSetupError, sqliteStoreError } from './errors.ts'
import { openSqlite } from './open.ts'
import {
  checkIntegrity,
  checkSameFile,
  configure,
  connect,
  identityOf,
  isOurs,
  migrations,
  versionOf,
} from './schema.ts'

const progressIntervalMs = 100

/** `copy` is an empty file. */
type Request = { readonly file: string; readonly copy: string }
type Reply =
  | { readonly pets: bigint }
  | { readonly refusal: string }
  | { readonly code: string; readonly message: string }

export async function backUpSqlite(
  file: string,
  copy: string,
  onProgress: (fraction: number) => void,
  signal: AbortSignal,
): Promise<bigint> {
  if (!existsSync(file)) throw new SetupError(`There is no store at ${file}: set DATABASE_URL to the store to copy`)
  // The copy grows to about the size of the store; data in the write-ahead log makes this an estimate.
  const expectedBytes = Math.max(1, statSync(file).size)
  const showProgress = () =>
    onProgress(Math.min(0.99, (statSync(copy, { throwIfNoEntry: false })?.size ?? 0) / expectedBytes))
  const progress = setInterval(showProgress, progressIntervalMs)
  try {
    const reply = await runThread({ file, copy }, signal)
    if ('pets' in reply) return reply.pets
    if ('refusal' in reply) throw new SetupError(reply.refusal)
    const problem = problems.find(([codes]) => codes.test(reply.code))?.[1] ?? reply.message
    throw new SetupError(`Cannot back up the store ${file}: ${problem}${reply.code && ` (${reply.code})`}`)
  } finally {
    clearInterval(progress)
    rmSync(`${copy}-journal`, { force: true })
  }
}

const problems: Problems = [
  [/^SQLITE_NOTADB/, 'the file is not a store of this program; set DATABASE_URL to the store to copy'],
  [/^SQLITE_FULL/, 'the disk is full; free some space'],
]

/** Runs {@link copyAndCheck} in a thread, so that the program can show its progress and be interrupted. */
function runThread(request: Request, signal: AbortSignal): Promise<Reply> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('the backup was interrupted')))
    const worker = new Worker(new URL(import.meta.url), { workerData: request })
    worker.on('message', resolve)
    worker.on('error', reject)
    worker.on('exit', () => reject(new Error('the backup thread ended early')))
  })
}

if (!isMainThread) parentPort?.postMessage(copyAndCheck(workerData as Request))

function copyAndCheck({ file, copy }: Request): Reply {
  try {
    // Not read-only: after a clean stop there is no write-ahead log, and only a writer may create one.
    using store = connect(file, 'readwrite')
    if (!isOurs(store, file)) throw Object.assign(new Error('not a store of ours'), { code: 'SQLITE_NOTADB' })
    // Copies the store as of now, without blocking writers.
    store.query('VACUUM INTO $copy').run({ copy })
    return { pets: countChecked(copy) }
  } catch (error) {
    if (error instanceof SetupError) return { refusal: error.message }
    const { code = '', message } = error as { code?: string; message: string }
    return { code, message }
  }
}

function countChecked(copy: string): bigint {
  using database = new Database(copy, { readonly: true })
  checkIntegrity(database, 'main.integrity_check')
  return readInteger(database, 'SELECT count(*) FROM pets')
}

/** 0 if there is no value. */
function readInteger(database: Database, sql: string): bigint {
  const [[value] = []] = database.query(sql).safeIntegers(true).values()
  return (value ?? 0n) as bigint
}

/** Copied in one statement. The signal is checked between two statements. */
const copiedPetsMax = 10_000
/** Holds the pages of the table and its index that are being filled. */
const cacheKilobytes = 16 * 1024

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

const keyDates = ['created_at_ms', 'expires_at_ms', 'revoked_at_ms', 'last_used_at_ms', 'deprecated_last_used_at_ms']
/** The last date of JavaScript. */
const dateMsMax = 8_640_000_000_000_000n

/** Finds values that the tables allow and this program never writes. */
const impossibleValues = [
  'SELECT 1 FROM backup.pets WHERE id < 1',
  `SELECT 1 FROM backup.sqlite_sequence WHERE name = 'pets' AND (typeof(seq) <> 'integer' OR seq < 0)`,
  `SELECT 1 FROM backup.idempotency_keys WHERE pet_id < 1 OR created_at_ms NOT BETWEEN 0 AND ${dateMsMax}`,
  ...keyDates.map(column => `SELECT 1 FROM backup.api_keys WHERE ${column} NOT BETWEEN 0 AND ${dateMsMax}`),
]

const copyPets = `
  INSERT INTO store.pets (${petColumns}) SELECT ${petColumns} FROM backup.pets
  WHERE id > ifnull((SELECT max(id) FROM store.pets), 0) ORDER BY id LIMIT ${copiedPetsMax}`

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
export async function openSqliteRestore(file: string, backup: string, known = migrations) {
  using opening = new DisposableStack()
  // One connection for both files, so that SQLite copies from one to the other.
  const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_CREATE, SQLITE_OPEN_URI } = constants
  const flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI
  const database = opening.adopt(new Database(':memory:', flags), connection => connection.close())
  const modifiedAt = attachChecked(database, backup, file, known)
  const hasStore = existsSync(file)
  let identity = hasStore ? await attachStore(database, file, known) : undefined
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
      identity ??= await attachStore(database, file, known)
      try {
        checkSameFile(file, identity)
        checkFreeSpace(file, statSync(backup).size)
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
          const problem = `it has ${pets} animals, and the store took ${copied}; look for triggers in the store`
          throw new SetupError(`Cannot restore ${backup}, and nothing has changed: ${problem}`)
        }
        for (const sql of copyTheRest) {
          database.run(sql)
          await nextTick(signal)
        }
        if (Number(statSync(backup).mtime) !== Number(modifiedAt))
          throw new SetupError(`Cannot restore ${backup}: it was changed meanwhile`)
        checkSameFile(file, identity)
        database.run('COMMIT')
      } catch (error) {
        throw sqliteStoreError(explained(`Cannot restore ${backup}, and nothing has changed`, error, restoreProblems))
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
function attachChecked(database: Database, backup: string, file: string, known: readonly string[]): Date {
  try {
    const found = statSync(backup)
    if (!found.isFile()) throw Object.assign(new Error('not a regular file'), { code: 'EISDIR' })
    if (identityOf(backup) === identityOf(file)) {
      throw new SetupError(`Cannot restore ${backup}: it is the store itself; name a backup`)
    }
    accessSync(backup, modes.R_OK)
    // `immutable` creates no -shm file beside the backup, but ignores a log.
    const hasLog = existsSync(`${backup}-wal`) || existsSync(`${backup}-journal`)
    database.query('ATTACH ? AS backup').run(`${pathToFileURL(backup)}?mode=ro${hasLog ? '' : '&immutable=1'}`)
    const version = isOurs(database, backup, 'backup') ? versionOf(database, 'backup') : 0
    if (version === 0) throw Object.assign(new Error('not a store of ours'), { code: 'SQLITE_NOTADB' })
    missingMigrations(backup, version, known)
    checkTables(database, backup, known.slice(0, version))
    checkIntegrity(database, 'backup.integrity_check')
    if (impossibleValues.some(sql => database.query(`${sql} LIMIT 1`).get())) {
      throw new SetupError(
        `Cannot restore ${backup}: it contains values that this program never writes; use another backup`,
      )
    }
    return found.mtime
  } catch (error) {
    throw explained(`Cannot restore ${backup}`, error, backupProblems)
  }
}

/** Compares the tables that are read with ours: a view can take for ever, and other columns can hold anything. */
function checkTables(database: Database, backup: string, applied: readonly string[]): void {
  using expected = new Database(':memory:')
  for (const step of applied) expected.run(step)
  const ours = expected.query(columnsIn('main')).values()
  if (Bun.deepEquals(database.query(columnsIn('backup')).values(), ours)) return
  throw new SetupError(`Cannot restore ${backup}: its tables are not those of this program; use another backup`)
}

/** Creates the store if it is missing, migrates it, and returns the identity of its file. */
async function attachStore(database: Database, file: string, known: readonly string[]): Promise<string | undefined> {
  await openSqlite(file, { create: true }, known).close()
  try {
    database.query('ATTACH ? AS store').run(resolve(file))
    configure(database, 'store')
    database.run(`PRAGMA store.cache_size = -${cacheKilobytes}`)
    checkIntegrity(database, 'store.quick_check')
    return identityOf(file)
  } catch (error) {
    throw sqliteSetupError(error, file)
  }
}

/** The animals go to the write-ahead log and, after COMMIT, to the file: a disk that is full by then refuses every POST. */
function checkFreeSpace(file: string, backupBytes: number): void {
  const { bavail, bsize } = statfsSync(file)
  const logBytes = 1.1 * backupBytes
  if (bavail * bsize >= logBytes + Math.max(0, logBytes - statSync(file).size)) return
  throw Object.assign(new Error('too little free space'), { code: 'ENOSPC' })
}

const backupProblems: Problems = [
  [/^(ENOENT|ENOTDIR)$/, 'the file does not exist'],
  [/^EISDIR$/, 'it is not a regular file'],
  [/^(EACCES|EPERM)$/, 'no permission to read it'],
  [/^E/, 'it cannot be read'],
  [/^SQLITE_(NOTADB|ERROR)/, 'it is not a backup of this program'],
  [/^SQLITE_CORRUPT/, 'it is damaged; use another backup'],
  [
    /^SQLITE_/,
    'it was not closed cleanly; copy it and its log to a folder where you can write, and open it with sqlite3',
  ],
]

const restoreProblems: Problems = [
  [
    /^(SQLITE_FULL|ENOSPC)/,
    'the disk has too little free space; the restore needs up to 2.2 times the size of the backup',
  ],
  [/^SQLITE_(BUSY|LOCKED)/, 'another process has locked the store; try again'],
  [
    /^SQLITE_CONSTRAINT/,
    'it has an animal or a key that this program would refuse; correct it in a copy of the backup',
  ],
  [/^SQLITE_(CORRUPT|NOTADB|IOERR)/, 'the file was changed, or its disk fails; check both, and try again'],
]
