import { Database } from 'bun:sqlite'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { connect } from './connection.ts'
import { isOurs } from './migrations.ts'

/** What the thread is started with: the store, and an empty file for its copy. */
export interface BackupThreadData {
  readonly file: string
  readonly copy: string
}

/** What it answers: what the copy holds, or why there is none. */
export type BackupThreadAnswer =
  | { readonly ok: true; readonly pets: bigint }
  | { readonly ok: false; readonly code: string; readonly message: string }

/** Copies the store as it is at this moment; writers are not held up. */
function copyStore({ file, copy }: BackupThreadData): void {
  // Not read-only: after a clean stop there is no write-ahead log, and only a writer may make one.
  using store = connect(file, 'readwrite')
  if (!isOurs(store)) throw Object.assign(new Error('not ours'), { code: 'SQLITE_NOTADB' })
  store.query('VACUUM INTO $copy').run({ copy })
}

/** Reads the whole copy, as whoever restores it would. */
function checkCopy(copy: string): bigint {
  using database = new Database(copy, { readonly: true, safeIntegers: true })
  const [verdict] = database.query<{ integrity_check: string }, []>('PRAGMA integrity_check').all()
  if (verdict?.integrity_check !== 'ok') throw new Error(`the copy is damaged: ${verdict?.integrity_check}`)
  return database.query<{ pets: bigint }, []>('SELECT count(*) AS pets FROM pets').get()?.pets ?? 0n
}

function answer(data: BackupThreadData): BackupThreadAnswer {
  try {
    copyStore(data)
    return { ok: true, pets: checkCopy(data.copy) }
  } catch (error) {
    const { code = '', message } = error as { code?: string; message: string }
    return { ok: false, code, message }
  }
}

if (!isMainThread) parentPort?.postMessage(answer(workerData as BackupThreadData))
