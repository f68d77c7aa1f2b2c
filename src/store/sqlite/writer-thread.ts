import type { Database } from 'bun:sqlite'
import { receiveMessageOnPort } from 'node:worker_threads'
import { DamageGuard, failureOf, type WriteFailure } from './errors.ts'
import { createKeyWrites, type KeyWrites } from './keys.ts'
import { createPetWrites, type PetWrites } from './pets.ts'
import { checkSameFile, connect, identityOf } from './schema.ts'
import type { Write, WriterReply, WriterRequest, WrittenBatch } from './writer.ts'

/** Everything that changes the file. */
export type Writes = PetWrites & KeyWrites

/** SQLite rolls back a failed statement by itself, so these writes need no savepoint. */
const singleStatements: readonly string[] = ['createPet' satisfies keyof Writes]

/** Bounds the time of a commit: it takes no further batch once it has this many writes. */
const commitWritesMax = 512

interface Batch {
  readonly port: MessagePort
  readonly writes: readonly Write[]
}

type Outcome = Pick<WrittenBatch, 'values' | 'failures'>

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

  commit(batch: readonly Write[]): Outcome {
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
  #commitAll(batch: readonly Write[]): Outcome {
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

/** Commits the batches that have arrived from all writers together, in one transaction. */
class WriterServer {
  readonly #committer: Committer
  readonly #commits: Int32Array
  readonly #ports = new Set<MessagePort>()

  constructor(committer: Committer, commits: Int32Array) {
    this.#committer = committer
    this.#commits = commits
  }

  connect(port: MessagePort): void {
    this.#ports.add(port)
    port.onmessage = ({ data }: { data: readonly Write[] }) => this.#commit({ port, writes: data })
    port.addEventListener('close', () => this.#ports.delete(port))
  }

  #commit(first: Batch): void {
    const batches = this.#waitingAfter(first)
    const all = batches.flatMap(({ writes }) => writes)
    const { values, failures } = this.#committer.commit(all)
    // Before the replies: a read that starts after one of them must see the commit.
    Atomics.add(this.#commits, 0, 1)
    let committed = all.length - (failures?.size ?? 0)
    let start = 0
    for (const { port, writes } of batches) {
      const end = start + writes.length
      const own = [...(failures ?? [])].filter(([index]) => index >= start && index < end)
      const reply: WrittenBatch = {
        values: values.slice(start, end),
        ...(own.length > 0 && { failures: new Map(own.map(([index, failure]) => [index - start, failure])) }),
        committed,
      }
      port.postMessage(reply)
      committed = 0
      start = end
    }
  }

  /** The batch, and the waiting ones until there are enough writes for a commit. */
  #waitingAfter(first: Batch): readonly Batch[] {
    const batches = [first]
    let count = first.writes.length
    for (const port of this.#ports) {
      while (count < commitWritesMax) {
        const waiting: { message: readonly Write[] } | undefined = receiveMessageOnPort(port)
        if (!waiting) break
        batches.push({ port, writes: waiting.message })
        count += waiting.message.length
      }
    }
    return batches
  }
}

if (!Bun.isMainThread) {
  let committer: Committer | undefined
  let server: WriterServer | undefined
  addEventListener('message', ({ data }: MessageEvent<WriterRequest>) => {
    if (data === 'close') {
      committer?.close()
      postMessage('closed' satisfies WriterReply)
    } else if (data instanceof MessagePort) server?.connect(data)
    else {
      committer = new Committer(data.file, data.identity)
      server = new WriterServer(committer, data.commits)
      try {
        committer.open()
      } catch {
        // The first batch tries again, and reports the problem.
      }
      postMessage('ready' satisfies WriterReply)
    }
  })
}
