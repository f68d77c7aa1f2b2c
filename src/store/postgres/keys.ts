import type { NewApiKey } from '../../api-key.ts'
import type { KeyStore } from '../../store.ts'
import { columns, type KeyRow, keyOf, permissionColumns } from '../key-row.ts'
import { integers } from './arrays.ts'
import type { Pool } from './pool.ts'

const insert = 'INSERT INTO api_keys (name, hash, shown, read_only, metrics, created_at_ms, expires_at_ms)'

const statements = {
  find: `SELECT ${columns} FROM api_keys WHERE hash = $1`,
  list: `SELECT ${columns} FROM api_keys ORDER BY id`,
  create: `${insert} VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${columns}`,
  // The lock lets only one of several instances at a time see that there is no key yet.
  lock: 'LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE',
  createFirst: `
    ${insert} SELECT $1, $2, $3, $4, $5, $6::bigint, $7::bigint
    WHERE NOT EXISTS (SELECT 1 FROM api_keys) RETURNING ${columns}`,
  revoke: 'UPDATE api_keys SET revoked_at_ms = $1 WHERE id = $2 AND revoked_at_ms IS NULL RETURNING id',
  // In the order of ids: two instances that write down the same keys wait for one another, and never crosswise.
  recordUses: `
    UPDATE api_keys SET
      last_used_at_ms = greatest(api_keys.last_used_at_ms, use.last_used_at_ms),
      deprecated_uses = api_keys.deprecated_uses + use.deprecated_uses,
      deprecated_last_used_at_ms = nullif(greatest(api_keys.deprecated_last_used_at_ms, use.deprecated_last_used_at_ms), 0)
    FROM (
      SELECT given.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
        AS given (id, last_used_at_ms, deprecated_uses, deprecated_last_used_at_ms)
      JOIN api_keys AS held ON held.id = given.id ORDER BY held.id FOR UPDATE OF held
    ) AS use
    WHERE api_keys.id = use.id`,
} as const

/** Always of the server that takes writes: a standby may not have heard yet that a key was revoked. */
export function createKeyStore(reading: Pool, writing: Pool): KeyStore {
  return {
    async find(hash) {
      const [row] = await reading.run(sql => sql.unsafe<KeyRow[]>(statements.find, [hash]), 'again')
      return row && keyOf(row)
    },
    async list() {
      const rows = await reading.run(sql => sql.unsafe<KeyRow[]>(statements.list), 'again')
      return rows.map(keyOf)
    },
    async create(key) {
      const [row] = await writing.run(sql => sql.unsafe<KeyRow[]>(statements.create, valuesOf(key)))
      if (!row) throw new Error('INSERT … RETURNING gave no row')
      return keyOf(row)
    },
    async createFirst(key) {
      const [row] = await writing.run(sql =>
        sql.begin(async transaction => {
          await transaction.unsafe(statements.lock)
          return transaction.unsafe<KeyRow[]>(statements.createFirst, valuesOf(key))
        }),
      )
      return row && keyOf(row)
    },
    async revoke(id, at) {
      const rows = await writing.run(sql => sql.unsafe(statements.revoke, [BigInt(at.getTime()), id]))
      return rows.length > 0
    },
    async recordUses(uses) {
      await writing.run(async sql => {
        await sql.unsafe(statements.recordUses, [
          integers(sql, uses, ({ id }) => id),
          integers(sql, uses, ({ lastUsedAt }) => msOf(lastUsedAt)),
          integers(sql, uses, ({ deprecatedUses }) => BigInt(deprecatedUses)),
          integers(sql, uses, ({ deprecatedLastUsedAt }) => msOf(deprecatedLastUsedAt)),
        ])
      })
    },
  }
}

function valuesOf({ name, hash, shown, permission, createdAt, expiresAt }: NewApiKey) {
  const { readOnly, metrics } = permissionColumns(permission)
  return [name, hash, shown, readOnly, metrics, msOf(createdAt), expiresAt ? msOf(expiresAt) : null]
}

/** 0 where there is none. */
function msOf(date: Date | undefined): bigint {
  return BigInt(date?.getTime() ?? 0)
}
