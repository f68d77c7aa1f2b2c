import type { SQL } from 'bun'
import { SetupError } from '../../errors.ts'
import { blankCodePoints, type Migration, missingMigrations } from '../rows.ts'
import { functions } from './functions.ts'
import { connectForLongWork, lockMsMax, longTransaction, type Server } from './server.ts'

// COLLATE "C": these indexes do not depend on the sort order of the system's C library, which an upgrade can change.
const firstSchema = `
  CREATE TABLE pets (
    id bigint PRIMARY KEY CHECK (id > 0),
    name text NOT NULL,
    category_id bigint NOT NULL,
    status text CHECK (status IN ('available', 'pending', 'sold'))
  );
  CREATE INDEX pets_by_status ON pets (status, id);

  -- No id up to this one is assigned again. Raised only when animals are deleted: a row that changed with every
  -- creation would bloat during a long snapshot.
  CREATE TABLE pet_id_floor (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    last_id bigint NOT NULL
  );
  INSERT INTO pet_id_floor (last_id) VALUES (0);

  CREATE TABLE api_keys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    hash text COLLATE "C" NOT NULL UNIQUE,
    shown text NOT NULL,
    read_only boolean NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint,
    revoked_at_ms bigint,
    last_used_at_ms bigint,
    deprecated_uses bigint NOT NULL DEFAULT 0,
    deprecated_last_used_at_ms bigint,
    metrics boolean NOT NULL DEFAULT false
  );

  CREATE TABLE creation_keys (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint text NOT NULL,
    pet_id bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    PRIMARY KEY (scope, key)
  );
  CREATE INDEX creation_keys_by_age ON creation_keys (created_at_ms);

  ${functions}
  CREATE TRIGGER raise_floor BEFORE DELETE OR TRUNCATE ON pets EXECUTE FUNCTION petstore_raise_floor();

  CREATE TABLE petstore_schema (version integer NOT NULL)`

// For changes by SQL: the rules of POST /pets, and ids that are never assigned again. NOT VALID: animals that the service
// has stored need no check.
const blanks = blankCodePoints.map(code => `\\u${code.toString(16).padStart(4, '0')}`).join('')
const protectPets = `
  ALTER TABLE pets ADD CONSTRAINT "name of 1 to 1,000 characters, not blank"
  CHECK (char_length(name) <= 1000 AND btrim(name, E'${blanks}') <> '') NOT VALID;
  CREATE FUNCTION petstore_refuse_id() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN RAISE ''the id of an animal cannot change'' USING ERRCODE = ''23514''; END';
  CREATE TRIGGER fixed_id BEFORE UPDATE OF id ON pets EXECUTE FUNCTION petstore_refuse_id()`

/** Append only. petstore_schema holds the version of the last one applied. Versions below 4 were never released. */
export const migrations: readonly Migration[] = [
  { version: 4, sql: firstSchema },
  // Stores from before the first release may have an earlier petstore_create, and an unused view pet_ids.
  { version: 5, sql: functions },
  { version: 6, sql: protectPets },
]

/** The rights that a server needs and its user lacks, such as `INSERT on pets`. */
export const missingRights = `
  SELECT string_agg(privilege, ', ') || ' on ' || name AS lacking
  FROM (VALUES ('pets', 'SELECT INSERT'), ('pet_id_floor', 'SELECT'), ('api_keys', 'SELECT INSERT UPDATE'),
    ('creation_keys', 'SELECT INSERT UPDATE DELETE')) AS needed (name, privileges),
    string_to_table(privileges, ' ') AS privilege
  WHERE NOT has_table_privilege(name, privilege) GROUP BY name
  UNION ALL
  SELECT 'EXECUTE on ' || proname FROM pg_proc
  WHERE proname IN ('petstore_create', 'petstore_lock_ids') AND pg_function_is_visible(oid)
    AND NOT has_function_privilege(oid, 'EXECUTE')`

/** "PETS" in ASCII. Held during a migration, so that several instances can start at once. */
const migrationLock = 0x50455453

/** Applies missing migrations, each in its own transaction, and returns whether there were none before. */
export async function migrate(server: Server, location: string, create: boolean, known: readonly Migration[]) {
  await using connection = connectForLongWork(server)
  const { sql } = connection
  const found = await versionIn(sql)
  if (found === 0 && !create) {
    throw new SetupError(`There is no store in ${location}: start the server once, or set DATABASE_URL`)
  }
  // Changes nothing if nothing is missing, so the server's user does not need the right to create tables.
  for (const { version, sql: step } of missingMigrations(location, found, known)) {
    await sql.begin(async transaction => {
      await transaction.unsafe(longTransaction)
      await transaction`SELECT pg_advisory_xact_lock(${migrationLock})`
      // Another instance may have applied it meanwhile.
      if ((await versionIn(transaction)) >= version) return
      // Running instances wait behind this step. If another program has locked a table, they must not wait for long.
      await transaction.unsafe(`SET LOCAL lock_timeout = ${lockMsMax}`)
      await transaction.unsafe(step)
      await transaction`DELETE FROM petstore_schema`
      await transaction`INSERT INTO petstore_schema (version) VALUES (${version})`
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
