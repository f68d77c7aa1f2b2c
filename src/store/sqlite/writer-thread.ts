import type { Database } from 'bun:sqlite'
import { DamageGuard, failureOf, type WriteFailure } from './errors.ts'
import { createKeyWrites, type KeyWrites } from './keys.ts'
import { createPetWrites, type PetWrites } from './pets.ts'
import { checkSameFile, connect, identityOf } from './schema.ts'
import type { Write, WriterReply, WriterRequest, WrittenBatch } from './writer.ts'

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

  open() {
    if (!this.#open) {
      const database = connect(this.#file, 'readwrite')
      this.#open = { database, writes: { ...createPetWrites(database), ...createKeyWrites(database) } }
    }
    return this.#open
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

  /** A failed write is rolled back alone; the others of its batch go on. After damage, COMMIT itself fails. */
  #commitAll(batch: readonly Write[]): WrittenBatch {
    checkSameFile(this.#file, this.#identity)
    const { database, writes } = this.open()
    const failures = new Map<number, WriteFailure>()
    database.query('BEGIN IMMEDIATE').run()
    try {
      const values = batch.map(([name, ...args], index) => {
        const run = () => (writes[name as keyof Writes] as (...args: readonly unknown[]) => unknown)(...args)
        try {
          return singleStatements.includes(name) ? run() : inSavepoint(database, run)
        } catch (error) {
          if (!database.inTransaction) throw error
          failures.set(index, failureOf(error))
          return undefined
        }
      })
      database.query('COMMIT').run()
      return failures.size === 0 ? { values } : { values, failures }
    } catch (error) {
      // SQLite rolls back by itself after some errors, such as a full disk.
      if (database.inTransaction) database.run('ROLLBACK')
      throw error
    }
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

if (!Bun.isMainThread) {
  let committer: Committer | undefined
  addEventListener('message', ({ data }: MessageEvent<WriterRequest>) => {
    if (data === 'close') {
      committer?.close()
      postMessage('closed' satisfies WriterReply)
    } else if ('file' in data) {
      committer = new Committer(data.file, data.identity)
      try {
        committer.open()
      } catch {
        // The first batch tries again, and reports the problem.
      }
      postMessage('ready' satisfies WriterReply)
    } else if (committer) postMessage(committer.commit(data) satisfies WriterReply)
  })
}
