import type { Database } from 'bun:sqlite'
import type { ApiKey, NewApiKey } from '../../api-key.ts'
import { int64Max } from '../../int64.ts'
import type { KeyStore, KeyUse } from '../../store-contract.ts'
import { type KeyRow, keyColumns, newKeyColumns, newKeyValues, toApiKey } from '../rows.ts'
import type { DamageGuard } from './errors.ts'
import type { WritesByName } from './thread.ts'

/** Reads on the serving thread. */
export function createSqliteKeys(
  database: Database,
  guard: DamageGuard,
  writer: WritesByName<ReturnType<typeof keyWrites>>,
): KeyStore {
  const find = database.query<KeyRow, { hash: string }>(`SELECT ${keyColumns} FROM api_keys WHERE hash = $hash`)
  const list = database.query<KeyRow, []>(`SELECT ${keyColumns} FROM api_keys ORDER BY id`)
  return {
    async find(hash) {
      const row = guard.run(() => find.get({ hash }))
      return row ? toApiKey(row) : undefined
    },
    list: async () => guard.run(() => list.all()).map(toApiKey),
    create: key => writer.write('createKey', key),
    createFirst: key => writer.write('createFirstKey', key),
    revoke: (id, at) => writer.write('revokeKey', id, at),
    recordUses: uses => writer.write('recordKeyUses', uses),
  }
}

/** Run in the writer thread. */
export function keyWrites(database: Database) {
  const insertIf = (condition: string) =>
    database.query<KeyRow, ReturnType<typeof newKeyValues>>(
      `INSERT INTO api_keys (${newKeyColumns}) SELECT ?, ?, ?, ?, ?, ? WHERE ${condition} RETURNING ${keyColumns}`,
    )
  const insert = insertIf('true')
  const insertFirst = insertIf('NOT EXISTS (SELECT 1 FROM api_keys)')
  const markRevoked = database.query<{ id: bigint }, { id: bigint; atMs: number }>(
    'UPDATE api_keys SET revoked_at_ms = $atMs WHERE id = $id AND revoked_at_ms IS NULL RETURNING id',
  )
  const recordUse = database.query(
    `UPDATE api_keys SET
       last_used_at_ms = max(ifnull(last_used_at_ms, 0), $lastUsedAtMs),
       -- Saturates: beyond the last integer, which a restored backup may have, SQLite computes a REAL, and refuses it.
       deprecated_uses = min(deprecated_uses + $deprecatedUses, ${int64Max}),
       deprecated_last_used_at_ms = CASE WHEN $deprecatedUses = 0 THEN deprecated_last_used_at_ms
         ELSE max(ifnull(deprecated_last_used_at_ms, 0), $lastUsedAtMs) END
     WHERE id = $id`,
  )
  return {
    createKey: (key: NewApiKey): ApiKey => toApiKey(insert.get(...newKeyValues(key)) as KeyRow),
    createFirstKey(key: NewApiKey): ApiKey | undefined {
      const row = insertFirst.get(...newKeyValues(key))
      return row ? toApiKey(row) : undefined
    },
    revokeKey: (id: bigint, at: Date): boolean => markRevoked.get({ id, atMs: at.getTime() }) !== null,
    recordKeyUses(uses: readonly KeyUse[]): void {
      for (const { id, lastUsedAt, deprecatedUses } of uses) {
        recordUse.run({ id, lastUsedAtMs: lastUsedAt.getTime(), deprecatedUses })
      }
    },
  }
}
