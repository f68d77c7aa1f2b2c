import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { SetupError } from '../../fault.ts'
import type { Backup } from '../stores.ts'
import type { BackupThreadAnswer, BackupThreadData } from './backup-thread.ts'

const progressEveryMs = 100

/** Copies the store into a file that must not be there yet. It appears whole and checked, or not at all. */
export async function backUpSqlite(
  file: string,
  target: string,
  onProgress: (fraction: number) => void,
  interrupted: AbortSignal,
): Promise<Backup> {
  if (!existsSync(file))
    throw new SetupError(`There is no store at ${file}: set DATABASE_URL to the one to copy`)
  // Beside the target, so that it can be given its name in one step; readable by its owner only, from the start.
  const copy = `${target}.partial-${process.pid}`
  try {
    if (existsSync(target)) throw Object.assign(new Error('it exists'), { code: 'EEXIST' })
    closeSync(openSync(copy, 'wx', 0o600))
    const stopWatching = watch(copy, statSync(file).size, onProgress)
    const answer = await run({ file, copy }, interrupted).finally(stopWatching)
    if (!answer.ok) throw Object.assign(new Error(answer.message), { code: answer.code })
    return { pets: answer.pets, bytes: publish(copy, target) }
  } catch (error) {
    throw backupErrorOf(error, target)
  } finally {
    for (const part of [copy, `${copy}-journal`]) rmSync(part, { force: true })
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

/** SQLite leaves its copy in the system's cache: it is on the disk before it gets its name. */
function publish(copy: string, target: string): Backup['bytes'] {
  sync(copy)
  giveName(copy, target)
  sync(dirname(target))
  return statSync(target).size
}

/** A link, unlike a rename, never replaces what is there; but not every file system has links. */
function giveName(copy: string, target: string): void {
  try {
    linkSync(copy, target)
  } catch (error) {
    if (!/^(EPERM|ENOTSUP|ENOSYS)$/.test((error as { code?: string }).code ?? '') || existsSync(target))
      throw error
    renameSync(copy, target)
  }
}

function sync(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

function backupErrorOf(error: unknown, target: string): unknown {
  const { code = '', message } = error as { code?: string; message: string }
  const why = mends.find(([codes]) => codes.test(code))?.[1] ?? message
  return new SetupError(`Cannot back up to ${target}: ${why}${code && ` (${code})`}`, { cause: error })
}

const mends: readonly (readonly [RegExp, string])[] = [
  [/^EEXIST/, 'there is a file of this name; choose another one'],
  [/^SQLITE_NOTADB/, 'what DATABASE_URL names is not a store of ours'],
  [/^(ENOENT|ENOTDIR)/, 'its folder does not exist; create it'],
  [/^(EACCES|EPERM|EROFS)/, 'no right to write there'],
  [/^(ENOSPC|EDQUOT|SQLITE_FULL)/, 'the disk is full'],
]
