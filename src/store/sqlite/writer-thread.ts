import type { Database } from 'bun:sqlite'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { StoreUnavailable } from '../../fault.ts'
import { connect } from './connection.ts'
import { runtimeErrorOf } from './fault.ts'
import { createWrites, type Write, type Writes, type Written } from './writes.ts'

/** What the writer's thread is started with. */
export interface WriterThreadData {
  readonly file: string
}

/** Commits batches of writes, each batch in one transaction. */
export function createCommitter(file: string): { commit(batch: readonly Write[]): Written[]; close(): void } {
  let open: { readonly database: Database; readonly writes: Writes } | undefined

  function connection() {
    if (!open) {
      const database = connect(file, 'readwrite')
      open = { database, writes: createWrites(database) }
    }
    return open
  }

  function commitAll(batch: readonly Write[]): Written[] {
    const { database, writes } = connection()
    database.run('BEGIN IMMEDIATE')
    try {
      const written = batch.map(write => applyOne(database, writes, write))
      database.run('COMMIT')
      return written
    } catch (error) {
      // Some faults, a full disk among them, have rolled back by themselves.
      if (database.inTransaction) database.run('ROLLBACK')
      throw error
    }
  }

  function close(): void {
    open?.database.close()
    open = undefined
  }

  return {
    commit(batch) {
      try {
        return commitAll(batch)
      } catch (error) {
        // The next batch begins with a new connection: this one may have lost its file.
        close()
        return batch.map(() => failureOf(error))
      }
    },
    close,
  }
}

/** A write that fails takes back what it did itself, and its neighbours go on. */
function applyOne(database: Database, writes: Writes, { name, args }: Write): Written {
  database.run('SAVEPOINT write')
  try {
    const value = (writes[name] as (...given: readonly unknown[]) => unknown)(...args)
    database.run('RELEASE write')
    return { ok: true, value }
  } catch (error) {
    if (!database.inTransaction) throw error
    database.run('ROLLBACK TO write')
    database.run('RELEASE write')
    return failureOf(error)
  }
}

function failureOf(error: unknown): Written {
  const told = runtimeErrorOf(error)
  const message = told instanceof Error ? (told.stack ?? told.message) : String(told)
  return { ok: false, unavailable: told instanceof StoreUnavailable, message }
}

if (!isMainThread && parentPort) {
  const port = parentPort
  const committer = createCommitter((workerData as WriterThreadData).file)
  port.on('message', (batch: readonly Write[] | 'close') => {
    if (batch !== 'close') return port.postMessage(committer.commit(batch))
    committer.close()
    port.postMessage('closed')
  })
}
