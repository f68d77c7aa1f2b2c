// Everything that runs in the writer thread.

import type { Database } from 'bun:sqlite'
import { IdsExhausted } from '../../errors.ts'
import { int64Max } from '../../int64.ts'
import type { NewPet, PetStatus } from '../../pet.ts'
import { idempotencyKeyMs } from '../../store.ts'
import { fingerprintOf, type KeyRow, keyColumns, keyOf, newKeyColumns, newKeyValues } from '../rows.ts'
import { DamageGuard, type Failure, failureOf } from './errors.ts'
import { checkSameFile, connect } from './schema.ts'
import type {
  CommittedBatch,
  KeyWrites,
  PetWrites,
  ThreadReply,
  ThreadRequest,
  Write,
  WriteResult,
  Writes,
} from './writer.ts'

export class Committer {
  readonly #file: string
  readonly #identity: string | undefined
  readonly #guard = new DamageGuard()
  #open: ReturnType<typeof openFile> | undefined

  constructor(file: string, identity: string | undefined) {
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
      return { values: [], failures: new Map(batch.map((_, index) => [index, failure])), changed: false }
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
  const totalChanges = database.query<{ rows: bigint }, []>('SELECT total_changes() AS rows')
  let rowsChanged = 0n
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
    const before = rowsChanged
    rowsChanged = totalChanges.get()?.rows ?? 0n
    return { values, changed: rowsChanged > before, ...(failures.size > 0 && { failures }) }
  })
  return { database, commit: commit.immediate }
}

function preparePetWrites(database: Database): PetWrites {
  // Without the condition, SQLite reports a full disk after the last id and rolls back the whole transaction.
  const insert = database.query<{ id: bigint }, { name: string; categoryId: bigint; status: PetStatus | null }>(
    `INSERT INTO pets (name, category_id, status) SELECT $name, $categoryId, $status
     WHERE (SELECT seq FROM sqlite_sequence WHERE name = 'pets') IS NOT ${int64Max} RETURNING id`,
  )
  type KnownKey = { fingerprint: string; pet_id: bigint }
  const findKey = database.query<KnownKey, { scope: string; key: string; expiredUntilMs: number }>(
    `SELECT fingerprint, pet_id FROM idempotency_keys
     WHERE scope = $scope AND key = $key AND created_at_ms > $expiredUntilMs`,
  )
  // Replaces an expired key that is not deleted yet.
  const storeKey = database.query(
    `INSERT OR REPLACE INTO idempotency_keys (scope, key, fingerprint, pet_id, created_at_ms)
     VALUES ($scope, $key, $fingerprint, $petId, $atMs)`,
  )
  const deleteKeys = database.query(
    `DELETE FROM idempotency_keys WHERE (scope, key) IN (
       SELECT scope, key FROM idempotency_keys WHERE created_at_ms <= $expiredUntilMs ORDER BY created_at_ms LIMIT $max)`,
  )

  function createPet({ name, categoryId, status }: NewPet): bigint {
    const row = insert.get({ name, categoryId, status: status ?? null })
    if (!row) throw new IdsExhausted(`${int64Max} is the last id`)
    return row.id
  }

  return {
    createPet,
    /** Writes run one after the other, so no key is ever seen as in progress. */
    createPetOnce({ pet, key: { scope, key, at } }) {
      const fingerprint = fingerprintOf(pet)
      const known = findKey.get({ scope, key, expiredUntilMs: at.getTime() - idempotencyKeyMs })
      if (known && known.fingerprint !== fingerprint) return { outcome: 'conflict' }
      if (known) return { outcome: 'replayed', pet: { ...pet, id: known.pet_id } }
      const id = createPet(pet)
      storeKey.run({ scope, key, fingerprint, petId: id, atMs: at.getTime() })
      return { outcome: 'created', pet: { ...pet, id } }
    },
    deleteExpiredIdempotencyKeys: ({ expiredUntilMs, max }) => deleteKeys.run({ expiredUntilMs, max }).changes,
  }
}

function prepareKeyWrites(database: Database): KeyWrites {
  const insertIf = (condition: string) =>
    database.query<KeyRow, ReturnType<typeof newKeyValues>>(
      `INSERT INTO api_keys (${newKeyColumns}) SELECT ?, ?, ?, ?, ?, ? WHERE ${condition} RETURNING ${keyColumns}`,
    )
  const insert = insertIf('true')
  const insertFirst = insertIf('NOT EXISTS (SELECT 1 FROM api_keys)')
  const markRevoked = database.query<{ id: bigint }, { id: bigint; atMs: number }>(
    'UPDATE api_keys SET revoked_at_ms = $atMs WHERE id = $id AND revoked_at_ms IS NULL RETURNING id',
  )
  const recordUse = database.query(
    `UPDATE api_keys SET
       last_used_at_ms = max(ifnull(last_used_at_ms, 0), $lastUsedAtMs),
       -- Saturates: beyond the last integer, which a restored backup may have, SQLite computes a REAL, and refuses it.
       deprecated_uses = min(deprecated_uses + $deprecatedUses, ${int64Max}),
       deprecated_last_used_at_ms = nullif(max(ifnull(deprecated_last_used_at_ms, 0), $deprecatedLastUsedAtMs), 0)
     WHERE id = $id`,
  )
  return {
    createKey: ({ key }) => keyOf(insert.get(...newKeyValues(key)) as KeyRow),
    createFirstKey({ key }) {
      const row = insertFirst.get(...newKeyValues(key))
      return row ? keyOf(row) : undefined
    },
    revokeKey: ({ id, at }) => markRevoked.get({ id, atMs: at.getTime() }) !== null,
    recordKeyUses({ uses }) {
      for (const { id, lastUsedAt, deprecatedUses, deprecatedLastUsedAt } of uses) {
        const deprecatedLastUsedAtMs = deprecatedLastUsedAt?.getTime() ?? 0
        recordUse.run({ id, lastUsedAtMs: lastUsedAt.getTime(), deprecatedUses, deprecatedLastUsedAtMs })
      }
    },
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
      return undefined
    }
    if (!committer) throw new Error(`${request.type} came before open`)
    if (request.type === 'commit') return committer.commit(request.batch)
    committer.close()
    return undefined
  }
  addEventListener('message', ({ data }: MessageEvent<ThreadRequest>) => postMessage(handle(data)))
}
