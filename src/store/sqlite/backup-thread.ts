// Copies and checks a store, in a thread, so that the command can show its progress and be interrupted.

import { Database } from 'bun:sqlite'
import { resolve } from 'node:path'
import { StoreError, type StoreProblem } from '../../errors.ts'
import { sqliteStoreError } from './errors.ts'
import { checkFile, connect, isEmpty, isIntact, isOurs, readInteger } from './schema.ts'
import { replyWith } from './thread.ts'

/** `copy` is an empty file. */
export type CopyRequest = { readonly file: string; readonly copy: string }
export type CopyReply = { readonly pets: bigint } | { readonly problem: StoreProblem; readonly message: string }

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
