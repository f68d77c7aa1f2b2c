import type { Database } from 'bun:sqlite'
import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../../errors.ts'
import { connect } from './connection.ts'
import { DamageGuard, runtimeErrorOf } from './fault.ts'
import { identityOf, refuseAnother } from './identity.ts'
import {
  createWrites,
  type Failure,
  isOneStatement,
  type Write,
  type Writes,
  type Written,
} from './writes.ts'

/** Commits batches of writes, each batch in one transaction. */
export interface Committer {
  /** Opens the file now; if that fails, the first batch tries again. */
  open(): void
  commit(batch: readonly Write[]): Written
  close(): void
}

export function createCommitter(file: string, identity = identityOf(file)): Committer {
  const guard = new DamageGuard()
  let open: { readonly database: Database; readonly writes: Writes } | undefined

  function connection() {
    if (!open) {
      const database = connect(file, 'readwrite')
      open = { database, writes: createWrites(database) }
    }
    return open
  }

  function commitAll(batch: readonly Write[]): Written {
    refuseAnother(file, identity)
    const { database, writes } = connection()
    const failures = new Map<number, Failure>()
    database.query('BEGIN IMMEDIATE').run()
    try {
      const values = batch.map((write, index) =>
        applyOne(database, writes, write, failure => failures.set(index, failure)),
      )
      database.query('COMMIT').run()
      return failures.size === 0 ? { values } : { values, failures }
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
    open() {
      try {
        connection()
      } catch {
        // The first batch reports what is wrong.
      }
    },
    commit(batch) {
      try {
        return guard.run(() => commitAll(batch))
      } catch (error) {
        // The next batch begins with a new connection: this one may have lost its file.
        close()
        const failure = failureOf(error)
        const values = batch.map(() => undefined)
        return { values, failures: new Map(batch.map((_, index) => [index, failure])) }
      }
    },
    close,
  }
}

/** Takes writes as they come and commits all that have come at the next turn of this thread's event loop. */
export function gather(commit: (batch: readonly Write[]) => void): (writes: readonly Write[]) => void {
  let gathered: Write[] = []
  return writes => {
    if (gathered.length === 0) setImmediate(commitGathered)
    gathered.push(...writes)
  }

  function commitGathered(): void {
    const batch = gathered
    gathered = []
    commit(batch)
  }
}

/** A write that fails takes back what it did itself, and its neighbours go on. */
function applyOne(
  database: Database,
  writes: Writes,
  [name, ...args]: Write,
  failed: (failure: Failure) => void,
): unknown {
  const write = () => (writes[name] as (...given: readonly unknown[]) => unknown)(...args)
  try {
    return isOneStatement(name) ? write() : inSavepoint(database, write)
  } catch (error) {
    // Nothing at all is committed to a damaged file.
    if (!database.inTransaction || runtimeErrorOf(error) instanceof StoreDamaged) throw error
    failed(failureOf(error))
    return undefined
  }
}

function inSavepoint<T>(database: Database, write: () => T): T {
  database.query('SAVEPOINT write').run()
  try {
    const value = write()
    database.query('RELEASE write').run()
    return value
  } catch (error) {
    // Some faults have rolled back everything by themselves.
    if (database.inTransaction) {
      database.run('ROLLBACK TO write')
      database.run('RELEASE write')
    }
    throw error
  }
}

function failureOf(error: unknown): Failure {
  const told = runtimeErrorOf(error)
  if (told instanceof StoreDamaged) return { kind: 'damaged', message: told.message }
  if (told instanceof StoreUnavailable) return { kind: 'unavailable', message: told.message }
  if (told instanceof IdsExhausted) return { kind: 'ids exhausted', message: told.message }
  return { kind: 'bug', message: told instanceof Error ? told.stack || told.message : String(told) }
}
