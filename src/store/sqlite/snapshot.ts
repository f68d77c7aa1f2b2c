import type { Database } from 'bun:sqlite'
import type { DamageGuard } from './errors.ts'

/** SQLite reuses the write-ahead log only while nobody reads it: no transaction is shared this long after a commit. */
const quietMs = 100

/** A transaction is shared this long. No client can learn of a commit and ask for it in less time. */
const sharedMs = 0.2

/** What the reads of a part of an event-loop tick share, until a commit of our own writer. */
interface Part {
  readonly startedMs: number
  /** The writer's commits before it. */
  readonly commits: number
  /** Of the transaction that all reads use; undefined if each read has its own. */
  readonly sharedVersion: bigint | undefined
}

/** Gives reads that follow one another in an event-loop tick one transaction: locking the file costs more than a read. */
export class TickSnapshot {
  readonly #database: Database
  readonly #writer: { readonly commits: number }
  readonly #guard: DamageGuard
  readonly #begin
  readonly #dataVersion
  /** Undefined until the first read of a tick. */
  #part: Part | undefined
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

  /** Reads what is committed now, not what the reads before it have seen. */
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

  /** Begins another part if a client may know of a commit that this one does not show. */
  #enter(): Part {
    const part = this.#part
    const startedMs = performance.now()
    const { commits } = this.#writer
    const isCurrent = part && part.commits === commits && startedMs - part.startedMs < sharedMs
    if (isCurrent && this.#database.inTransaction === (part.sharedVersion !== undefined)) return part
    this.#end()
    if (!part) setImmediate(() => this.#leave())
    this.#part = { startedMs, commits, sharedVersion: this.#share(startedMs) }
    return this.#part
  }

  /** Begins a transaction and returns its version, unless there was a commit less than `quietMs` ago. */
  #share(nowMs: number): bigint | undefined {
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
    this.#part = undefined
    try {
      this.#end()
    } catch {
      // The database was closed in this tick. After another failure, the next read tries again.
    }
  }
}
