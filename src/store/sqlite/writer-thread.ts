import type { Database } from 'bun:sqlite'
import { DamageGuard, type Failure, failureOf } from './errors.ts'
import { prepareKeyWrites } from './keys.ts'
import { preparePetWrites } from './pets.ts'
import { checkSameFile, connect, identityOf } from './schema.ts'
import type { CommittedBatch, ThreadReply, ThreadRequest, Write, WriteResult } from './writer.ts'

interface OpenFile {
  readonly database: Database
  readonly pets: ReturnType<typeof preparePetWrites>
  readonly keys: ReturnType<typeof prepareKeyWrites>
}

export class Committer {
  readonly #file: string
  readonly #identity: string | undefined
  readonly #guard = new DamageGuard()
  #open: OpenFile | undefined

  constructor(file: string, identity = identityOf(file)) {
    this.#file = file
    this.#identity = identity
  }

  open(): OpenFile {
    if (!this.#open) {
      const database = connect(this.#file, 'readwrite')
      this.#open = { database, pets: preparePetWrites(database), keys: prepareKeyWrites(database) }
    }
    return this.#open
  }

  commit(batch: readonly Write[]): CommittedBatch {
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
  #commitAll(batch: readonly Write[]): CommittedBatch {
    checkSameFile(this.#file, this.#identity)
    const open = this.open()
    const { database } = open
    const failures = new Map<number, Failure>()
    database.query('BEGIN IMMEDIATE').run()
    try {
      const values = batch.map((write, index) => {
        try {
          // SQLite rolls back a failed statement by itself, so a single one needs no savepoint.
          if (write.type === 'createPet') return open.pets.create(write)
          return inSavepoint(database, () => perform(open, write))
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

function perform({ pets, keys }: OpenFile, write: Exclude<Write, { type: 'createPet' }>): WriteResult {
  switch (write.type) {
    case 'createPetOnce':
      return pets.createOnce(write.pet, write.key)
    case 'deleteExpiredIdempotencyKeys':
      return pets.deleteExpiredKeys(write.expiredMs, write.max)
    case 'createKey':
      return keys.create(write.key)
    case 'createFirstKey':
      return keys.createFirst(write.key)
    case 'revokeKey':
      return keys.revoke(write.id, write.at)
    case 'recordKeyUses':
      return keys.recordUses(write.uses)
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
  const handle = (request: ThreadRequest): ThreadReply => {
    if (request.type === 'open') {
      committer = new Committer(request.file, request.identity)
      try {
        committer.open()
      } catch {
        // The first batch tries again, and reports the problem.
      }
      return { type: 'opened' }
    }
    if (!committer) throw new Error(`${request.type} came before open`)
    if (request.type === 'commit') return { type: 'committed', ...committer.commit(request.batch) }
    committer.close()
    return { type: 'closed' }
  }
  addEventListener('message', ({ data }: MessageEvent<ThreadRequest>) => postMessage(handle(data)))
}
