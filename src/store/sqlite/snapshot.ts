import type { Database } from 'bun:sqlite'
import type { DamageGuard } from './errors.ts'

/** SQLite reuses the write-ahead log only while nobody reads it: no transaction is shared this long after a commit. */
const quietMs = 100

/** What the reads of an event-loop tick share, until a commit of our own writer. */
interface Tick {
  /** The writer's commits before it. */
  readonly commits: number
  /** Of the transaction that all reads use; undefined if each read has its own. */
  readonly sharedVersion: bigint | undefined
}

/**
 * Gives all reads of an event-loop tick one transaction, because locking the file costs more than a read. A request sent
 * after a commit of another process arrives in a later tick, unless it opens its connection.
 */
export class TickSnapshot {
  readonly #database: Database
  readonly #writer: { readonly commits: number }
  readonly #guard: DamageGuard
  readonly #begin
  readonly #dataVersion
  /** Undefined until the first read of a tick. */
  #tick: Tick | undefined
  #lastVersion: bigint | undefined
  #quietUntilMs = 0

  constructor(database: Database, writer: { readonly commits: number }, guard: DamageGuard) {
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
      this.#end()
      return statement()
    })
  }

  /** Of what `read` reads. Differs after every commit of others; this connection only reads. */
  version(): bigint | undefined {
    return this.#guard.run(() => this.#enter().sharedVersion ?? this.#readVersion())
  }

  /** The current tick, which begins with its first read, and again after a commit of our own writer. */
  #enter(): Tick {
    const { commits } = this.#writer
    const isShared = this.#tick?.sharedVersion !== undefined
    if (this.#tick?.commits === commits && this.#database.inTransaction === isShared) return this.#tick
    this.#end()
    if (!this.#tick) setImmediate(() => this.#leave())
    this.#tick = { commits, sharedVersion: this.#share() }
    return this.#tick
  }

  /** Begins a transaction and returns its version, unless there was a commit less than `quietMs` ago. */
  #share(): bigint | undefined {
    const nowMs = performance.now()
    if (nowMs < this.#quietUntilMs) return undefined
    this.#begin.run()
    const version = this.#readVersion()
    if (version === this.#lastVersion) return version
    this.#end()
    this.#lastVersion = version
    this.#quietUntilMs = nowMs + quietMs
    return undefined
  }

  #readVersion(): bigint | undefined {
    return this.#dataVersion.get()?.data_version
  }

  /** The next read sees every commit before it. */
  #end(): void {
    if (this.#database.inTransaction) this.#database.query('COMMIT').run()
  }

  #leave(): void {
    this.#tick = undefined
    try {
      this.#end()
    } catch {
      // The database was closed in this tick. After another failure, the next read tries again.
    }
  }
}
