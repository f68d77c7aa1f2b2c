import type { Database } from 'bun:sqlite'
import type { DamageGuard } from './errors.ts'

/** SQLite reuses the write-ahead log only while no transaction reads it: none is shared this long after a commit. */
const quietMs = 100

/** Reads within this time see the same state. From a commit to its next request, a client needs longer. */
const sharedMs = 0.1

/** Part of an event-loop tick: its reads see the same state, until a commit of our own writer. */
interface Part {
  readonly startedMs: number
  /** The writer's commits before it. */
  readonly commits: number
  readonly version: bigint | undefined
  /** Whether its reads use one transaction. */
  readonly isShared: boolean
}

/** Gives reads that follow one another in an event-loop tick one transaction: locking the file costs more than a read. */
export class TickSnapshot {
  readonly #database: Database
  readonly #writer: { readonly commits: number }
  readonly #guard: DamageGuard
  readonly #beginTransaction
  readonly #dataVersion
  /** Undefined until the first read of a tick. */
  #part: Part | undefined
  #lastVersion: bigint | undefined
  #quietUntilMs = 0

  constructor(database: Database, writer: { readonly commits: number }, guard: DamageGuard) {
    this.#database = database
    this.#writer = writer
    this.#guard = guard
    this.#beginTransaction = database.query('BEGIN')
    this.#dataVersion = database.query<{ data_version: bigint }, []>('PRAGMA data_version')
  }

  read<T>(statement: () => T): T {
    return this.#guard.run(() => {
      if (this.#current()?.isShared) return statement()
      if (performance.now() < this.#quietUntilMs) this.#end()
      else this.#begin(true)
      return statement()
    })
  }

  /** Reads what is committed now, not what the reads before it have seen. */
  readLatest<T>(statement: () => T): T {
    return this.#guard.run(() => {
      this.#end()
      return statement()
    })
  }

  /** Differs after every commit of others; this connection only reads. */
  version(): bigint | undefined {
    return this.#guard.run(() => (this.#current() ?? this.#begin(false)).version)
  }

  /** The part that began last, unless a client may know of a commit that it does not show. */
  #current(): Part | undefined {
    const part = this.#part
    if (!part || part.commits !== this.#writer.commits) return undefined
    if (performance.now() - part.startedMs >= sharedMs) return undefined
    return this.#database.inTransaction === part.isShared ? part : undefined
  }

  /** Begins a part, with a transaction if it is to be shared and there was no commit less than `quietMs` ago. */
  #begin(isShared: boolean): Part {
    const startedMs = performance.now()
    const { commits } = this.#writer
    this.#end()
    if (isShared) this.#beginTransaction.run()
    const version = this.#dataVersion.get()?.data_version
    const isQuiet = version === this.#lastVersion
    if (!isQuiet) {
      this.#end()
      this.#lastVersion = version
      this.#quietUntilMs = startedMs + quietMs
    }
    if (!this.#part) setImmediate(() => this.#leave())
    this.#part = { startedMs, commits, version, isShared: isShared && isQuiet }
    return this.#part
  }

  /** The next read sees every commit before it. */
  #end(): void {
    if (this.#database.inTransaction) this.#database.query('COMMIT').run()
  }

  #leave(): void {
    this.#part = undefined
    try {
      this.#end()
    } catch {
      // The database was closed in this tick. After another failure, the next read tries again.
    }
  }
}
