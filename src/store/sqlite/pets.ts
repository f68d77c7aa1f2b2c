import type { Database } from 'bun:sqlite'
import { IdsExhausted } from '../../errors.ts'
import { int64Max } from '../../int64.ts'
import type { Page, PageRequest } from '../../page.ts'
import type { NewPet, PetChanges, PetStatus } from '../../pet.ts'
import type { Change, Creation, IdempotencyKey, PetStore } from '../../store-contract.ts'
import { idempotencyKeyMs } from '../../store-contract.ts'
import { hashPet, type PetRow, petColumns, toPage, toPet } from '../rows.ts'
import type { DamageGuard } from './errors.ts'
import type { WritesByName } from './thread.ts'

export const statements = {
  list: `SELECT ${petColumns} FROM pets WHERE id > $after ORDER BY id LIMIT $rows`,
  listByStatus: `SELECT ${petColumns} FROM pets WHERE status = $status AND id > $after ORDER BY id LIMIT $rows`,
  get: `SELECT ${petColumns} FROM pets WHERE id = $id`,
} as const

type PageParameters = { after: bigint; rows: number }

/** A page of 100 short names takes 10 KB, of the longest ones up to 1.5 MB. */
const firstPagesMax = 64

type PetWriter = WritesByName<ReturnType<typeof petWrites>> & { readonly commits: number }

/** Reads on the serving thread. */
export function createSqlitePets(database: Database, guard: DamageGuard, writer: PetWriter): PetStore {
  const list = database.query<PetRow, PageParameters>(statements.list)
  const listByStatus = database.query<PetRow, PageParameters & { status: PetStatus }>(statements.listByStatus)
  const get = database.query<PetRow, { id: bigint }>(statements.get)
  /** As of `keptVersion`: callers recognise a page by its object, and encode it once. */
  const firstPages = new Map<string, Page>()
  let keptVersion: bigint | undefined
  const version = new FileVersion(database, writer)

  function readPage({ limit, status, after = 0n }: PageRequest): Page {
    const rows = limit + 1
    const found = guard.run(() =>
      status === undefined ? list.all({ after, rows }) : listByStatus.all({ status, after, rows }),
    )
    return toPage(found, limit)
  }

  return {
    async list(request) {
      if (request.after !== undefined) return readPage(request)
      // The version first: if there is a commit before the rows are read, the page is dropped too early, not too late.
      const current = guard.run(() => version.read())
      if (current !== keptVersion) firstPages.clear()
      keptVersion = current
      const name = `${request.limit} ${request.status}`
      const kept = firstPages.get(name)
      if (kept) return kept
      if (firstPages.size >= firstPagesMax) firstPages.clear()
      const page = readPage(request)
      firstPages.set(name, page)
      return page
    },
    async get(id) {
      const row = guard.run(() => get.get({ id }))
      return row ? toPet(row) : undefined
    },
    async create(pet) {
      const id = await writer.write('createPet', pet)
      return { ...pet, id }
    },
    createOnce: (pet, key) => writer.write('createPetOnce', pet, key),
    update: (id, changes, ifStatus) => writer.write('changePet', id, changes, ifStatus),
    remove: (id, ifStatus) => writer.write('changePet', id, undefined, ifStatus),
    deleteExpiredIdempotencyKeys: (now, max) => writer.write('deleteExpiredKeys', now, max),
  }
}

/** A version is used again for this time. From a commit of another process to its next request, a client needs longer. */
const versionMs = 0.1

/** Differs after every commit, because this connection only reads. Asking SQLite costs a tenth of a first page. */
class FileVersion {
  readonly #writer: { readonly commits: number }
  readonly #statement
  #version: bigint | undefined
  #readMs = Number.NEGATIVE_INFINITY
  /** Those of our own writer. */
  #commits = 0

  constructor(database: Database, writer: { readonly commits: number }) {
    this.#writer = writer
    this.#statement = database.query<{ data_version: bigint }, []>('PRAGMA data_version')
  }

  read(): bigint | undefined {
    const nowMs = performance.now()
    const { commits } = this.#writer
    if (commits === this.#commits && nowMs - this.#readMs < versionMs) return this.#version
    this.#version = this.#statement.get()?.data_version
    this.#readMs = nowMs
    this.#commits = commits
    return this.#version
  }
}

/** Idempotency keys that are as old as this have expired. */
const expiredUntil = (now: Date) => now.getTime() - idempotencyKeyMs

type NewRow = { name: string; categoryId: bigint; status: PetStatus | null }
type KnownKey = { fingerprint: string; pet_id: bigint }

/** Run in the writer thread. */
export function petWrites(database: Database) {
  // Without the condition, SQLite reports a full disk after the last id and rolls back the whole transaction.
  const insert = database.query<{ id: bigint }, NewRow>(
    `INSERT INTO pets (name, category_id, status) SELECT $name, $categoryId, $status
     WHERE (SELECT seq FROM sqlite_sequence WHERE name = 'pets') IS NOT ${int64Max} RETURNING id`,
  )
  const get = database.query<PetRow, { id: bigint }>(statements.get)
  const update = database.query<never, PetRow>(
    'UPDATE pets SET name = $name, category_id = $categoryId, status = $status WHERE id = $id',
  )
  const remove = database.query<never, { id: bigint }>('DELETE FROM pets WHERE id = $id')
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

  /** One statement: the writer thread relies on that. */
  function createPet({ name, categoryId, status }: NewPet): bigint {
    const row = insert.get({ name, categoryId, status: status ?? null })
    if (!row) throw new IdsExhausted(`${int64Max} is the last id`)
    return row.id
  }

  return {
    createPet,
    /** Writes run one after the other, so no key is ever seen as in progress. */
    createPetOnce(pet: NewPet, { scope, key, at }: IdempotencyKey): Creation {
      const fingerprint = hashPet(pet)
      const known = findKey.get({ scope, key, expiredUntilMs: expiredUntil(at) })
      if (known && known.fingerprint !== fingerprint) return { outcome: 'conflict' }
      if (known) return { outcome: 'replayed', pet: { ...pet, id: known.pet_id } }
      const id = createPet(pet)
      storeKey.run({ scope, key, fingerprint, petId: id, atMs: at.getTime() })
      return { outcome: 'created', pet: { ...pet, id } }
    },
    /** Without changes, it removes the animal. */
    changePet(id: bigint, changes: PetChanges | undefined, ifStatus?: PetStatus): Change {
      const row = get.get({ id })
      if (!row) return { outcome: 'no-such-pet' }
      if (ifStatus !== undefined && row.status !== ifStatus) return { outcome: 'status-differs', pet: toPet(row) }
      if (!changes) {
        remove.run({ id })
        return { outcome: 'changed', pet: toPet(row) }
      }
      const { name = row.name, categoryId = row.categoryId, status = row.status } = changes
      const changed = { id, name, categoryId, status }
      update.run(changed)
      return { outcome: 'changed', pet: toPet(changed) }
    },
    deleteExpiredKeys(now: Date, max: number): number {
      return deleteKeys.run({ expiredUntilMs: expiredUntil(now), max }).changes
    },
  }
}
