import type { Database } from 'bun:sqlite'
import type { NewPet, PageRequest, Pet, PetPage, PetStatus, PetStore } from '../../pet.ts'
import { guarded } from './fault.ts'

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
  create: `
    INSERT INTO pets (name, category_id, status) VALUES ($name, $categoryId, $status)
    RETURNING id, name, category_id, status`,
} as const

/** Ids begin at 1; so the first page and the later ones are one statement. */
const beforeAll = 0n

export function createPetStore(reading: Database, writing: Database): PetStore {
  const list = reading.query<PetRow, { after: bigint; rows: number }>(statements.list)
  const listByStatus = reading.query<PetRow, { status: PetStatus; after: bigint; rows: number }>(
    statements.listByStatus,
  )
  const get = reading.query<PetRow, { id: bigint }>(statements.get)
  const create = writing.query<PetRow, { name: string; categoryId: bigint; status: PetStatus | null }>(
    statements.create,
  )

  return {
    list({ limit, status, after = beforeAll }: PageRequest): PetPage {
      // One row past the limit tells that more follow, without a COUNT.
      const rows = limit + 1
      const found = guarded(() =>
        status === undefined ? list.all({ after, rows }) : listByStatus.all({ status, after, rows }),
      )
      return { pets: found.slice(0, limit).map(petOf), more: found.length > limit }
    },
    create({ name, categoryId, status }: NewPet): Pet {
      const row = guarded(() => create.get({ name, categoryId, status: status ?? null }))
      if (!row) throw new Error('INSERT … RETURNING gave no row')
      return petOf(row)
    },
    get(id: bigint): Pet | undefined {
      const row = guarded(() => get.get({ id }))
      return row ? petOf(row) : undefined
    },
  }
}
