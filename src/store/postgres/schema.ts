import type { SQL } from 'bun'
import { StoreError } from '../../errors.ts'
import { missingMigrations } from '../rows.ts'
import { functions } from './functions.ts'
import { connectForLongWork, longTransaction } from './server.ts'
import type { PostgresAddress } from './url.ts'

// The checks guard changes by SQL; the rules of POST /pets are in pet.ts. COLLATE "C": these indexes do not depend on
// the sort order of the system's C library, which an upgrade can change.
const firstSchema = `
  CREATE TABLE pets (
    id bigint PRIMARY KEY CHECK (id > 0),
    name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 1000),
    category_id bigint NOT NULL,
    status text CHECK (status IN ('available', 'pending', 'sold'))
  );
  CREATE INDEX pets_by_status ON pets (status, id);
  CREATE FUNCTION petstore_refuse_id() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE 'the id of an animal cannot change' USING ERRCODE = '23514';
  END $$;
  CREATE TRIGGER fixed_id BEFORE UPDATE OF id ON pets EXECUTE FUNCTION petstore_refuse_id();

  -- No id up to this one is assigned again. Raised only when animals are deleted: a row that changed with every
  -- creation would bloat during a long snapshot.
  CREATE TABLE pet_id_floor (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    last_id bigint NOT NULL
  );
  INSERT INTO pet_id_floor (last_id) VALUES (0);
  CREATE FUNCTION petstore_raise_floor() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE pet_id_floor SET last_id = (SELECT max(id) FROM pets) WHERE last_id < (SELECT max(id) FROM pets);
    RETURN NULL;
  END $$;
  CREATE TRIGGER raise_floor BEFORE DELETE OR TRUNCATE ON pets EXECUTE FUNCTION petstore_raise_floor();

  CREATE TABLE api_keys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    hash text COLLATE "C" NOT NULL UNIQUE,
    shown text NOT NULL,
    permission text NOT NULL CHECK (permission IN ('manage', 'read-write', 'read-only', 'metrics')),
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint,
    revoked_at_ms bigint,
    last_used_at_ms bigint,
    deprecated_uses bigint NOT NULL DEFAULT 0,
    deprecated_last_used_at_ms bigint
  );

  CREATE TABLE idempotency_keys (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint text NOT NULL,
    pet_id bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    PRIMARY KEY (scope, key)
  );
  CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at_ms);

  ${functions}

  CREATE TABLE petstore_schema_version (version integer NOT NULL)`

/** Append only: each step makes the next version. petstore_schema_version holds the last version made. */
export const migrations: readonly string[] = [firstSchema]

/** The rights that a server needs and its user lacks, such as `INSERT on pets`. */
export const missingRights = `
  SELECT string_agg(privilege, ', ') || ' on ' || name AS lacking
  FROM (VALUES ('pets', 'SELECT INSERT UPDATE DELETE'), ('pet_id_floor', 'SELECT UPDATE'),
    ('api_keys', 'SELECT INSERT UPDATE'), ('idempotency_keys', 'SELECT INSERT UPDATE DELETE')
  ) AS needed (name, privileges),
    string_to_table(privileges, ' ') AS privilege
  WHERE NOT has_table_privilege(name, privilege) GROUP BY name
  UNION ALL
  SELECT 'EXECUTE on ' || proname FROM pg_proc
  WHERE proname LIKE 'petstore\\_%' AND prorettype <> 'trigger'::regtype AND pg_function_is_visible(oid)
    AND NOT has_function_privilege(oid, 'EXECUTE')`

/** "PETS" in ASCII. Held during a migration, so that several instances can start at once. */
const migrationLock = 0x50455453

/** Applies missing migrations, each in its own transaction, and returns whether there were none before. */
export async function migrate(address: PostgresAddress, create: boolean, steps: readonly string[]): Promise<boolean> {
  const what = `Cannot open the store ${address.location}`
  await using connection = connectForLongWork(address)
  const { sql } = connection
  const found = await readVersion(sql)
  if (found === 0 && !create) throw new StoreError('no-tables', `${what}: it has no tables`)
  // Changes nothing if nothing is missing, so the server's user does not need the right to create tables.
  for (const { version, sql: step } of missingMigrations(what, found, steps)) {
    await sql.begin(async transaction => {
      await transaction.unsafe(longTransaction)
      await transaction`SELECT pg_advisory_xact_lock(${migrationLock})`
      // Another instance may have applied it meanwhile.
      if ((await readVersion(transaction)) >= version) return
      // Running instances wait behind this step. If another program has locked a table, they must not wait for long.
      await transaction.unsafe(`SET LOCAL lock_timeout = '3s'`)
      await transaction.unsafe(step)
      await transaction`DELETE FROM petstore_schema_version`
      await transaction`INSERT INTO petstore_schema_version (version) VALUES (${version})`
    })
  }
  return found === 0
}

/** 0 if there is no store. Reads pg_tables: to_regclass may return what the session saw before it waited. */
async function readVersion(sql: SQL): Promise<number> {
  const [table] = await sql`
    SELECT 1 FROM pg_tables
    WHERE tablename = 'petstore_schema_version' AND schemaname = ANY (current_schemas(false)) LIMIT 1`
  if (!table) return 0
  const [row] = await sql<{ version: number }[]>`SELECT version FROM petstore_schema_version`
  return row?.version ?? 0
}
