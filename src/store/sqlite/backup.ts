// Copies and checks a store, in a thread, so that the command can show its progress and be interrupted.

import { Database } from 'bun:sqlite'
import { existsSync, rmSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { StoreError, type StoreProblem } from '../../errors.ts'
import { sqliteStoreError } from './errors.ts'
import { checkFile, connect, isEmpty, isIntact, isOurs, readInteger } from './schema.ts'
import { replyWith, Thread } from './thread.ts'

const progressIntervalMs = 100

/** `copy` is an empty file. */
type CopyRequest = { readonly file: string; readonly copy: string }
type CopyReply = { readonly pets: bigint } | { readonly problem: StoreProblem; readonly message: string }

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
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  signal.addEventListener('abort', () => reject(signal.reason))
  // The copy grows to about the size of the store; data in the write-ahead log makes this an estimate.
  const expectedBytes = Math.max(1, statSync(file).size)
  const showProgress = () =>
    onProgress(Math.min(0.99, (statSync(copy, { throwIfNoEntry: false })?.size ?? 0) / expectedBytes))
  const progress = setInterval(showProgress, progressIntervalMs)
  const thread = new Thread<CopyRequest, CopyReply>(new URL('./backup.ts', import.meta.url))
  try {
    const reply = await Promise.race([thread.send({ file, copy }), aborted])
    if ('pets' in reply) return reply.pets
    throw new StoreError(reply.problem, reply.message)
  } finally {
    thread.terminate()
    clearInterval(progress)
    rmSync(`${copy}-journal`, { force: true })
  }
}

/** In the thread. */
function copyAndCheck({ file, copy }: CopyRequest): CopyReply {
  const what = `Cannot back up the store ${file}`
  try {
    checkFile(file, what)
    // Not read-only: after a clean stop there is no write-ahead log, and only a writer may create one.
    using store = connect(file, 'readwrite')
    if (isEmpty(store)) throw new StoreError('no-file', `Cannot back up the store ${resolve(file)}: it has no tables`)
    if (!isOurs(store)) throw new StoreError('wrong-file', `${what}: it is a database of another program`)
    // Copies the store as of now, without blocking writers.
    store.query('VACUUM INTO $copy').run({ copy })
    // The runtime trims white space from a name: an absolute path does not begin with any.
    using copied = new Database(resolve(copy), { readonly: true })
    if (isIntact(copied, 'main', 'integrity_check')) return { pets: readInteger(copied, 'SELECT count(*) FROM pets') }
    return { problem: 'failing-disk', message: `${what}: the copy is damaged (integrity_check)` }
  } catch (error) {
    const refusal = sqliteStoreError(error, what)
    if (refusal instanceof StoreError) return { problem: refusal.problem, message: refusal.message }
    return { problem: 'failing-disk', message: `${what}: ${error}` }
  }
}

replyWith(copyAndCheck)
