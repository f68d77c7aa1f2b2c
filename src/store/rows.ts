import type { ApiKey, NewApiKey } from '../api-key.ts'
import { SetupError } from '../errors.ts'
import { int64Max } from '../int64.ts'
import { petsToJson, petToJson } from '../json.ts'
import type { PetPage } from '../page.ts'
import type { NewPet, Pet, PetStatus } from '../pet.ts'
import { keptIdProblem } from '../store.ts'

export type PetRow<Integer = bigint> = { id: Integer; name: string; categoryId: Integer; status: PetStatus | null }

export const petColumns = 'id, name, category_id AS "categoryId", status'

export function petOf({ id, name, categoryId, status }: PetRow): Pet {
  return status === null ? { id, name, categoryId } : { id, name, categoryId, status }
}

/** `rows` has one row more than the limit if there is a next page. */
export function pageOf(rows: readonly PetRow<bigint | number>[], limit: number): PetPage {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return { json: petsToJson(shown), lastId: last && BigInt(last.id), more: rows.length > limit }
}

/** Equal for equal animals, however the client wrote them. */
export function fingerprintOf(pet: NewPet): string {
  return new Bun.CryptoHasher('sha256').update(petToJson({ ...pet, id: 0n })).digest('hex')
}

/** White space, as the rule for names defines it: `\s` in JavaScript. */
export const blankCodePoints = [
  9, 10, 11, 12, 13, 32, 160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198, 8199, 8200, 8201, 8202, 8232, 8233, 8239,
  8287, 12288, 65279,
]

export type KeyRow = {
  id: bigint
  name: string
  hash: string
  shown: string
  /** True for a metrics key too. SQLite has no booleans: 0 or 1. */
  read_only: boolean | bigint
  metrics: boolean | bigint
  created_at_ms: bigint
  expires_at_ms: bigint | null
  revoked_at_ms: bigint | null
  last_used_at_ms: bigint | null
  deprecated_uses: bigint
  deprecated_last_used_at_ms: bigint | null
}

export const newKeyColumns = 'name, hash, shown, read_only, metrics, created_at_ms, expires_at_ms'
export const keyColumnsWithoutId = `${newKeyColumns}, revoked_at_ms,
  last_used_at_ms, deprecated_uses, deprecated_last_used_at_ms`
export const keyColumns = `id, ${keyColumnsWithoutId}`

export function keyOf(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    hash: row.hash,
    shown: row.shown,
    permission: row.metrics ? 'metrics' : row.read_only ? 'read-only' : 'read-write',
    createdAt: new Date(Number(row.created_at_ms)),
    deprecatedUses: row.deprecated_uses,
    ...optionalDate('expiresAt', row.expires_at_ms),
    ...optionalDate('revokedAt', row.revoked_at_ms),
    ...optionalDate('lastUsedAt', row.last_used_at_ms),
    ...optionalDate('deprecatedLastUsedAt', row.deprecated_last_used_at_ms),
  }
}

function optionalDate<K extends string>(name: K, ms: bigint | null): { [P in K]?: Date } {
  return ms === null ? {} : ({ [name]: new Date(Number(ms)) } as { [P in K]?: Date })
}

/** The values of {@link newKeyColumns}. A metrics key is read-only, too. */
export function newKeyValues({ name, hash, shown, permission, createdAt, expiresAt }: NewApiKey) {
  const flags = [permission !== 'read-write', permission === 'metrics']
  return [name, hash, shown, ...flags, msOf(createdAt), expiresAt ? msOf(expiresAt) : null]
}

export function msOf(date: Date): bigint {
  return BigInt(date.getTime())
}

/** `version` is the store's schema version once `sql` has run. */
export interface Migration {
  readonly version: number
  readonly sql: string
}

// Refusals, in the same words for both engines.

/** The migrations that a store lacks; `found` is 0 in a new one. */
export function missingMigrations(location: string, found: number, known: readonly Migration[]): readonly Migration[] {
  const versions = known.map(({ version }) => version)
  const [oldest, newest] = [Math.min(...versions), Math.max(...versions)]
  const problem = `The store ${location} has schema version ${found}, and this program supports versions`
  if (found > newest) throw new SetupError(`${problem} up to ${newest}: upgrade the program`)
  if (found !== 0 && found < oldest) {
    throw new SetupError(
      `${problem} from ${oldest}: export the animals with the program that made it, and import them into a new store`,
    )
  }
  return known.filter(({ version }) => version > found)
}

export function storeNotEmpty(location: string): SetupError {
  return new SetupError(
    `Cannot keep the ids: the store ${location} already has animals; import without --keep-ids, or set DATABASE_URL to an empty store`,
  )
}

/** Refuses `count` new ids after `lastId` if there are fewer. */
export function checkIdsLeft(location: string, count: number, lastId: bigint): void {
  if (lastId <= int64Max - BigInt(count)) return
  throw new SetupError(
    `Cannot assign ${count} new ids: the store ${location} has used ids up to ${lastId}, and ${int64Max} is the last; import into an empty store`,
  )
}

/** The id, if it can be kept after the previous one. */
export function checkedKeptId(id: bigint | undefined, previous: bigint): bigint {
  const problem = keptIdProblem(id, previous)
  if (problem !== undefined || id === undefined) throw new SetupError(`Cannot import the animals: ${problem}`)
  return id
}
