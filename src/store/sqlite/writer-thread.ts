import { DamageGuard, type Failure, failureOf } from './errors.ts'
import { prepareKeyWrites } from './keys.ts'
import { preparePetWrites } from './pets.ts'
import { checkSameFile, connect, identityOf } from './schema.ts'
import type { CommittedBatch, ThreadRequest, Write, WriteResult, Writes } from './writer.ts'

export class Committer {
  readonly #file: string
  readonly #identity: string | undefined
  readonly #guard = new DamageGuard()
  #open: ReturnType<typeof openFile> | undefined

  constructor(file: string, identity = identityOf(file)) {
    this.#file = file
    this.#identity = identity
  }

  open(): ReturnType<typeof openFile> {
    this.#open ??= openFile(this.#file)
    return this.#open
  }

  commit(batch: readonly Write[]): CommittedBatch {
    try {
      return this.#guard.run(() => {
        checkSameFile(this.#file, this.#identity)
        return this.open().commit(batch)
      })
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
}

function openFile(file: string) {
  const database = connect(file, 'readwrite')
  const writes: Writes = { ...preparePetWrites(database), ...prepareKeyWrites(database) }
  const perform = (write: Write) => (writes[write.type] as (input: Write) => WriteResult)(write)
  // Inside the transaction of the batch, this is a savepoint.
  const performAlone = database.transaction(perform)
  /** A failed write is rolled back alone; the others of its batch go on. After damage, COMMIT itself fails. */
  const commit = database.transaction((batch: readonly Write[]): CommittedBatch => {
    const failures = new Map<number, Failure>()
    const values = batch.map((write, index) => {
      try {
        // SQLite rolls back a failed statement by itself, so a single one needs no savepoint.
        return write.type === 'createPet' ? perform(write) : performAlone(write)
      } catch (error) {
        // After some errors, such as a full disk, SQLite has rolled back the whole transaction by itself.
        if (!database.inTransaction) throw error
        failures.set(index, failureOf(error))
        return undefined
      }
    })
    return failures.size === 0 ? { values } : { values, failures }
  })
  return { database, commit: commit.immediate }
}

if (!Bun.isMainThread) {
  let committer: Committer | undefined
  const handle = (request: ThreadRequest): CommittedBatch => {
    if (request.type === 'open') {
      committer = new Committer(request.file, request.identity)
      try {
        committer.open()
      } catch {
        // The first batch tries again, and reports the problem.
      }
      return { values: [] }
    }
    if (!committer) throw new Error(`${request.type} came before open`)
    if (request.type === 'commit') return committer.commit(request.batch)
    committer.close()
    return { values: [] }
  }
  addEventListener('message', ({ data }: MessageEvent<ThreadRequest>) => postMessage(handle(data)))
}
