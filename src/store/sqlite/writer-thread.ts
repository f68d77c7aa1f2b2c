import type { Database } from 'bun:sqlite'
import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../../errors.ts'
import { DamageGuard, storeErrorOf } from './errors.ts'
import { createKeyWrites, type KeyWrites } from './keys.ts'
import { createPetWrites, type PetWrites } from './pets.ts'
import { checkSameFile, connect, identityOf } from './schema.ts'
import type { Write, WriteFailure, WriterReply, WriterRequest, WrittenBatch } from './writer.ts'

/** Everything that changes the file. */
export type Writes = PetWrites & KeyWrites

/** SQLite rolls back a failed statement by itself, so these writes need no savepoint. */
const singleStatements: readonly string[] = ['createPet' satisfies keyof Writes]

/** Commits each batch of writes in one transaction. */
export class Committer {
  readonly #file: string
  readonly #identity: string | undefined
  readonly #guard = new DamageGuard()
  #open: { readonly database: Database; readonly writes: Writes } | undefined

  constructor(file: string, identity = identityOf(file)) {
    this.#file = file
    this.#identity = identity
  }

  /** Opens the file now. If that fails, the first batch tries again and reports the problem. */
  open(): void {
    try {
      this.#connection()
    } catch {
      // Reported by the first batch.
    }
  }

  commit(batch: readonly Write[]): WrittenBatch {
    try {
      return this.#guard.run(() => this.#commitAll(batch))
    } catch (error) {
      // This connection may have lost its file: the next batch opens another one.
      this.close()
      const failure = failureOf(error)
      return { values: [], failures: new Map(batch.map((_, index) => [index, failure])) }
    }
  }

  close(): void {
    this.#open?.database.close()
    this.#open = undefined
  }

  #connection() {
    if (!this.#open) {
      const database = connect(this.#file, 'readwrite')
      this.#open = { database, writes: { ...createPetWrites(database), ...createKeyWrites(database) } }
    }
    return this.#open
  }

  #commitAll(batch: readonly Write[]): WrittenBatch {
    checkSameFile(this.#file, this.#identity)
    const { database, writes } = this.#connection()
    const failures = new Map<number, WriteFailure>()
    database.query('BEGIN IMMEDIATE').run()
    try {
      const values = batch.map((write, index) =>
        applyWrite(database, writes, write, failure => failures.set(index, failure)),
      )
      database.query('COMMIT').run()
      return failures.size === 0 ? { values } : { values, failures }
    } catch (error) {
      // SQLite rolls back by itself after some errors, such as a full disk.
      if (database.inTransaction) database.run('ROLLBACK')
      throw error
    }
  }
}

/** A failed write is rolled back alone; the others of its batch go on. */
function applyWrite(
  database: Database,
  writes: Writes,
  [name, ...args]: Write,
  onFailure: (failure: WriteFailure) => void,
): unknown {
  const run = () => (writes[name as keyof Writes] as (...args: readonly unknown[]) => unknown)(...args)
  try {
    return singleStatements.includes(name) ? run() : inSavepoint(database, run)
  } catch (error) {
    // Nothing at all is committed to a damaged file.
    if (!database.inTransaction || storeErrorOf(error) instanceof StoreDamaged) throw error
    onFailure(failureOf(error))
    return undefined
  }
}

function inSavepoint<T>(database: Database, run: () => T): T {
  database.query('SAVEPOINT write').run()
  try {
    const value = run()
    database.query('RELEASE write').run()
    return value
  } catch (error) {
    // After some errors SQLite has rolled back the whole transaction by itself.
    if (database.inTransaction) {
      database.run('ROLLBACK TO write')
      database.run('RELEASE write')
    }
    throw error
  }
}

function failureOf(cause: unknown): WriteFailure {
  const error = storeErrorOf(cause)
  if (error instanceof StoreDamaged) return { kind: 'damaged', message: error.message }
  if (error instanceof StoreUnavailable) return { kind: 'unavailable', message: error.message }
  if (error instanceof IdsExhausted) return { kind: 'ids exhausted', message: error.message }
  return { kind: 'bug', message: error instanceof Error ? error.stack || error.message : String(error) }
}

if (!Bun.isMainThread) {
  let committer: Committer | undefined
  const reply = (message: WriterReply) => postMessage(message)
  addEventListener('message', ({ data }: MessageEvent<WriterRequest>) => {
    if (data === 'close') {
      committer?.close()
      reply('closed')
    } else if ('file' in data) {
      committer = new Committer(data.file, data.identity)
      committer.open()
      reply('ready')
    } else if (committer) reply(committer.commit(data))
  })
}
