import { Database } from 'bun:sqlite'
import { existsSync, rmSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { StoreError, type StoreProblem } from '../../errors.ts'
import { type Problems, sqliteStoreError } from './errors.ts'
import { connect, isEmpty, isIntact, isOurs, readInteger } from './schema.ts'

const progressIntervalMs = 100

/** `copy` is an empty file. */
type CopyRequest = { readonly file: string; readonly copy: string }
type CopyOutcome = { readonly pets: bigint } | { readonly problem: StoreProblem; readonly message: string }

/**
 * Copies a store as of one moment into an empty file while others read and write, checks the copy, and returns how many
 * animals it has. Applies no migration: a backup comes before an upgrade.
 */
export async function backUpSqlite(
  file: string,
  copy: string,
  onProgress: (fraction: number) => void,
  signal: AbortSignal,
): Promise<bigint> {
  if (!existsSync(file)) throw new StoreError('no-file', `${cannotBackUp(resolve(file))}: it does not exist`)
  // The copy grows to about the size of the store; data in the write-ahead log makes this an estimate.
  const expectedBytes = Math.max(1, statSync(file).size)
  const showProgress = () =>
    onProgress(Math.min(0.99, (statSync(copy, { throwIfNoEntry: false })?.size ?? 0) / expectedBytes))
  const progress = setInterval(showProgress, progressIntervalMs)
  try {
    const outcome = await runThread({ file, copy }, signal)
    if ('pets' in outcome) return outcome.pets
    throw new StoreError(outcome.problem, outcome.message)
  } finally {
    clearInterval(progress)
    rmSync(`${copy}-journal`, { force: true })
  }
}

const cannotBackUp = (file: string) => `Cannot back up the store ${file}`
const notOurs = 'the file is not a store of this program'
const copyProblems: Problems = [
  [/^SQLITE_NOTADB/, 'nothing-to-copy', notOurs],
  [/^SQLITE_CORRUPT/, 'damaged', 'the file is damaged'],
  [/^SQLITE_(FULL|IOERR_SHMSIZE)/, 'disk-full', 'the disk is full'],
  [/^SQLITE_(BUSY|LOCKED)/, 'locked', 'another process has locked it'],
  [/^SQLITE_(CANTOPEN|READONLY)/, 'no-permission', 'it cannot be opened'],
]

/** Runs {@link copyAndCheck} in a thread, so that the program can show its progress and be interrupted. */
function runThread(request: CopyRequest, signal: AbortSignal): Promise<CopyOutcome> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason))
    const worker = new Worker(new URL(import.meta.url), { workerData: request })
    worker.on('message', resolve)
    worker.on('error', reject)
    worker.on('exit', () => reject(new Error('the backup thread ended early')))
  })
}

function copyAndCheck({ file, copy }: CopyRequest): CopyOutcome {
  try {
    // Not read-only: after a clean stop there is no write-ahead log, and only a writer may create one.
    using store = connect(file, 'readwrite')
    if (isEmpty(store)) throw new StoreError('no-file', `${cannotBackUp(resolve(file))}: it has no tables`)
    if (!isOurs(store, cannotBackUp(file))) throw new StoreError('nothing-to-copy', `${cannotBackUp(file)}: ${notOurs}`)
    // Copies the store as of now, without blocking writers.
    store.query('VACUUM INTO $copy').run({ copy })
    // The runtime trims white space from a name: an absolute path does not begin with any.
    using copied = new Database(resolve(copy), { readonly: true })
    if (isIntact(copied, 'main', 'integrity_check')) return { pets: readInteger(copied, 'SELECT count(*) FROM pets') }
    return { problem: 'unreadable', message: `${cannotBackUp(file)}: the copy is damaged (integrity_check)` }
  } catch (error) {
    const refusal = sqliteStoreError(error, cannotBackUp(file), copyProblems)
    if (refusal instanceof StoreError) return { problem: refusal.problem, message: refusal.message }
    return { problem: 'unreadable', message: `${cannotBackUp(file)}: ${error}` }
  }
}

if (!isMainThread) parentPort?.postMessage(copyAndCheck(workerData as CopyRequest))
