import type { SQL } from 'bun'
import { SetupError } from '../../errors.ts'
import { checkSchemaVersion } from '../rows.ts'
import { connectForLongWork, type Server } from './pool.ts'

/** Append only: never edit a released migration. petstore_schema holds the number of those applied. */
export const migrations: readonly string[] = [
  `CREATE TABLE pets (
     id bigint PRIMARY KEY CHECK (id > 0),
     name text NOT NULL,
     category_id bigint NOT NULL,
     status text CHECK (status IN ('available', 'pending', 'sold'))
   );

   CREATE INDEX pets_by_status ON pets (status, id);

   -- The last id given. Not a sequence: its row stays locked until the animals are committed, so that ids become
   -- visible in their order, and none is lost with a transaction that fails.
   CREATE TABLE pet_ids (
     single boolean PRIMARY KEY DEFAULT true CHECK (single),
     last_id bigint NOT NULL
   );
   INSERT INTO pet_ids (last_id) VALUES (0);

   CREATE TABLE api_keys (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     name text NOT NULL,
     hash text NOT NULL UNIQUE,
     shown text NOT NULL,
     read_only boolean NOT NULL,
     created_at_ms bigint NOT NULL,
     expires_at_ms bigint,
     revoked_at_ms bigint,
     last_used_at_ms bigint,
     deprecated_uses bigint NOT NULL DEFAULT 0,
     deprecated_last_used_at_ms bigint
   );

   CREATE TABLE creation_keys (
     scope text NOT NULL,
     key text NOT NULL,
     fingerprint text NOT NULL,
     pet_id bigint NOT NULL,
     created_at_ms bigint NOT NULL,
     PRIMARY KEY (scope, key)
   );

   CREATE INDEX creation_keys_by_age ON creation_keys (created_at_ms);`,

  'ALTER TABLE api_keys ADD COLUMN metrics boolean NOT NULL DEFAULT false',
]

/** "PETS" in ASCII. Held during a migration, so that several instances can start at once. */
const migrationLock = 0x50455453

/** Applies missing migrations, each in its own transaction, and returns whether there were none before. */
export async function migrate(server: Server, location: string, create: boolean): Promise<boolean> {
  await using connection = connectForLongWork(server)
  const { sql } = connection
  const found = await versionIn(sql)
  if (found === 0 && !create) {
    throw new SetupError(`There is no store in ${location}: start the server once, or set DATABASE_URL`)
  }
  checkSchemaVersion(location, found, migrations.length)
  // Changes nothing if nothing is missing, so the server's user does not need the right to create tables.
  for (const [index, step] of migrations.entries()) {
    if (index < found) continue
    await sql.begin(async transaction => {
      await transaction`SELECT pg_advisory_xact_lock(${migrationLock})`
      // Another instance may have applied it meanwhile.
      if ((await versionIn(transaction)) > index) return
      await transaction.unsafe(step)
      await transaction`CREATE TABLE IF NOT EXISTS petstore_schema (version integer NOT NULL)`
      await transaction`DELETE FROM petstore_schema`
      await transaction`INSERT INTO petstore_schema (version) VALUES (${index + 1})`
    })
  }
  return found === 0
}

/** 0 if there is no store. Reads pg_tables, because to_regclass may return what the session saw before it waited. */
async function versionIn(sql: SQL): Promise<number> {
  const [table] = await sql`
    SELECT EXISTS (
      SELECT 1 FROM pg_tables WHERE tablename = 'petstore_schema' AND schemaname = ANY (current_schemas(false))
    ) AS found`
  if (!table?.found) return 0
  const [row] = await sql`SELECT version FROM petstore_schema`
  return row?.version ?? 0
}
