import { Database } from 'bun:sqlite'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { connect, isOurs } from './schema.ts'

export interface BackupRequest {
  readonly file: string
  /** An empty file for the copy. */
  readonly copy: string
}

export type BackupReply =
  | { readonly ok: true; readonly pets: bigint }
  | { readonly ok: false; readonly code: string; readonly message: string }

/** Copies the store as of now, without blocking writers. */
function copyStore({ file, copy }: BackupRequest): void {
  // Not read-only: after a clean stop there is no write-ahead log, and only a writer may create one.
  using store = connect(file, 'readwrite')
  if (!isOurs(store)) throw Object.assign(new Error('not a store of ours'), { code: 'SQLITE_NOTADB' })
  store.query('VACUUM INTO $copy').run({ copy })
}

/** Reads the whole copy, and returns how many animals it has. */
function checkCopy(copy: string): bigint {
  using database = new Database(copy, { readonly: true, safeIntegers: true })
  const [finding] = database.query<{ integrity_check: string }, []>('PRAGMA integrity_check').all()
  if (finding?.integrity_check !== 'ok') throw new Error(`the copy is damaged: ${finding?.integrity_check}`)
  return database.query<{ pets: bigint }, []>('SELECT count(*) AS pets FROM pets').get()?.pets ?? 0n
}

function backUp(request: BackupRequest): BackupReply {
  try {
    copyStore(request)
    return { ok: true, pets: checkCopy(request.copy) }
  } catch (error) {
    const { code = '', message } = error as { code?: string; message: string }
    return { ok: false, code, message }
  }
}

if (!isMainThread) parentPort?.postMessage(backUp(workerData as BackupRequest))
