import { existsSync, rmSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { StoreError } from '../../errors.ts'
import type { CopyReply, CopyRequest } from './backup-thread.ts'
import { Thread } from './thread.ts'

const progressIntervalMs = 100

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
  if (!existsSync(file)) {
    throw new StoreError('no-file', `Cannot back up the store ${resolve(file)}: it does not exist`)
  }
  // The copy grows to about the size of the store; data in the write-ahead log makes this an estimate.
  const expectedBytes = Math.max(1, statSync(file).size)
  const showProgress = () =>
    onProgress(Math.min(0.99, (statSync(copy, { throwIfNoEntry: false })?.size ?? 0) / expectedBytes))
  const progress = setInterval(showProgress, progressIntervalMs)
  try {
    const reply = await copyInThread({ file, copy }, signal)
    if ('pets' in reply) return reply.pets
    throw new StoreError(reply.problem, reply.message)
  } finally {
    clearInterval(progress)
    rmSync(`${copy}-journal`, { force: true })
  }
}

async function copyInThread(request: CopyRequest, signal: AbortSignal): Promise<CopyReply> {
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  signal.addEventListener('abort', () => reject(signal.reason))
  const thread = new Thread<CopyRequest, CopyReply>(new URL('./backup-thread.ts', import.meta.url))
  return Promise.race([thread.send(request), aborted]).finally(() => thread.terminate())
}
