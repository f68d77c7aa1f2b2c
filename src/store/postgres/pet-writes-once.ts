import type { SQL } from 'bun'
import { fingerprintOf, type NewPet, type Pet } from '../../pet.ts'
import { type Creation, type IdempotencyKey, idempotencyKeyMs } from '../../store.ts'
import { integers, texts } from './arrays.ts'
import { createPets } from './pet-writes.ts'

/** An animal to be added, at most once where it was sent under a key. */
export interface PetWrite {
  readonly pet: NewPet
  readonly once?: IdempotencyKey
}

/** What is known of a creation under a key. */
interface Known {
  readonly scope: string
  readonly key: string
  readonly fingerprint: string
  readonly atMs: number
  /** Undefined where the animal is about to be created, by this very batch. */
  petId: bigint | undefined
}

interface CreationKeyRow {
  readonly scope: string
  readonly key: string
  readonly fingerprint: string
  readonly pet_id: bigint
  readonly created_at_ms: bigint
}

const statements = {
  lock: 'SELECT last_id FROM pet_ids FOR UPDATE',
  find: `
    SELECT scope, key, fingerprint, pet_id, created_at_ms FROM creation_keys
    WHERE (scope, key) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
  // An expired one may still be there: it is overwritten.
  keep: `
    INSERT INTO creation_keys (scope, key, fingerprint, pet_id, created_at_ms)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
    ON CONFLICT (scope, key) DO UPDATE SET
      fingerprint = excluded.fingerprint, pet_id = excluded.pet_id, created_at_ms = excluded.created_at_ms`,
} as const

/**
 * All in one transaction: the animals, and the keys that they were sent under. One creation follows another, so that none is
 * ever found still running.
 */
export function createPetsOnce(sql: SQL, writes: readonly PetWrite[]): Promise<Creation[]> {
  return sql.begin(async transaction => {
    // Whoever adds holds this lock until its commit: what is read after it is all that there is.
    await transaction.unsafe(statements.lock)
    const known = await find(transaction, writes)
    const { additions, outcomes } = plan(writes, known)
    const created = await createPets(
      transaction,
      additions.map(({ pet }) => pet),
    )
    const added = additions.flatMap(({ now }, place) => {
      if (now) now.petId = created[place]?.id
      return now ?? []
    })
    await keep(transaction, added)
    return outcomes.map(outcome => outcome(created))
  })
}

const nameOf = ({ scope, key }: Pick<IdempotencyKey, 'scope' | 'key'>) => JSON.stringify([scope, key])

async function find(sql: SQL, writes: readonly PetWrite[]): Promise<Map<string, Known>> {
  const sought = writes.flatMap(({ once }) => once ?? [])
  const rows = await sql.unsafe<CreationKeyRow[]>(statements.find, [
    texts(sql, sought, ({ scope }) => scope),
    texts(sql, sought, ({ key }) => key),
  ])
  return new Map(
    rows.map(({ scope, key, fingerprint, pet_id: petId, created_at_ms }) => [
      nameOf({ scope, key }),
      { scope, key, fingerprint, atMs: Number(created_at_ms), petId },
    ]),
  )
}

/** Decides each write in turn, as if it were alone; what one adds is known to those after it. */
function plan(writes: readonly PetWrite[], known: Map<string, Known>) {
  const additions: { readonly pet: NewPet; readonly now?: Known }[] = []
  const outcomes = writes.map(({ pet, once }): ((created: readonly Pet[]) => Creation) => {
    const before = once && known.get(nameOf(once))
    if (before && before.atMs > once.at.getTime() - idempotencyKeyMs) return () => repeated(pet, before)
    const now = once && knownFrom(pet, once)
    if (now) known.set(nameOf(now), now)
    const place = additions.push({ pet, ...(now && { now }) }) - 1
    return created => ({ outcome: 'created', pet: { ...pet, id: idOf(created[place]?.id) } })
  })
  return { additions, outcomes }
}

function knownFrom(pet: NewPet, { scope, key, at }: IdempotencyKey): Known {
  return { scope, key, fingerprint: fingerprintOf(pet), atMs: at.getTime(), petId: undefined }
}

function repeated(pet: NewPet, { fingerprint, petId }: Known): Creation {
  if (fingerprint !== fingerprintOf(pet)) return { outcome: 'conflict' }
  return { outcome: 'replayed', pet: { ...pet, id: idOf(petId) } }
}

async function keep(sql: SQL, given: readonly Known[]): Promise<void> {
  // A key that is twice among them had expired in between: the later one counts.
  const added = [...new Map(given.map(known => [nameOf(known), known])).values()]
  if (added.length === 0) return
  await sql.unsafe(statements.keep, [
    texts(sql, added, ({ scope }) => scope),
    texts(sql, added, ({ key }) => key),
    texts(sql, added, ({ fingerprint }) => fingerprint),
    integers(sql, added, ({ petId }) => idOf(petId)),
    integers(sql, added, ({ atMs }) => BigInt(atMs)),
  ])
}

function idOf(id: bigint | undefined): bigint {
  if (id === undefined) throw new Error('an animal was created without an id')
  return id
}
