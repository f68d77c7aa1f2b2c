import type { Database } from 'bun:sqlite'
import type { ApiKey, NewApiKey } from '../../api-key.ts'
import type { KeyUse } from '../../store.ts'
import { columns, type KeyRow, keyOf, permissionColumns } from '../key-row.ts'

const insert = `
  INSERT INTO api_keys (name, hash, shown, read_only, metrics, created_at_ms, expires_at_ms)
  SELECT $name, $hash, $shown, $readOnly, $metrics, $createdAtMs, $expiresAtMs`

const statements = {
  create: `${insert} RETURNING ${columns}`,
  createFirst: `${insert} WHERE NOT EXISTS (SELECT 1 FROM api_keys) RETURNING ${columns}`,
  revoke: 'UPDATE api_keys SET revoked_at_ms = $atMs WHERE id = $id AND revoked_at_ms IS NULL RETURNING id',
  recordUse: `
    UPDATE api_keys SET
      last_used_at_ms = max(ifnull(last_used_at_ms, 0), $lastUsedAtMs),
      deprecated_uses = deprecated_uses + $deprecatedUses,
      deprecated_last_used_at_ms = nullif(max(ifnull(deprecated_last_used_at_ms, 0), $deprecatedLastUsedAtMs), 0)
    WHERE id = $id`,
} as const

type InsertValues = {
  name: string
  hash: string
  shown: string
  readOnly: number
  metrics: number
  createdAtMs: number
  expiresAtMs: number | null
}

function valuesOf(key: NewApiKey): InsertValues {
  const { name, hash, shown, permission, createdAt, expiresAt } = key
  const { readOnly, metrics } = permissionColumns(permission)
  return {
    name,
    hash,
    shown,
    readOnly: Number(readOnly),
    metrics: Number(metrics),
    createdAtMs: createdAt.getTime(),
    expiresAtMs: expiresAt?.getTime() ?? null,
  }
}

/** Run by the writer, each inside a transaction. */
export function createKeyWrites(database: Database) {
  const create = database.query<KeyRow, InsertValues>(statements.create)
  const createFirst = database.query<KeyRow, InsertValues>(statements.createFirst)
  const revoke = database.query<{ id: bigint }, { id: bigint; atMs: number }>(statements.revoke)
  const recordUse = database.query<
    never,
    { id: bigint; lastUsedAtMs: number; deprecatedUses: number; deprecatedLastUsedAtMs: number }
  >(statements.recordUse)

  return {
    createKey(key: NewApiKey): ApiKey {
      const row = create.get(valuesOf(key))
      if (!row) throw new Error('INSERT … RETURNING gave no row')
      return keyOf(row)
    },
    createFirstKey(key: NewApiKey): ApiKey | undefined {
      const row = createFirst.get(valuesOf(key))
      return row ? keyOf(row) : undefined
    },
    revokeKey: (id: bigint, at: Date): boolean => revoke.get({ id, atMs: at.getTime() }) !== null,
    recordKeyUses(uses: readonly KeyUse[]): void {
      for (const { id, lastUsedAt, deprecatedUses, deprecatedLastUsedAt } of uses) {
        recordUse.run({
          id,
          lastUsedAtMs: lastUsedAt.getTime(),
          deprecatedUses,
          deprecatedLastUsedAtMs: deprecatedLastUsedAt?.getTime() ?? 0,
        })
      }
    },
  }
}
