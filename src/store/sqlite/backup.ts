import { existsSync, rmSync, statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { SetupError } from '../../errors.ts'
import type { BackupThreadAnswer, BackupThreadData } from './backup-thread.ts'

const progressEveryMs = 100

/** Copies the store into an empty file, checks the copy, and returns how many animals it has. */
export async function backUpSqlite(
  file: string,
  copy: string,
  onProgress: (fraction: number) => void,
  interrupted: AbortSignal,
): Promise<bigint> {
  if (!existsSync(file))
    throw new SetupError(`There is no store at ${file}: set DATABASE_URL to the one to copy`)
  const answer = await copyTo(copy, file, onProgress, interrupted)
  if (answer.ok) return answer.pets
  const why = mends.find(([codes]) => codes.test(answer.code))?.[1] ?? answer.message
  throw new SetupError(`Cannot back up the store ${file}: ${why}${answer.code && ` (${answer.code})`}`)
}

async function copyTo(
  copy: string,
  file: string,
  onProgress: (fraction: number) => void,
  interrupted: AbortSignal,
): Promise<BackupThreadAnswer> {
  const stopWatching = watch(copy, statSync(file).size, onProgress)
  try {
    return await run({ file, copy }, interrupted)
  } finally {
    stopWatching()
    rmSync(`${copy}-journal`, { force: true })
  }
}

function run(data: BackupThreadData, interrupted: AbortSignal): Promise<BackupThreadAnswer> {
  return new Promise((resolve, reject) => {
    interrupted.addEventListener('abort', () => reject(new Error('it was interrupted')))
    const worker = new Worker(new URL('./backup-thread.ts', import.meta.url), { workerData: data })
    worker.on('message', resolve)
    worker.on('error', reject)
    worker.on('exit', () => reject(new Error('the thread that copied ended early')))
  })
}

/** A copy grows towards the size of the store; what still lies in the write-ahead log makes it an estimate. */
function watch(copy: string, expectedBytes: number, onProgress: (fraction: number) => void): () => void {
  const timer = setInterval(() => {
    onProgress(Math.min(0.99, statSync(copy).size / Math.max(1, expectedBytes)))
  }, progressEveryMs)
  return () => clearInterval(timer)
}

const mends: readonly (readonly [RegExp, string])[] = [
  [/^SQLITE_NOTADB/, 'what DATABASE_URL names is not a store of ours'],
  [/^SQLITE_FULL/, 'the disk is full'],
]
