import type { Database } from 'bun:sqlite'
import type { PetStatus } from '../../pet.ts'
import { idempotencyKeyMs, type PetStore } from '../../store.ts'
import { type PetRow, pageOf, petColumns, petOf } from '../rows.ts'
import type { TickSnapshot } from './snapshot.ts'
import type { Writer } from './writer.ts'

export const statements = {
  list: `SELECT ${petColumns} FROM pets WHERE id > $after ORDER BY id LIMIT $rows`,
  listByStatus: `SELECT ${petColumns} FROM pets WHERE status = $status AND id > $after ORDER BY id LIMIT $rows`,
  get: `SELECT ${petColumns} FROM pets WHERE id = $id`,
} as const

type PageParameters = { after: bigint; rows: number }

/** Reads on this thread. The writer thread writes. */
export function createSqlitePets(reading: Database, snapshot: TickSnapshot, writer: Pick<Writer, 'write'>): PetStore {
  const list = reading.query<PetRow, PageParameters>(statements.list)
  const listByStatus = reading.query<PetRow, PageParameters & { status: PetStatus }>(statements.listByStatus)
  const get = reading.query<PetRow, { id: bigint }>(statements.get)
  const findExpired = reading.query('SELECT 1 FROM idempotency_keys WHERE created_at_ms <= $expiredUntilMs LIMIT 1')

  return {
    async list({ limit, status, after = 0n }) {
      const rows = limit + 1
      const found = snapshot.read(() =>
        status === undefined ? list.all({ after, rows }) : listByStatus.all({ status, after, rows }),
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
      const expiredUntilMs = now.getTime() - idempotencyKeyMs
      // A sweep with nothing to delete takes no lock.
      const found = snapshot.read(() => findExpired.get({ expiredUntilMs }))
      return found ? await writer.write({ type: 'deleteExpiredIdempotencyKeys', expiredUntilMs, max }) : 0
    },
    version: () => snapshot.version(),
  }
}
