import type { Pet, PetStatus } from '../../pet.ts'
import { idempotencyKeyMs, type PetStore } from '../../store.ts'
import { deleteExpiredKeys } from './pet-writes.ts'
import type { Pool } from './pool.ts'
import type { PetWriter } from './writer.ts'

export interface PetRow {
  readonly id: bigint
  readonly name: string
  readonly category_id: bigint
  readonly status: PetStatus | null
}

export const statements = {
  list: 'SELECT id, name, category_id, status FROM pets WHERE id > $1 ORDER BY id LIMIT $2',
  // Not `status = $1 ORDER BY id`: the planner may then walk the primary key and leave out the other statuses, which is
  // dear where a status is rare. In this order only the index on both columns has the rows.
  listByStatus: `
    SELECT id, name, category_id, status FROM pets
    WHERE (status, id) > ($1, $2) AND status <= $1 ORDER BY status, id LIMIT $3`,
  get: 'SELECT id, name, category_id, status FROM pets WHERE id = $1',
} as const

export function petOf({ id, name, category_id: categoryId, status }: PetRow): Pet {
  return status === null ? { id, name, categoryId } : { id, name, categoryId, status }
}

/** `reading` may be of a standby; what was written elsewhere is seen there a little later. */
export function createPetStore(reading: Pool, writing: Pool, writer: PetWriter): PetStore {
  return {
    async list({ limit, status, after = 0n }) {
      // One row past the limit tells us that a next page exists, without a COUNT.
      const rows = limit + 1
      const found = await reading.run(
        sql =>
          status === undefined
            ? sql.unsafe<PetRow[]>(statements.list, [after, rows])
            : sql.unsafe<PetRow[]>(statements.listByStatus, [status, after, rows]),
        'again',
      )
      return { pets: found.slice(0, limit).map(petOf), more: found.length > limit }
    },
    async get(id) {
      const [row] = await reading.run(sql => sql.unsafe<PetRow[]>(statements.get, [id]), 'again')
      return row && petOf(row)
    },
    create: pet => writer.create(pet),
    createOnce: (pet, once) => writer.createOnce(pet, once),
    deleteExpiredKeys: (now, atMost) =>
      writing.run(sql => deleteExpiredKeys(sql, now.getTime() - idempotencyKeyMs, atMost)),
  }
}
