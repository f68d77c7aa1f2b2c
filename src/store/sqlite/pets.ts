import type { Database } from 'bun:sqlite'
import type { PageRequest, PetPage } from '../../page.ts'
import type { Pet, PetStatus } from '../../pet.ts'
import { idempotencyKeyMs, type PetStore } from '../../store.ts'
import type { DamageGuard } from './fault.ts'
import { createVersion } from './version.ts'
import type { Writer } from './writer.ts'

export type PetRow = { id: bigint; name: string; category_id: bigint; status: PetStatus | null }

export function petOf({ id, name, category_id: categoryId, status }: PetRow): Pet {
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
} as const

/** Ids begin at 1; so the first page and the later ones are one statement. */
const beforeAll = 0n

export function createPetStore(reading: Database, writer: Writer, guard: DamageGuard): PetStore {
  const list = reading.query<PetRow, { after: bigint; rows: number }>(statements.list)
  const listByStatus = reading.query<PetRow, { status: PetStatus; after: bigint; rows: number }>(
    statements.listByStatus,
  )
  const get = reading.query<PetRow, { id: bigint }>(statements.get)

  return {
    list({ limit, status, after = beforeAll }: PageRequest): PetPage {
      // One row past the limit tells that more follow, without a COUNT.
      const rows = limit + 1
      const found = guard.run(() =>
        status === undefined ? list.all({ after, rows }) : listByStatus.all({ status, after, rows }),
      )
      return { pets: found.slice(0, limit).map(petOf), more: found.length > limit }
    },
    version: createVersion(reading, writer, guard),
    get(id) {
      const row = guard.run(() => get.get({ id }))
      return row ? petOf(row) : undefined
    },
    async create(pet) {
      const id = await writer.write('createPet', pet.name, pet.categoryId, pet.status ?? null)
      return { ...pet, id }
    },
    createOnce: (pet, once) => writer.write('createPetOnce', pet, once),
    deleteExpiredKeys: (now, atMost) =>
      writer.write('deleteExpiredKeys', now.getTime() - idempotencyKeyMs, atMost),
  }
}
