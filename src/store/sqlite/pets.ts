import type { Database } from 'bun:sqlite'
import { IdsExhausted } from '../../errors.ts'
import { int64Max } from '../../int64.ts'
import type { PageRequest, PetPage } from '../../page.ts'
import { fingerprintOf, type NewPet, type Pet, type PetStatus } from '../../pet.ts'
import { type Creation, type IdempotencyKey, idempotencyKeyMs, type PetStore } from '../../store.ts'
import { type PetRow, petOf } from '../rows.ts'
import type { DamageGuard } from './errors.ts'
import type { Writer } from './writer.ts'

export const statements = {
  list: 'SELECT id, name, category_id, status FROM pets WHERE id > $after ORDER BY id LIMIT $rows',
  listByStatus: `
    SELECT id, name, category_id, status FROM pets
    WHERE status = $status AND id > $after ORDER BY id LIMIT $rows`,
  get: 'SELECT id, name, category_id, status FROM pets WHERE id = $id',
  // Without the condition, SQLite reports a full disk after the last id and rolls back the whole transaction.
  create: `
    INSERT INTO pets (name, category_id, status) SELECT $name, $categoryId, $status
    WHERE (SELECT seq FROM sqlite_sequence WHERE name = 'pets') IS NOT ${int64Max}
    RETURNING id`,
  findKey: `
    SELECT fingerprint, pet_id FROM creation_keys
    WHERE scope = $scope AND key = $key AND created_at_ms > $expiredMs`,
  // Replaces an expired key that is not deleted yet.
  storeKey: `
    INSERT OR REPLACE INTO creation_keys (scope, key, fingerprint, pet_id, created_at_ms)
    VALUES ($scope, $key, $fingerprint, $petId, $atMs)`,
  deleteExpiredKeys: `
    DELETE FROM creation_keys WHERE (scope, key) IN (
      SELECT scope, key FROM creation_keys WHERE created_at_ms <= $expiredMs ORDER BY created_at_ms LIMIT $max)`,
} as const

type PetWriter = Pick<Writer<PetWrites>, 'write' | 'commits'>

/** Reads on the calling thread, writes in the writer thread. */
export class SqlitePets implements PetStore {
  readonly #list
  readonly #listByStatus
  readonly #get
  readonly #dataVersion
  readonly #writer: PetWriter
  readonly #guard: DamageGuard
  #version: bigint | undefined
  #versionCommits = 0

  constructor(reading: Database, writer: PetWriter, guard: DamageGuard) {
    this.#list = reading.query<PetRow, { after: bigint; rows: number }>(statements.list)
    this.#listByStatus = reading.query<PetRow, { status: PetStatus; after: bigint; rows: number }>(
      statements.listByStatus,
    )
    this.#get = reading.query<PetRow, { id: bigint }>(statements.get)
    this.#dataVersion = reading.query<{ data_version: bigint }, []>('PRAGMA data_version')
    this.#writer = writer
    this.#guard = guard
  }

  list({ limit, status, after = 0n }: PageRequest): PetPage {
    // Fetch one extra row to learn whether a next page exists, without a COUNT.
    const rows = limit + 1
    const found = this.#guard.run(() =>
      status === undefined ? this.#list.all({ after, rows }) : this.#listByStatus.all({ status, after, rows }),
    )
    return { pets: found.slice(0, limit).map(petOf), more: found.length > limit }
  }

  get(id: bigint): Pet | undefined {
    const row = this.#guard.run(() => this.#get.get({ id }))
    return row ? petOf(row) : undefined
  }

  async create(pet: NewPet): Promise<Pet> {
    const id = await this.#writer.write('createPet', pet.name, pet.categoryId, pet.status ?? null)
    return { ...pet, id }
  }

  createOnce(pet: NewPet, key: IdempotencyKey): Promise<Creation> {
    return this.#writer.write('createPetOnce', pet, key)
  }

  deleteExpiredKeys(now: Date, max: number): Promise<number> {
    return this.#writer.write('deleteExpiredKeys', now.getTime() - idempotencyKeyMs, max)
  }

  /**
   * Asks the file once in an event-loop tick, because asking costs a fifth of a request, and again after a commit of our own
   * writer. data_version ignores commits of its own connection, but this connection only reads.
   */
  version(): unknown {
    const { commits } = this.#writer
    if (this.#version === undefined) setImmediate(this.#forgetVersion)
    else if (this.#versionCommits === commits) return this.#version
    this.#versionCommits = commits
    this.#version = this.#guard.run(() => this.#dataVersion.get()?.data_version)
    return this.#version
  }

  readonly #forgetVersion = () => {
    this.#version = undefined
  }
}

export type PetWrites = ReturnType<typeof createPetWrites>

/** Each runs inside a transaction of the writer thread. */
export function createPetWrites(database: Database) {
  const insert = database.query<{ id: bigint }, { name: string; categoryId: bigint; status: PetStatus | null }>(
    statements.create,
  )
  const findKey = database.query<
    { fingerprint: string; pet_id: bigint },
    { scope: string; key: string; expiredMs: number }
  >(statements.findKey)

  /** One statement: the writer thread relies on that. */
  function createPet(name: string, categoryId: bigint, status: PetStatus | null): bigint {
    const row = insert.get({ name, categoryId, status })
    if (!row) throw new IdsExhausted(`${int64Max} is the last id`)
    return row.id
  }

  return {
    createPet,
    /** Writes run one after the other, so no key is ever seen as in progress. */
    createPetOnce(pet: NewPet, { scope, key, at }: IdempotencyKey): Creation {
      const fingerprint = fingerprintOf(pet)
      const known = findKey.get({ scope, key, expiredMs: at.getTime() - idempotencyKeyMs })
      if (known && known.fingerprint !== fingerprint) return { outcome: 'conflict' }
      if (known) return { outcome: 'replayed', pet: { ...pet, id: known.pet_id } }
      const id = createPet(pet.name, pet.categoryId, pet.status ?? null)
      database.query(statements.storeKey).run({ scope, key, fingerprint, petId: id, atMs: at.getTime() })
      return { outcome: 'created', pet: { ...pet, id } }
    },
    deleteExpiredKeys: (expiredMs: number, max: number): number =>
      database.query(statements.deleteExpiredKeys).run({ expiredMs, max }).changes,
  }
}
