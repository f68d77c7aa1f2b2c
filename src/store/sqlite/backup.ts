import { existsSync, rmSync, statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { SetupError } from '../../errors.ts'
import type { BackupReply, BackupRequest } from './backup-thread.ts'

const progressIntervalMs = 100

/** Copies the store into an empty file, checks the copy, and returns how many animals it has. */
export async function backUpSqlite(
  file: string,
  copy: string,
  onProgress: (fraction: number) => void,
  signal: AbortSignal,
): Promise<bigint> {
  if (!existsSync(file)) {
    throw new SetupError(`There is no store at ${file}: set DATABASE_URL to the store to copy`)
  }
  const stopWatching = watchProgress(copy, statSync(file).size, onProgress)
  try {
    const reply = await runThread({ file, copy }, signal)
    if (reply.ok) return reply.pets
    const problem = problems.find(([codes]) => codes.test(reply.code))?.[1] ?? reply.message
    throw new SetupError(`Cannot back up the store ${file}: ${problem}${reply.code && ` (${reply.code})`}`)
  } finally {
    stopWatching()
    rmSync(`${copy}-journal`, { force: true })
  }
}

function runThread(request: BackupRequest, signal: AbortSignal): Promise<BackupReply> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('the backup was interrupted')))
    const worker = new Worker(new URL('./backup-thread.ts', import.meta.url), { workerData: request })
    worker.on('message', resolve)
    worker.on('error', reject)
    worker.on('exit', () => reject(new Error('the backup thread ended early')))
  })
}

/** The copy grows to about the size of the store; data in the write-ahead log makes this an estimate. */
function watchProgress(copy: string, expectedBytes: number, onProgress: (fraction: number) => void): () => void {
  const timer = setInterval(() => {
    onProgress(Math.min(0.99, statSync(copy).size / Math.max(1, expectedBytes)))
  }, progressIntervalMs)
  return () => clearInterval(timer)
}

const problems: readonly (readonly [RegExp, string])[] = [
  [/^SQLITE_NOTADB/, 'the file is not a store of this program; set DATABASE_URL to the store to copy'],
  [/^SQLITE_FULL/, 'the disk is full; free some space'],
]
