import type { Database } from 'bun:sqlite'
import {
  type Creation,
  fingerprintOf,
  type NewPet,
  type Once,
  onceKeptMs,
  type PageRequest,
  type Pet,
  type PetPage,
  type PetStatus,
  type PetStore,
} from '../../pet.ts'
import { guarded } from './fault.ts'
import type { Writer } from './writer.ts'

type PetRow = { id: bigint; name: string; category_id: bigint; status: PetStatus | null }

function petOf({ id, name, category_id: categoryId, status }: PetRow): Pet {
  return status === null ? { id, name, categoryId } : { id, name, categoryId, status }
}

export const statements = {
  list: `
    SELECT id, name, category_id, status FROM pets
    WHERE id > $after
    ORDER BY id LIMIT $rows`,
  listByStatus: `
    SELECT id, name, category_id, status FROM pets
    WHERE status = $status AND id > $after
    ORDER BY id LIMIT $rows`,
  get: 'SELECT id, name, category_id, status FROM pets WHERE id = $id',
  create: 'INSERT INTO pets (name, category_id, status) VALUES ($name, $categoryId, $status) RETURNING id',
  findOnce: `
    SELECT fingerprint, pet_id FROM creation_keys
    WHERE scope = $scope AND key = $key AND created_at_ms > $expiredMs`,
  // An expired one may still be there: it is overwritten.
  keepOnce: `
    INSERT OR REPLACE INTO creation_keys (scope, key, fingerprint, pet_id, created_at_ms)
    VALUES ($scope, $key, $fingerprint, $petId, $atMs)`,
  forgetExpired: `
    DELETE FROM creation_keys WHERE (scope, key) IN (
      SELECT scope, key FROM creation_keys WHERE created_at_ms <= $expiredMs ORDER BY created_at_ms LIMIT $atMost)`,
} as const

/** Ids begin at 1; so the first page and the later ones are one statement. */
const beforeAll = 0n

export function createPetStore(reading: Database, writer: Writer): PetStore {
  const list = reading.query<PetRow, { after: bigint; rows: number }>(statements.list)
  const listByStatus = reading.query<PetRow, { status: PetStatus; after: bigint; rows: number }>(
    statements.listByStatus,
  )
  const get = reading.query<PetRow, { id: bigint }>(statements.get)

  return {
    list({ limit, status, after = beforeAll }: PageRequest): PetPage {
      // One row past the limit tells that more follow, without a COUNT.
      const rows = limit + 1
      const found = guarded(() =>
        status === undefined ? list.all({ after, rows }) : listByStatus.all({ status, after, rows }),
      )
      return { pets: found.slice(0, limit).map(petOf), more: found.length > limit }
    },
    get(id) {
      const row = guarded(() => get.get({ id }))
      return row ? petOf(row) : undefined
    },
    async create(pet) {
      const id = await writer.write('createPet', pet.name, pet.categoryId, pet.status ?? null)
      return { ...pet, id }
    },
    createOnce: (pet, once) => writer.write('createPetOnce', pet, once),
    forgetExpired: (now, atMost) => writer.write('forgetExpired', now.getTime() - onceKeptMs, atMost),
  }
}

/** Run by the writer, each inside a transaction. */
export function createPetWrites(database: Database) {
  const insert = database.query<
    { id: bigint },
    { name: string; categoryId: bigint; status: PetStatus | null }
  >(statements.create)
  const findOnce = database.query<
    { fingerprint: string; pet_id: bigint },
    { scope: string; key: string; expiredMs: number }
  >(statements.findOnce)
  const keepOnce = database.query<
    never,
    { scope: string; key: string; fingerprint: string; petId: bigint; atMs: number }
  >(statements.keepOnce)
  const forget = database.query<never, { expiredMs: number; atMost: number }>(statements.forgetExpired)

  function createPet(name: string, categoryId: bigint, status: PetStatus | null): bigint {
    const row = insert.get({ name, categoryId, status })
    if (!row) throw new Error('INSERT … RETURNING gave no row')
    return row.id
  }

  return {
    createPet,
    /** The one writer takes one creation after another, so that none is ever found still running. */
    createPetOnce(pet: NewPet, { scope, key, at }: Once): Creation {
      const fingerprint = fingerprintOf(pet)
      const known = findOnce.get({ scope, key, expiredMs: at.getTime() - onceKeptMs })
      if (known && known.fingerprint !== fingerprint) return { outcome: 'different' }
      if (known) return { outcome: 'replayed', pet: { ...pet, id: known.pet_id } }
      const id = createPet(pet.name, pet.categoryId, pet.status ?? null)
      keepOnce.run({ scope, key, fingerprint, petId: id, atMs: at.getTime() })
      return { outcome: 'created', pet: { ...pet, id } }
    },
    forgetExpired: (expiredMs: number, atMost: number): number =>
      Number(forget.run({ expiredMs, atMost }).changes),
  }
}
