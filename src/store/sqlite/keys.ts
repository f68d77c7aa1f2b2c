import type { Database } from 'bun:sqlite'
import type { KeyStore } from '../../store.ts'
import { type KeyRow, keyColumns, keyOf, newKeyColumns, newKeyValues } from '../rows.ts'
import type { DamageGuard } from './errors.ts'
import { endSnapshot } from './pets.ts'
import type { KeyWrites, Writer } from './writer.ts'

/** Reads on the calling thread, writes in the writer thread. */
export function createSqliteKeys(reading: Database, writer: Pick<Writer, 'write'>, guard: DamageGuard): KeyStore {
  const find = reading.query<KeyRow, { hash: string }>(`SELECT ${keyColumns} FROM api_keys WHERE hash = $hash`)
  const list = reading.query<KeyRow, []>(`SELECT ${keyColumns} FROM api_keys ORDER BY id`)
  const read = <T>(statement: () => T) =>
    guard.run(() => {
      endSnapshot(reading)
      return statement()
    })
  return {
    async find(hash) {
      const row = read(() => find.get({ hash }))
      return row ? keyOf(row) : undefined
    },
    list: async () => read(() => list.all()).map(keyOf),
    create: key => writer.write({ type: 'createKey', key }),
    createFirst: key => writer.write({ type: 'createFirstKey', key }),
    revoke: (id, at) => writer.write({ type: 'revokeKey', id, at }),
    recordUses: uses => writer.write({ type: 'recordKeyUses', uses }),
  }
}

export function prepareKeyWrites(database: Database): KeyWrites {
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
       deprecated_uses = deprecated_uses + $deprecatedUses,
       deprecated_last_used_at_ms = nullif(max(ifnull(deprecated_last_used_at_ms, 0), $deprecatedLastUsedAtMs), 0)
     WHERE id = $id`,
  )
  return {
    createKey: ({ key }) => keyOf(insert.get(...newKeyValues(key)) as KeyRow),
    createFirstKey({ key }) {
      const row = insertFirst.get(...newKeyValues(key))
      return row ? keyOf(row) : undefined
    },
    revokeKey: ({ id, at }) => markRevoked.get({ id, atMs: at.getTime() }) !== null,
    recordKeyUses({ uses }) {
      for (const { id, lastUsedAt, deprecatedUses, deprecatedLastUsedAt } of uses) {
        const deprecatedLastUsedAtMs = deprecatedLastUsedAt?.getTime() ?? 0
        recordUse.run({ id, lastUsedAtMs: lastUsedAt.getTime(), deprecatedUses, deprecatedLastUsedAtMs })
      }
    },
  }
}
