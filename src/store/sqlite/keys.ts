import type { Database } from 'bun:sqlite'
import type { KeyStore } from '../../api-key.ts'
import { columns, type KeyRow, keyOf } from '../key-row.ts'
import { guarded } from './fault.ts'
import type { Writer } from './writer.ts'

const statements = {
  find: `SELECT ${columns} FROM api_keys WHERE hash = $hash`,
  list: `SELECT ${columns} FROM api_keys ORDER BY id`,
} as const

export function createKeyStore(reading: Database, writer: Writer): KeyStore {
  const find = reading.query<KeyRow, { hash: string }>(statements.find)
  const list = reading.query<KeyRow, []>(statements.list)
  return {
    find(hash) {
      const row = guarded(() => find.get({ hash }))
      return row ? keyOf(row) : undefined
    },
    list: () => guarded(() => list.all()).map(keyOf),
    create: key => writer.write('createKey', key),
    createFirst: key => writer.write('createFirstKey', key),
    revoke: (id, at) => writer.write('revokeKey', id, at),
    recordUses: uses => writer.write('recordKeyUses', uses),
  }
}
