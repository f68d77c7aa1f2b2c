import type { SQL } from 'bun'
import type { NewPet, Pet } from '../../pet.ts'
import { integers, texts } from './arrays.ts'

const statements = {
  // The update waits for whoever else is adding, and goes on from what they committed: ids rise in the order of commits.
  create: `
    WITH counter AS (
      UPDATE pet_ids SET last_id = last_id + cardinality($1::text[])
      RETURNING last_id - cardinality($1::text[]) AS before
    ), given AS (
      SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY
        AS pet (name, category_id, status, place)
    )
    INSERT INTO pets (id, name, category_id, status)
    SELECT before + place, name, category_id, status FROM counter, given
    RETURNING id`,
  deleteExpiredKeys: `
    DELETE FROM creation_keys WHERE (scope, key) IN (
      SELECT scope, key FROM creation_keys WHERE created_at_ms <= $1
      ORDER BY created_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)`,
} as const

/** Adds them in their order, in one statement. */
export async function createPets(sql: SQL, pets: readonly NewPet[]): Promise<Pet[]> {
  if (pets.length === 0) return []
  const rows = await sql.unsafe<{ id: bigint }[]>(statements.create, [
    texts(sql, pets, ({ name }) => name),
    integers(sql, pets, ({ categoryId }) => categoryId),
    texts(sql, pets, ({ status }) => status ?? null),
  ])
  // RETURNING promises no order; the ids were given in the animals' own.
  const ids = rows.map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1))
  return pets.map((pet, place) => ({ ...pet, id: idAt(ids, place) }))
}

function idAt(ids: readonly bigint[], place: number): bigint {
  const id = ids[place]
  if (id === undefined) throw new Error(`INSERT … RETURNING gave only ${ids.length} rows`)
  return id
}

/** Several instances sweep at once: each takes what the others have not taken. */
export async function deleteExpiredKeys(sql: SQL, expiredMs: number, atMost: number): Promise<number> {
  const { count } = await sql.unsafe(statements.deleteExpiredKeys, [BigInt(expiredMs), atMost])
  return count
}
