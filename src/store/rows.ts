// How both engines read and write rows, and what both refuse.

import type { ApiKey, NewApiKey, Permission } from '../api-key.ts'
import { StoreError } from '../errors.ts'
import { int64Max } from '../int64.ts'
import type { Page } from '../page.ts'
import type { NewPet, Pet, PetStatus } from '../pet.ts'

export type PetRow = { id: bigint; name: string; categoryId: bigint; status: PetStatus | null }

export const petColumns = 'id, name, category_id AS "categoryId", status'

/** Copies only a row without a status: a row with one is an animal as it is. */
export function toPet(row: PetRow): Pet {
  if (hasStatus(row)) return row
  const { id, name, categoryId } = row
  return { id, name, categoryId }
}

const hasStatus = (row: PetRow): row is PetRow & { status: PetStatus } => row.status !== null

/** `rows` has one more than the limit if there is a next page: learning that costs no COUNT. */
export function toPage(rows: readonly PetRow[], limit: number): Page {
  return { pets: rows.slice(0, limit).map(toPet), more: rows.length > limit }
}

/** Equal for equal animals, however the client wrote them. Stored: an upgrade must not change it. */
export function hashPet({ name, categoryId, status }: NewPet): string {
  const values = JSON.stringify([name, String(categoryId), status ?? null])
  return new Bun.CryptoHasher('sha256').update(values).digest('hex')
}

export type KeyRow = {
  id: bigint
  name: string
  hash: string
  shown: string
  permission: Permission
  created_at_ms: bigint
  expires_at_ms: bigint | null
  revoked_at_ms: bigint | null
  last_used_at_ms: bigint | null
  deprecated_uses: bigint
  deprecated_last_used_at_ms: bigint | null
}

export const newKeyColumns = 'name, hash, shown, permission, created_at_ms, expires_at_ms'
export const keyColumnsWithoutId = `${newKeyColumns}, revoked_at_ms,
  last_used_at_ms, deprecated_uses, deprecated_last_used_at_ms`
export const keyColumns = `id, ${keyColumnsWithoutId}`

export function toApiKey(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    hash: row.hash,
    shown: row.shown,
    permission: row.permission,
    createdAt: new Date(Number(row.created_at_ms)),
    deprecatedUses: row.deprecated_uses,
    expiresAt: toDate(row.expires_at_ms),
    revokedAt: toDate(row.revoked_at_ms),
    lastUsedAt: toDate(row.last_used_at_ms),
    deprecatedLastUsedAt: toDate(row.deprecated_last_used_at_ms),
  }
}

const toDate = (ms: bigint | null) => (ms === null ? undefined : new Date(Number(ms)))

/** The values of {@link newKeyColumns}. */
export function newKeyValues({ name, hash, shown, permission, createdAt, expiresAt }: NewApiKey) {
  return [name, hash, shown, permission, toMs(createdAt), expiresAt ? toMs(expiresAt) : null]
}

export function toMs(date: Date): bigint {
  return BigInt(date.getTime())
}

// Refusals, in the same words for both engines. `what` begins the message: `Cannot open the store pets.db`.

/** The steps that a store lacks. `found` is its version, 0 if it is new; the first step makes version 1. */
export function missingMigrations(what: string, found: number, steps: readonly string[]) {
  if (found < 0 || found > steps.length) {
    const problem = `it has schema version ${found}, and this program supports versions up to ${steps.length}`
    throw new StoreError('newer-schema', `${what}: ${problem}`)
  }
  return steps.slice(found).map((sql, index) => ({ version: found + index + 1, sql }))
}

export function storeNotEmpty(location: string): StoreError {
  return new StoreError('not-empty', `Cannot keep the ids: the store ${location} already has animals`)
}

/** Refuses `count` new ids after `lastId` if there are fewer. */
export function checkIdsLeft(location: string, count: number, lastId: bigint): void {
  if (lastId <= int64Max - BigInt(count)) return
  const problem = `the store ${location} has used ids up to ${lastId}, and ${int64Max} is the last`
  throw new StoreError('ids-exhausted', `Cannot assign ${count} new ids: ${problem}`)
}
