import type { Database } from 'bun:sqlite'
import type { KeyStore } from '../../store.ts'
import { columns, type KeyRow, keyOf } from '../key-row.ts'
import type { DamageGuard } from './fault.ts'
import type { Writer } from './writer.ts'

const statements = {
  find: `SELECT ${columns} FROM api_keys WHERE hash = $hash`,
  list: `SELECT ${columns} FROM api_keys ORDER BY id`,
} as const

export function createKeyStore(reading: Database, writer: Writer, guard: DamageGuard): KeyStore {
  const find = reading.query<KeyRow, { hash: string }>(statements.find)
  const list = reading.query<KeyRow, []>(statements.list)
  return {
    find(hash) {
      const row = guard.run(() => find.get({ hash }))
      return row ? keyOf(row) : undefined
    },
    list: () => guard.run(() => list.all()).map(keyOf),
    create: key => writer.write('createKey', key),
    createFirst: key => writer.write('createFirstKey', key),
    revoke: (id, at) => writer.write('revokeKey', id, at),
    recordUses: uses => writer.write('recordKeyUses', uses),
  }
}
