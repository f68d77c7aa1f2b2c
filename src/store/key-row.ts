import type { ApiKey, Permission } from '../api-key.ts'

export type KeyRow = {
  id: bigint
  name: string
  hash: string
  shown: string
  /** True for a metrics key too. SQLite has no booleans: 0 or 1 there. */
  read_only: boolean | bigint
  metrics: boolean | bigint
  created_at_ms: bigint
  expires_at_ms: bigint | null
  revoked_at_ms: bigint | null
  last_used_at_ms: bigint | null
  deprecated_uses: bigint
  deprecated_last_used_at_ms: bigint | null
}

export const columns = `id, name, hash, shown, read_only, metrics, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms,
  deprecated_uses, deprecated_last_used_at_ms`

export function keyOf(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    hash: row.hash,
    shown: row.shown,
    permission: permissionOf(row),
    createdAt: new Date(Number(row.created_at_ms)),
    deprecatedUses: row.deprecated_uses,
    ...dated('expiresAt', row.expires_at_ms),
    ...dated('revokedAt', row.revoked_at_ms),
    ...dated('lastUsedAt', row.last_used_at_ms),
    ...dated('deprecatedLastUsedAt', row.deprecated_last_used_at_ms),
  }
}

function permissionOf({ read_only, metrics }: KeyRow): Permission {
  if (metrics) return 'metrics'
  return read_only ? 'read-only' : 'read-write'
}

/** A metrics key is stored as read-only as well: an instance of a version that knows no such keys never lets it write. */
export function permissionColumns(permission: Permission): {
  readonly readOnly: boolean
  readonly metrics: boolean
} {
  return { readOnly: permission !== 'read-write', metrics: permission === 'metrics' }
}

function dated<K extends string>(name: K, ms: bigint | null): { [P in K]?: Date } {
  return ms === null ? {} : ({ [name]: new Date(Number(ms)) } as { [P in K]?: Date })
}
