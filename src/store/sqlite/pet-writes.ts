import type { Database } from 'bun:sqlite'
import { IdsExhausted } from '../../errors.ts'
import { int64Max } from '../../int64.ts'
import { fingerprintOf, type NewPet, type PetStatus } from '../../pet.ts'
import { type Creation, type IdempotencyKey, idempotencyKeyMs } from '../../store.ts'

const statements = {
  // Without the condition SQLite would report a full disk after the last id, and roll back the whole group.
  create: `
    INSERT INTO pets (name, category_id, status) SELECT $name, $categoryId, $status
    WHERE (SELECT seq FROM sqlite_sequence WHERE name = 'pets') IS NOT ${int64Max}
    RETURNING id`,
  findOnce: `
    SELECT fingerprint, pet_id FROM creation_keys
    WHERE scope = $scope AND key = $key AND created_at_ms > $expiredMs`,
  // An expired one may still be there: it is overwritten.
  keepOnce: `
    INSERT OR REPLACE INTO creation_keys (scope, key, fingerprint, pet_id, created_at_ms)
    VALUES ($scope, $key, $fingerprint, $petId, $atMs)`,
  deleteExpiredKeys: `
    DELETE FROM creation_keys WHERE (scope, key) IN (
      SELECT scope, key FROM creation_keys WHERE created_at_ms <= $expiredMs ORDER BY created_at_ms LIMIT $atMost)`,
} as const

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
  const forget = database.query<never, { expiredMs: number; atMost: number }>(statements.deleteExpiredKeys)

  // One statement: a group of writes relies on it.
  function createPet(name: string, categoryId: bigint, status: PetStatus | null): bigint {
    const row = insert.get({ name, categoryId, status })
    if (!row) throw new IdsExhausted(`${int64Max} is the last id`)
    return row.id
  }

  return {
    createPet,
    /** The one writer takes one creation after another, so that none is ever found still running. */
    createPetOnce(pet: NewPet, { scope, key, at }: IdempotencyKey): Creation {
      const fingerprint = fingerprintOf(pet)
      const known = findOnce.get({ scope, key, expiredMs: at.getTime() - idempotencyKeyMs })
      if (known && known.fingerprint !== fingerprint) return { outcome: 'conflict' }
      if (known) return { outcome: 'replayed', pet: { ...pet, id: known.pet_id } }
      const id = createPet(pet.name, pet.categoryId, pet.status ?? null)
      keepOnce.run({ scope, key, fingerprint, petId: id, atMs: at.getTime() })
      return { outcome: 'created', pet: { ...pet, id } }
    },
    deleteExpiredKeys: (expiredMs: number, atMost: number): number =>
      Number(forget.run({ expiredMs, atMost }).changes),
  }
}
