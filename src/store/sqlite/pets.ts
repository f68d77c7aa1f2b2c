import type { Database, Statement } from 'bun:sqlite'
import { IdsExhausted } from '../../errors.ts'
import { int64Max } from '../../int64.ts'
import type { NewPet, PetStatus } from '../../pet.ts'
import { idempotencyKeyMs, type PetStore } from '../../store.ts'
import { fingerprintOf, type PetRow, pageOf, petColumns, petOf } from '../rows.ts'
import type { DamageGuard } from './errors.ts'
import type { PetWrites, Writer } from './writer.ts'

export const statements = {
  list: `SELECT ${petColumns} FROM pets WHERE id > $after ORDER BY id LIMIT $rows`,
  listByStatus: `SELECT ${petColumns} FROM pets WHERE status = $status AND id > $after ORDER BY id LIMIT $rows`,
  get: `SELECT ${petColumns} FROM pets WHERE id = $id`,
} as const

type Page = { after: bigint; rows: number }
type AnyRow = PetRow<bigint | number>

/** Reads on the calling thread, writes in the writer thread. */
export function createSqlitePets(
  reading: Database,
  writer: Pick<Writer, 'write' | 'commits'>,
  guard: DamageGuard,
): PetStore {
  const list = reading.query<AnyRow, Page>(statements.list).safeIntegers(false)
  const listByStatus = reading.query<AnyRow, Page & { status: PetStatus }>(statements.listByStatus).safeIntegers(false)
  const get = reading.query<PetRow, { id: bigint }>(statements.get)
  const findExpired = reading.query('SELECT 1 FROM idempotency_keys WHERE created_at_ms <= $expiredMs LIMIT 1')
  const snapshot = new TickSnapshot(reading, writer, guard)

  return {
    async list({ limit, status, after = 0n }) {
      // Fetch one extra row to learn whether a next page exists, without a COUNT.
      const rows = limit + 1
      const found = snapshot.read(() =>
        status === undefined ? allExact(list, { after, rows }) : allExact(listByStatus, { status, after, rows }),
      )
      return pageOf(found, limit)
    },
    async get(id) {
      const row = snapshot.read(() => get.get({ id }))
      return row ? petOf(row) : undefined
    },
    async create(pet) {
      const id = await writer.write({ type: 'createPet', ...pet })
      return { ...pet, id }
    },
    createOnce: (pet, key) => writer.write({ type: 'createPetOnce', pet, key }),
    async deleteExpiredIdempotencyKeys(now, max) {
      const expiredMs = now.getTime() - idempotencyKeyMs
      // A commit that changes nothing succeeds on a full disk, and would make the store look writable.
      const found = snapshot.read(() => findExpired.get({ expiredMs }))
      return found ? await writer.write({ type: 'deleteExpiredIdempotencyKeys', expiredMs, max }) : 0
    },
    version: () => snapshot.version(),
  }
}

/** Numbers cost less than bigints. After the first integer that a number may round, the statement reads only bigints. */
function allExact<P extends Page>(statement: Statement<AnyRow, [P]>, page: P): readonly AnyRow[] {
  const rows = statement.all(page)
  const isSafe = ({ id, categoryId }: AnyRow) => Number.isSafeInteger(id) && Number.isSafeInteger(categoryId)
  if (statement.safeIntegers() || rows.every(isSafe)) return rows
  return statement.safeIntegers(true).all(page)
}

export function preparePetWrites(database: Database): PetWrites {
  // Without the condition, SQLite reports a full disk after the last id and rolls back the whole transaction.
  const insert = database.query<{ id: bigint }, { name: string; categoryId: bigint; status: PetStatus | null }>(
    `INSERT INTO pets (name, category_id, status) SELECT $name, $categoryId, $status
     WHERE (SELECT seq FROM sqlite_sequence WHERE name = 'pets') IS NOT ${int64Max} RETURNING id`,
  )
  type KnownKey = { fingerprint: string; pet_id: bigint }
  const findKey = database.query<KnownKey, { scope: string; key: string; expiredMs: number }>(
    `SELECT fingerprint, pet_id FROM idempotency_keys
     WHERE scope = $scope AND key = $key AND created_at_ms > $expiredMs`,
  )
  // Replaces an expired key that is not deleted yet.
  const storeKey = database.query(
    `INSERT OR REPLACE INTO idempotency_keys (scope, key, fingerprint, pet_id, created_at_ms)
     VALUES ($scope, $key, $fingerprint, $petId, $atMs)`,
  )
  const deleteKeys = database.query(
    `DELETE FROM idempotency_keys WHERE (scope, key) IN (
       SELECT scope, key FROM idempotency_keys WHERE created_at_ms <= $expiredMs ORDER BY created_at_ms LIMIT $max)`,
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
      const known = findKey.get({ scope, key, expiredMs: at.getTime() - idempotencyKeyMs })
      if (known && known.fingerprint !== fingerprint) return { outcome: 'conflict' }
      if (known) return { outcome: 'replayed', pet: { ...pet, id: known.pet_id } }
      const id = createPet(pet)
      storeKey.run({ scope, key, fingerprint, petId: id, atMs: at.getTime() })
      return { outcome: 'created', pet: { ...pet, id } }
    },
    deleteExpiredIdempotencyKeys: ({ expiredMs, max }) => deleteKeys.run({ expiredMs, max }).changes,
  }
}

/** SQLite reuses the write-ahead log only while no reader uses it, so reads share no transaction this long after a commit. */
const quietMs = 100

/**
 * Gives reads a snapshot of the file, and a version for the page cache. A read outside of a transaction locks the file, which
 * costs more than the read. States: `idle`, before the first read of an event-loop tick; `shared`, all reads of the tick
 * use one transaction; `single`, each read has its own, because there was a commit less than `quietMs` ago. A commit of our
 * own writer starts the tick again. A request sent after a commit of another process arrives in a later tick.
 */
export class TickSnapshot {
  readonly #database: Database
  readonly #writer: Pick<Writer, 'commits'>
  readonly #guard: DamageGuard
  readonly #begin
  readonly #dataVersion
  #state: 'idle' | 'shared' | 'single' = 'idle'
  #shareFromMs = 0
  #sharedVersion: bigint | undefined
  #commits = 0
  #version: bigint | undefined

  constructor(database: Database, writer: Pick<Writer, 'commits'>, guard: DamageGuard) {
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

  /** Differs after every commit. data_version ignores commits of its own connection, but this connection only reads. */
  version(): bigint | undefined {
    if (this.#version === undefined || !this.#isCurrent()) {
      this.#version = this.read(() => this.#dataVersion.get()?.data_version)
    }
    return this.#version
  }

  #isCurrent(): boolean {
    if (this.#state === 'idle' || this.#commits !== this.#writer.commits) return false
    return this.#database.inTransaction === (this.#state === 'shared')
  }

  #enter(): void {
    if (this.#isCurrent()) return
    endSnapshot(this.#database)
    if (this.#state === 'idle') setImmediate(this.#endTick)
    this.#state = 'single'
    this.#commits = this.#writer.commits
    this.#version = undefined
    const nowMs = performance.now()
    if (nowMs < this.#shareFromMs) return
    this.#begin.run()
    this.#version = this.#dataVersion.get()?.data_version
    if (this.#version === this.#sharedVersion) {
      this.#state = 'shared'
      return
    }
    this.#sharedVersion = this.#version
    this.#shareFromMs = nowMs + quietMs
    endSnapshot(this.#database)
  }

  readonly #endTick = () => {
    this.#state = 'idle'
    try {
      endSnapshot(this.#database)
    } catch {
      // The database was closed in this tick. After another failure, the next read tries again.
    }
  }
}

/** The next read sees every commit before it. */
export function endSnapshot(database: Database): void {
  if (database.inTransaction) database.query('COMMIT').run()
}
