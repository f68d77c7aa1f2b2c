import type { Database } from 'bun:sqlite'
import type { KeyStore } from '../../store.ts'
import { type KeyRow, keyColumns, keyOf } from '../rows.ts'
import type { TickSnapshot } from './snapshot.ts'
import type { Writer } from './writer.ts'

/** Reads on this thread. The writer thread writes. */
export function createSqliteKeys(reading: Database, snapshot: TickSnapshot, writer: Pick<Writer, 'write'>): KeyStore {
  const find = reading.query<KeyRow, { hash: string }>(`SELECT ${keyColumns} FROM api_keys WHERE hash = $hash`)
  const list = reading.query<KeyRow, []>(`SELECT ${keyColumns} FROM api_keys ORDER BY id`)
  return {
    async find(hash) {
      const row = snapshot.readLatest(() => find.get({ hash }))
      return row ? keyOf(row) : undefined
    },
    list: async () => snapshot.readLatest(() => list.all()).map(keyOf),
    create: key => writer.write({ type: 'createKey', key }),
    createFirst: key => writer.write({ type: 'createFirstKey', key }),
    revoke: (id, at) => writer.write({ type: 'revokeKey', id, at }),
    recordUses: uses => writer.write({ type: 'recordKeyUses', uses }),
  }
}
