import type { Database } from 'bun:sqlite'
import type { DamageGuard } from './errors.ts'
import type { Writer } from './writer.ts'

/** SQLite reuses the write-ahead log only while no reader uses it, so reads share no transaction this long after a commit. */
const quietMs = 100

/**
 * One read transaction for all reads of an event-loop tick: a read outside of one locks the file, which costs more than the
 * read. A commit of our own writer ends it early. A request sent after a commit of another process arrives in a later tick.
 */
export class TickSnapshot {
  readonly #database: Database
  readonly #writer: Pick<Writer, 'commits'>
  readonly #guard: DamageGuard
  readonly #begin
  readonly #dataVersion
  #isTicking = false
  /** Whether the reads of this tick share a transaction. */
  #isShared = false
  #shareFromMs = 0
  #sharedVersion: bigint | undefined
  #commits = 0
  #version: bigint | undefined

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

  /** Differs after every commit. data_version ignores commits of its own connection, but this connection only reads. */
  version(): bigint | undefined {
    if (this.#version === undefined || !this.#isCurrent()) {
      this.#version = this.read(() => this.#dataVersion.get()?.data_version)
    }
    return this.#version
  }

  #isCurrent(): boolean {
    return this.#isTicking && this.#commits === this.#writer.commits && this.#database.inTransaction === this.#isShared
  }

  #enter(): void {
    if (this.#isCurrent()) return
    endSnapshot(this.#database)
    if (!this.#isTicking) setImmediate(this.#endTick)
    this.#isTicking = true
    this.#commits = this.#writer.commits
    this.#version = undefined
    const nowMs = performance.now()
    this.#isShared = nowMs >= this.#shareFromMs
    if (this.#isShared) this.#share(nowMs)
  }

  #share(nowMs: number): void {
    this.#begin.run()
    this.#version = this.#dataVersion.get()?.data_version
    if (this.#version === this.#sharedVersion) return
    this.#sharedVersion = this.#version
    this.#shareFromMs = nowMs + quietMs
    this.#isShared = false
    endSnapshot(this.#database)
  }

  readonly #endTick = () => {
    this.#isTicking = false
    try {
      endSnapshot(this.#database)
    } catch {
      // The database was closed in this tick. After another failure, the next read tries again.
    }
  }
}

/** The next read sees every commit before it. */
export function endSnapshot(database: Database): void {
  if (database.inTransaction) database.query('COMMIT').run()
}
