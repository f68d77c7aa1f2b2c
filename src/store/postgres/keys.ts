import type { ApiKey, NewApiKey } from '../../api-key.ts'
import type { KeyStore, KeyUse } from '../../store.ts'
import { type KeyRow, keyColumns, keyOf, permissionColumns } from '../rows.ts'
import { bigints } from './pets.ts'
import type { Pool } from './pool.ts'

const insert = 'INSERT INTO api_keys (name, hash, shown, read_only, metrics, created_at_ms, expires_at_ms)'

const statements = {
  find: `SELECT ${keyColumns} FROM api_keys WHERE hash = $1`,
  list: `SELECT ${keyColumns} FROM api_keys ORDER BY id`,
  create: `${insert} VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${keyColumns}`,
  // Only one instance at a time can see that there is no key yet.
  lock: 'LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE',
  createFirst: `
    ${insert} SELECT $1, $2, $3, $4, $5, $6::bigint, $7::bigint
    WHERE NOT EXISTS (SELECT 1 FROM api_keys) RETURNING ${keyColumns}`,
  revoke: 'UPDATE api_keys SET revoked_at_ms = $1 WHERE id = $2 AND revoked_at_ms IS NULL RETURNING id',
  // Locks the keys in order of their ids: two instances that record the same keys cannot deadlock.
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

/** Reads from the primary as well: a standby may not know yet that a key is revoked. */
export class PostgresKeys implements KeyStore {
  readonly #reading: Pool
  readonly #writing: Pool

  constructor(reading: Pool, writing: Pool) {
    this.#reading = reading
    this.#writing = writing
  }

  async find(hash: string): Promise<ApiKey | undefined> {
    const [row] = await this.#reading.run(sql => sql.unsafe<KeyRow[]>(statements.find, [hash]), 'idempotent')
    return row && keyOf(row)
  }

  async list(): Promise<readonly ApiKey[]> {
    const rows = await this.#reading.run(sql => sql.unsafe<KeyRow[]>(statements.list), 'idempotent')
    return rows.map(keyOf)
  }

  async create(key: NewApiKey): Promise<ApiKey> {
    const [row] = await this.#writing.run(sql => sql.unsafe<KeyRow[]>(statements.create, insertValues(key)))
    if (!row) throw new Error('INSERT … RETURNING returned no row')
    return keyOf(row)
  }

  async createFirst(key: NewApiKey): Promise<ApiKey | undefined> {
    const [row] = await this.#writing.run(sql =>
      sql.begin(async transaction => {
        await transaction.unsafe(statements.lock)
        return transaction.unsafe<KeyRow[]>(statements.createFirst, insertValues(key))
      }),
    )
    return row && keyOf(row)
  }

  async revoke(id: bigint, at: Date): Promise<boolean> {
    const rows = await this.#writing.run(sql => sql.unsafe(statements.revoke, [msOf(at), id]))
    return rows.length > 0
  }

  async recordUses(uses: readonly KeyUse[]): Promise<void> {
    await this.#writing.run(async sql =>
      sql.unsafe(statements.recordUses, [
        bigints(sql, uses, ({ id }) => id),
        bigints(sql, uses, ({ lastUsedAt }) => msOf(lastUsedAt)),
        bigints(sql, uses, ({ deprecatedUses }) => BigInt(deprecatedUses)),
        bigints(sql, uses, ({ deprecatedLastUsedAt }) => (deprecatedLastUsedAt ? msOf(deprecatedLastUsedAt) : 0n)),
      ]),
    )
  }
}

function insertValues({ name, hash, shown, permission, createdAt, expiresAt }: NewApiKey) {
  const { readOnly, metrics } = permissionColumns(permission)
  return [name, hash, shown, readOnly, metrics, msOf(createdAt), expiresAt ? msOf(expiresAt) : null]
}

function msOf(date: Date): bigint {
  return BigInt(date.getTime())
}
