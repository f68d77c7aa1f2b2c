import type { Database } from 'bun:sqlite'
import type { ApiKey, NewApiKey } from '../../api-key.ts'
import type { KeyStore, KeyUse } from '../../store.ts'
import { type KeyRow, keyColumns, keyOf, permissionColumns } from '../rows.ts'
import type { DamageGuard } from './errors.ts'
import type { Writer } from './writer.ts'

const insert = `
  INSERT INTO api_keys (name, hash, shown, read_only, metrics, created_at_ms, expires_at_ms)
  SELECT $name, $hash, $shown, $readOnly, $metrics, $createdAtMs, $expiresAtMs`

const statements = {
  find: `SELECT ${keyColumns} FROM api_keys WHERE hash = $hash`,
  list: `SELECT ${keyColumns} FROM api_keys ORDER BY id`,
  create: `${insert} RETURNING ${keyColumns}`,
  createFirst: `${insert} WHERE NOT EXISTS (SELECT 1 FROM api_keys) RETURNING ${keyColumns}`,
  revoke: 'UPDATE api_keys SET revoked_at_ms = $atMs WHERE id = $id AND revoked_at_ms IS NULL RETURNING id',
  recordUse: `
    UPDATE api_keys SET
      last_used_at_ms = max(ifnull(last_used_at_ms, 0), $lastUsedAtMs),
      deprecated_uses = deprecated_uses + $deprecatedUses,
      deprecated_last_used_at_ms = nullif(max(ifnull(deprecated_last_used_at_ms, 0), $deprecatedLastUsedAtMs), 0)
    WHERE id = $id`,
} as const

type KeyWriter = Pick<Writer<KeyWrites>, 'write'>

/** Reads on the calling thread, writes in the writer thread. */
export class SqliteKeys implements KeyStore {
  readonly #find
  readonly #list
  readonly #writer: KeyWriter
  readonly #guard: DamageGuard

  constructor(reading: Database, writer: KeyWriter, guard: DamageGuard) {
    this.#find = reading.query<KeyRow, { hash: string }>(statements.find)
    this.#list = reading.query<KeyRow, []>(statements.list)
    this.#writer = writer
    this.#guard = guard
  }

  find(hash: string): ApiKey | undefined {
    const row = this.#guard.run(() => this.#find.get({ hash }))
    return row ? keyOf(row) : undefined
  }

  list(): readonly ApiKey[] {
    return this.#guard.run(() => this.#list.all()).map(keyOf)
  }

  create(key: NewApiKey): Promise<ApiKey> {
    return this.#writer.write('createKey', key)
  }

  createFirst(key: NewApiKey): Promise<ApiKey | undefined> {
    return this.#writer.write('createFirstKey', key)
  }

  revoke(id: bigint, at: Date): Promise<boolean> {
    return this.#writer.write('revokeKey', id, at)
  }

  recordUses(uses: readonly KeyUse[]): Promise<void> {
    return this.#writer.write('recordKeyUses', uses)
  }
}

export type KeyWrites = ReturnType<typeof createKeyWrites>

/** Each runs inside a transaction of the writer thread. */
export function createKeyWrites(database: Database) {
  const create = database.query<KeyRow, ReturnType<typeof insertValues>>(statements.create)
  const createFirst = database.query<KeyRow, ReturnType<typeof insertValues>>(statements.createFirst)

  return {
    createKey(key: NewApiKey): ApiKey {
      const row = create.get(insertValues(key))
      if (!row) throw new Error('INSERT … RETURNING returned no row')
      return keyOf(row)
    },
    createFirstKey(key: NewApiKey): ApiKey | undefined {
      const row = createFirst.get(insertValues(key))
      return row ? keyOf(row) : undefined
    },
    revokeKey: (id: bigint, at: Date): boolean =>
      database.query(statements.revoke).get({ id, atMs: at.getTime() }) !== null,
    recordKeyUses(uses: readonly KeyUse[]): void {
      for (const { id, lastUsedAt, deprecatedUses, deprecatedLastUsedAt } of uses) {
        database.query(statements.recordUse).run({
          id,
          lastUsedAtMs: lastUsedAt.getTime(),
          deprecatedUses,
          deprecatedLastUsedAtMs: deprecatedLastUsedAt?.getTime() ?? 0,
        })
      }
    },
  }
}

function insertValues({ name, hash, shown, permission, createdAt, expiresAt }: NewApiKey) {
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
