import type { Database } from 'bun:sqlite'
import type { DamageGuard } from './errors.ts'
import type { Writer } from './writer.ts'

/** SQLite reuses the write-ahead log only while nobody reads it: no transaction is shared this long after a commit. */
const quietMs = 100

type TickState =
  /** There was no read yet in this event-loop tick. */
  | 'idle'
  /** All reads of the tick use one transaction: locking the file costs more than a read. */
  | 'shared'
  /** Each read locks the file for itself, because there was a commit less than `quietMs` ago. */
  | 'single'

/**
 * Gives reads a snapshot of the file, and the version that it has. A commit of our own writer starts the tick
 * again. A request sent after a commit of another process arrives in a later tick, unless it opens its connection.
 */
export class TickSnapshot {
  readonly #database: Database
  readonly #writer: Pick<Writer, 'commits'>
  readonly #guard: DamageGuard
  readonly #begin
  readonly #dataVersion
  #state: TickState = 'idle'
  #shareFromMs = 0
  #sharedVersion: bigint | undefined
  #commits = 0

  constructor(database: Database, writer: Pick<Writer, 'commits'>, guard: DamageGuard) {
    this.#database = database
    this.#writer = writer
    this.#guard = guard
    this.#begin = database.query('BEGIN')
    this.#dataVersion = database.query<{ data_version: bigint }, []>('PRAGMA data_version')
  }

  read<T>(statement: () => T): T {
    return this.#guard.run(() => {
      this.#enter()
      return statement()
    })
  }

  /** Reads what is committed now, not what the other reads of this tick see. */
  readLatest<T>(statement: () => T): T {
    return this.#guard.run(() => {
      endTransaction(this.#database)
      return statement()
    })
  }

  /** Differs after every commit. data_version ignores commits of its own connection, but this connection only reads. */
  version(): bigint | undefined {
    if (this.#state === 'shared' && this.#isCurrent()) return this.#sharedVersion
    return this.read(() => this.#dataVersion.get()?.data_version)
  }

  #isCurrent(): boolean {
    if (this.#state === 'idle' || this.#commits !== this.#writer.commits) return false
    return this.#database.inTransaction === (this.#state === 'shared')
  }

  #enter(): void {
    if (this.#isCurrent()) return
    endTransaction(this.#database)
    if (this.#state === 'idle') setImmediate(this.#endTick)
    this.#state = 'single'
    this.#commits = this.#writer.commits
    const nowMs = performance.now()
    if (nowMs < this.#shareFromMs) return
    this.#begin.run()
    const version = this.#dataVersion.get()?.data_version
    if (version === this.#sharedVersion) {
      this.#state = 'shared'
      return
    }
    this.#sharedVersion = version
    this.#shareFromMs = nowMs + quietMs
    endTransaction(this.#database)
  }

  readonly #endTick = () => {
    this.#state = 'idle'
    try {
      endTransaction(this.#database)
    } catch {
      // The database was closed in this tick. After another failure, the next read tries again.
    }
  }
}

/** The next read sees every commit before it. */
function endTransaction(database: Database): void {
  if (database.inTransaction) database.query('COMMIT').run()
}
