import type { Database } from 'bun:sqlite'
import type { ApiKey, KeyStore, KeyUse, NewApiKey } from '../../api-key.ts'
import { guarded } from './fault.ts'
import type { Writer } from './writer.ts'

type KeyRow = {
  id: bigint
  name: string
  hash: string
  shown: string
  read_only: bigint
  created_at_ms: bigint
  expires_at_ms: bigint | null
  revoked_at_ms: bigint | null
  last_used_at_ms: bigint | null
  deprecated_uses: bigint
  deprecated_last_used_at_ms: bigint | null
}

const columns = `id, name, hash, shown, read_only, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms,
  deprecated_uses, deprecated_last_used_at_ms`

const insert = `
  INSERT INTO api_keys (name, hash, shown, read_only, created_at_ms, expires_at_ms)
  SELECT $name, $hash, $shown, $readOnly, $createdAtMs, $expiresAtMs`

const statements = {
  find: `SELECT ${columns} FROM api_keys WHERE hash = $hash`,
  list: `SELECT ${columns} FROM api_keys ORDER BY id`,
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

function keyOf(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    hash: row.hash,
    shown: row.shown,
    readOnly: row.read_only === 1n,
    createdAt: new Date(Number(row.created_at_ms)),
    deprecatedUses: row.deprecated_uses,
    ...dated('expiresAt', row.expires_at_ms),
    ...dated('revokedAt', row.revoked_at_ms),
    ...dated('lastUsedAt', row.last_used_at_ms),
    ...dated('deprecatedLastUsedAt', row.deprecated_last_used_at_ms),
  }
}

function dated<K extends string>(name: K, ms: bigint | null): { [P in K]?: Date } {
  return ms === null ? {} : ({ [name]: new Date(Number(ms)) } as { [P in K]?: Date })
}

type InsertValues = {
  name: string
  hash: string
  shown: string
  readOnly: number
  createdAtMs: number
  expiresAtMs: number | null
}

function valuesOf(key: NewApiKey): InsertValues {
  const { name, hash, shown, readOnly, createdAt, expiresAt } = key
  return {
    name,
    hash,
    shown,
    readOnly: readOnly ? 1 : 0,
    createdAtMs: createdAt.getTime(),
    expiresAtMs: expiresAt?.getTime() ?? null,
  }
}

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
