import type { SQL } from 'bun'
import { IdsExhausted } from '../../errors.ts'
import { fingerprintOf, type NewPet, type Pet } from '../../pet.ts'
import { type Creation, type IdempotencyKey, idempotencyKeyMs, type PetStore } from '../../store.ts'
import { CommitQueue } from '../commit-queue.ts'
import { msOf, type PetRow, petOf } from '../rows.ts'
import { isRefusedByServer } from './errors.ts'
import { type Pool, workMsMax } from './pool.ts'

export const statements = {
  list: 'SELECT id, name, category_id, status FROM pets WHERE id > $1 ORDER BY id LIMIT $2',
  // With `status = $1 ORDER BY id` the planner may walk the primary key and skip other statuses, which is expensive if the
  // status is rare. Only the index on both columns has this order.
  listByStatus: `
    SELECT id, name, category_id, status FROM pets
    WHERE (status, id) > ($1, $2) AND status <= $1 ORDER BY status, id LIMIT $3`,
  get: 'SELECT id, name, category_id, status FROM pets WHERE id = $1',
  // Every instance that creates animals holds this lock until COMMIT, so later statements see all keys and the next ids.
  lock: 'SELECT last_id FROM pet_ids FOR UPDATE',
} as const

type PetWrite = { readonly pet: NewPet; readonly key?: IdempotencyKey }

/** Reads from one pool, which may be a replica's, and commits new animals in batches through the other. */
export function createPostgresPets(reading: Pool, writing: Pool) {
  const queue = new CommitQueue<PetWrite, Creation>(
    async batch => ({ values: await writing.run(sql => createAll(sql, batch)) }),
    {
      timeoutMs: workMsMax,
      // One refused animal, or too few ids for the batch, must not fail the others.
      retrySingly: error => isRefusedByServer(error) || error instanceof IdsExhausted,
    },
  )
  const pets: PetStore = {
    async list({ limit, status, after = 0n }) {
      // Fetch one extra row to learn whether a next page exists, without a COUNT.
      const rows = limit + 1
      const found = status
        ? await reading.read<PetRow>(statements.listByStatus, [status, after, rows])
        : await reading.read<PetRow>(statements.list, [after, rows])
      return { pets: found.slice(0, limit).map(petOf), more: found.length > limit }
    },
    async get(id) {
      const [row] = await reading.read<PetRow>(statements.get, [id])
      return row && petOf(row)
    },
    async create(pet) {
      const creation = await queue.add({ pet })
      if (!('pet' in creation)) throw new Error(`an animal without an idempotency key: ${creation.outcome}`)
      return creation.pet
    },
    createOnce: (pet, key) => queue.add({ pet, key }),
    async deleteExpiredIdempotencyKeys(now, max) {
      // Several instances delete at once: each skips the rows that another one has locked.
      const statement = `
        DELETE FROM creation_keys WHERE (scope, key) IN (
          SELECT scope, key FROM creation_keys WHERE created_at_ms <= $1
          ORDER BY created_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)`
      const expiredMs = now.getTime() - idempotencyKeyMs
      const { count } = await writing.run(sql => sql.unsafe(statement, [BigInt(expiredMs), max]))
      return count
    },
  }
  return { pets, queue }
}

/** One statement without idempotency keys, otherwise a transaction. */
async function createAll(sql: SQL, writes: readonly PetWrite[]): Promise<Creation[]> {
  if (writes.some(({ key }) => key)) return sql.begin(transaction => createOnceAll(transaction, writes))
  const newPets = writes.map(({ pet }) => pet)
  const pets = await insertPets(sql, newPets)
  return pets.map(pet => ({ outcome: 'created', pet }))
}

async function insertPets(sql: SQL, pets: readonly NewPet[]): Promise<Pet[]> {
  // The UPDATE waits for other instances and continues from what they committed: ids rise in the order of commits.
  const statement = `
    WITH counter AS (
      UPDATE pet_ids SET last_id = last_id + cardinality($1::text[])
      RETURNING last_id - cardinality($1::text[]) AS before
    ), given AS (
      SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY
        AS pet (name, category_id, status, place)
    )
    INSERT INTO pets (id, name, category_id, status)
    SELECT before + place, name, category_id, status FROM counter, given
    RETURNING id`
  const rows = await sql.unsafe<{ id: bigint }[]>(statement, [
    texts(sql, pets, ({ name }) => name),
    bigints(sql, pets, ({ categoryId }) => categoryId),
    texts(sql, pets, ({ status }) => status ?? null),
  ])
  if (rows.length !== pets.length) throw new Error(`INSERT … RETURNING returned ${rows.length} rows`)
  // RETURNING guarantees no order, but the ids were assigned in the animals' order.
  const ids = rows.map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1))
  return pets.map((pet, index) => ({ ...pet, id: ids[index] as bigint }))
}

type KeyRow = { scope: string; key: string; fingerprint: string; pet_id: bigint; created_at_ms: bigint }

/** Stores the animals and their idempotency keys. The lock means no key is ever seen as in progress. */
async function createOnceAll(sql: SQL, writes: readonly PetWrite[]): Promise<Creation[]> {
  const [counter] = await sql.unsafe<{ last_id: bigint }[]>(statements.lock)
  const known = await findKeys(sql, writes)
  const newPets: Pet[] = []
  const newKeys = new Map<string, KeyRow>()
  let lastId = counter?.last_id ?? 0n
  // Decides each write as if it were alone; later ones see the keys of earlier ones.
  const creations = writes.map(({ pet, key }): Creation => {
    const row = key && (newKeys.get(nameOf(key)) ?? known.get(nameOf(key)))
    if (row && Number(row.created_at_ms) > key.at.getTime() - idempotencyKeyMs) {
      if (row.fingerprint !== fingerprintOf(pet)) return { outcome: 'conflict' }
      return { outcome: 'replayed', pet: { ...pet, id: row.pet_id } }
    }
    const created = { ...pet, id: ++lastId }
    newPets.push(created)
    if (key) newKeys.set(nameOf(key), keyRowOf(key, created))
    return { outcome: 'created', pet: created }
  })
  if (newPets.length > 0) await insertPets(sql, newPets)
  if (newKeys.size > 0) await storeKeys(sql, [...newKeys.values()])
  return creations
}

function nameOf({ scope, key }: { readonly scope: string; readonly key: string }): string {
  return JSON.stringify([scope, key])
}

function keyRowOf({ scope, key, at }: IdempotencyKey, pet: Pet): KeyRow {
  return { scope, key, fingerprint: fingerprintOf(pet), pet_id: pet.id, created_at_ms: msOf(at) }
}

async function findKeys(sql: SQL, writes: readonly PetWrite[]): Promise<Map<string, KeyRow>> {
  const keys = writes.flatMap(({ key }) => key ?? [])
  const rows = await sql.unsafe<KeyRow[]>(
    `SELECT scope, key, fingerprint, pet_id, created_at_ms FROM creation_keys
     WHERE (scope, key) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
    [texts(sql, keys, ({ scope }) => scope), texts(sql, keys, ({ key }) => key)],
  )
  return new Map(rows.map(row => [nameOf(row), row]))
}

/** Replaces expired keys that are not deleted yet. */
async function storeKeys(sql: SQL, rows: readonly KeyRow[]): Promise<void> {
  await sql.unsafe(
    `INSERT INTO creation_keys (scope, key, fingerprint, pet_id, created_at_ms)
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
     ON CONFLICT (scope, key) DO UPDATE SET
       fingerprint = excluded.fingerprint, pet_id = excluded.pet_id, created_at_ms = excluded.created_at_ms`,
    [
      ...(['scope', 'key', 'fingerprint'] as const).map(column => texts(sql, rows, row => row[column])),
      ...(['pet_id', 'created_at_ms'] as const).map(column => bigints(sql, rows, row => row[column])),
    ],
  )
}

/** One column of many rows as one parameter: the statement has the same text for any number of rows. */
export function texts<T>(sql: SQL, rows: readonly T[], value: (row: T) => string | null) {
  return sql.array(rows.map(value), 'TEXT')
}

export function bigints<T>(sql: SQL, rows: readonly T[], value: (row: T) => bigint) {
  return sql.array(rows.map(value), 'BIGINT')
}
