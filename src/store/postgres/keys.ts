import type { SQL } from 'bun'
import type { ApiKey } from '../../api-key.ts'
import { int64Max } from '../../int64.ts'
import type { KeyStore } from '../../store-contract.ts'
import { withTimeout } from '../../timeout.ts'
import type { WriteHealth } from '../commit-queue.ts'
import { type KeyRow, keyColumns, newKeyColumns, newKeyValues, toApiKey, toMs } from '../rows.ts'
import { type Connections, late, type Reader } from './connections.ts'
import { bigints, readTogether, texts } from './pets.ts'
import { workMsMax } from './server.ts'

export function createPostgresKeys(reader: Reader, writing: Connections, health: WriteHealth): KeyStore {
  // One statement for all waiting look-ups, ahead of other reads: unknown keys must not fill the queue.
  const lookUp = readTogether<string, ApiKey>(
    hashes => {
      const select = `SELECT ${keyColumns} FROM api_keys WHERE hash = ANY ($1)`
      const work = async (sql: SQL) => {
        const rows = await sql.unsafe<KeyRow[]>(select, [texts(sql, hashes, hash => hash)])
        return new Map(rows.map(row => [row.hash, toApiKey(row)]))
      }
      return reader.run(work, { isFirst: true })
    },
    // A connection that hangs must not hold up all keys until it is replaced.
    { aloneMs: 1_000 },
  )
  return {
    find: hash => withTimeout(lookUp(hash), workMsMax, () => Promise.reject(late(workMsMax))),
    async list() {
      const rows = await reader.run(sql => sql.unsafe<KeyRow[]>(`SELECT ${keyColumns} FROM api_keys ORDER BY id`))
      return rows.map(toApiKey)
    },
    async create(key) {
      const insert = `INSERT INTO api_keys (${newKeyColumns}) VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${keyColumns}`
      const [row] = await writing.run(sql => sql.unsafe<[KeyRow]>(insert, newKeyValues(key)))
      return toApiKey(row)
    },
    async createFirst(key) {
      const insert = `
        INSERT INTO api_keys (${newKeyColumns}) SELECT $1, $2, $3, $4, $5::bigint, $6::bigint
        WHERE NOT EXISTS (SELECT 1 FROM api_keys) RETURNING ${keyColumns}`
      const [row] = await writing.run(sql =>
        sql.begin(async transaction => {
          // Only one instance at a time can see that there is no key yet.
          await transaction`LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE`
          return transaction.unsafe<KeyRow[]>(insert, newKeyValues(key))
        }),
      )
      return row && toApiKey(row)
    },
    async revoke(id, at) {
      const update = 'UPDATE api_keys SET revoked_at_ms = $1 WHERE id = $2 AND revoked_at_ms IS NULL'
      const { count } = await writing.run(sql => sql.unsafe(update, [toMs(at), id]))
      return count > 0
    },
    async recordUses(uses) {
      const recording = writing.run(async sql =>
        sql.unsafe(recordUses, [
          bigints(sql, uses, ({ id }) => id),
          bigints(sql, uses, ({ lastUsedAt }) => toMs(lastUsedAt)),
          bigints(sql, uses, ({ deprecatedUses }) => BigInt(deprecatedUses)),
        ]),
      )
      await recording.catch(error => {
        health.noteFailure('others')
        throw error
      })
      health.noteChange('others')
    },
  }
}

/** Locks the keys in order of their ids: two instances that record the same keys cannot deadlock. */
const recordUses = `
  UPDATE api_keys SET
    last_used_at_ms = greatest(api_keys.last_used_at_ms, use.last_used_at_ms),
    -- Not above the last bigint, which a restored backup may have.
    deprecated_uses = least(api_keys.deprecated_uses::numeric + use.deprecated_uses, ${int64Max}),
    deprecated_last_used_at_ms = CASE WHEN use.deprecated_uses = 0 THEN api_keys.deprecated_last_used_at_ms
      ELSE greatest(api_keys.deprecated_last_used_at_ms, use.last_used_at_ms) END
  FROM (
    SELECT given.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (id, last_used_at_ms, deprecated_uses)
    JOIN api_keys AS held ON held.id = given.id ORDER BY held.id FOR UPDATE OF held
  ) AS use
  WHERE api_keys.id = use.id`
