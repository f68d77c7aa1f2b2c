// The thread that commits writes. `writer.ts` starts it, and it replies to each request.

import { readCode } from '../../errors.ts'
import { type Failure, toFailure } from './errors.ts'
import { keyWrites } from './keys.ts'
import { petWrites } from './pets.ts'
import { checkSameFile, connect } from './schema.ts'
import { replyWith } from './thread.ts'

/** Each runs inside a transaction. */
export type Writes = ReturnType<typeof petWrites> & ReturnType<typeof keyWrites>
/** The name of one of {@link Writes}, and its arguments. */
export type Write = readonly [name: keyof Writes, ...args: readonly unknown[]]

export interface CommitRequest {
  readonly file: string
  /** Another file that has taken the place of this one is refused. */
  readonly identity: string | undefined
  readonly writes: readonly Write[]
}

/** `locked`: another process has locked the file, and nothing has changed. */
export type CommitReply = Committed | 'locked'

interface Committed {
  readonly results: readonly unknown[]
  /** The writes that failed, by their index. Absent if there is none. */
  readonly failures?: ReadonlyMap<number, Failure>
  /** Whether the file has changed. */
  readonly changed: boolean
}

/** Short, because writes have deadlines, which the thread does not know. */
const lockMsMax = 100

export class Committer {
  readonly #file: string
  readonly #identity: string | undefined
  #open: ReturnType<typeof openFile> | undefined

  constructor(file: string, identity: string | undefined) {
    this.#file = file
    this.#identity = identity
  }

  commit(writes: readonly Write[]): CommitReply {
    try {
      checkSameFile(this.#file, this.#identity)
      this.#open ??= openFile(this.#file)
      return this.#open.commit(writes)
    } catch (error) {
      if (readCode(error).startsWith('SQLITE_BUSY')) return 'locked'
      // This connection may have lost its file: the next commit opens another one.
      this.close()
      const failure = toFailure(error)
      return { results: [], failures: new Map(writes.map((_, index) => [index, failure])), changed: false }
    }
  }

  close(): void {
    this.#open?.database.close()
    this.#open = undefined
  }
}

function openFile(file: string) {
  const database = connect(file, 'readwrite')
  database.run(`PRAGMA busy_timeout = ${lockMsMax}`)
  const writes: Writes = { ...petWrites(database), ...keyWrites(database) }
  const perform = ([name, ...args]: Write): unknown => Reflect.apply(writes[name], writes, args)
  // Inside the transaction of the commit, this is a savepoint.
  const performAlone = database.transaction(perform)
  const totalChanges = database.query<{ rows: bigint }, []>('SELECT total_changes() AS rows')
  let rowsChanged = 0n
  /** A write that fails is rolled back alone; the others go on. After damage, COMMIT itself fails. */
  const commit = database.transaction((batch: readonly Write[]): Committed => {
    const failures = new Map<number, Failure>()
    const results = batch.map((write, index) => {
      try {
        // One statement, which SQLite rolls back by itself if it fails: it needs no savepoint.
        return write[0] === 'createPet' ? perform(write) : performAlone(write)
      } catch (error) {
        // After some errors, such as a full disk, SQLite has rolled back the whole transaction by itself.
        if (!database.inTransaction) throw error
        failures.set(index, toFailure(error))
        return undefined
      }
    })
    const before = rowsChanged
    rowsChanged = totalChanges.get()?.rows ?? 0n
    return { results, changed: rowsChanged > before, ...(failures.size > 0 && { failures }) }
  })
  return { database, commit: commit.immediate }
}

let committer: Committer | undefined

replyWith((request: CommitRequest | 'close'): CommitReply => {
  if (request !== 'close') {
    committer ??= new Committer(request.file, request.identity)
    return committer.commit(request.writes)
  }
  committer?.close()
  return { results: [], changed: false }
})
