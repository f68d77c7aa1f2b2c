import { Database } from 'bun:sqlite'
import { existsSync, rmSync, statSync } from 'node:fs'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { SetupError } from '../../errors.ts'
import { connect, isOurs } from './schema.ts'

const progressIntervalMs = 100

/** `copy` is an empty file. */
type Request = { readonly file: string; readonly copy: string }
type Reply = { readonly pets: bigint } | { readonly code: string; readonly message: string }

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
    const problem = problems.find(([codes]) => codes.test(reply.code))?.[1] ?? reply.message
    throw new SetupError(`Cannot back up the store ${file}: ${problem}${reply.code && ` (${reply.code})`}`)
  } finally {
    clearInterval(progress)
    rmSync(`${copy}-journal`, { force: true })
  }
}

const problems: readonly (readonly [RegExp, string])[] = [
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
    if (!isOurs(store)) throw Object.assign(new Error('not a store of ours'), { code: 'SQLITE_NOTADB' })
    // Copies the store as of now, without blocking writers.
    store.query('VACUUM INTO $copy').run({ copy })
    return { pets: countChecked(copy) }
  } catch (error) {
    const { code = '', message } = error as { code?: string; message: string }
    return { code, message }
  }
}

function countChecked(copy: string): bigint {
  using database = new Database(copy, { readonly: true, safeIntegers: true })
  const [finding] = database.query<{ integrity_check: string }, []>('PRAGMA integrity_check').all()
  if (finding?.integrity_check !== 'ok') throw new Error(`the copy is damaged: ${finding?.integrity_check}`)
  return database.query<{ pets: bigint }, []>('SELECT count(*) AS pets FROM pets').get()?.pets ?? 0n
}
