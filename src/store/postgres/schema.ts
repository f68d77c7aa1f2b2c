import type { SQL } from 'bun'
import { SetupError } from '../../errors.ts'
import { checkSchemaVersion } from '../rows.ts'
import { connectForLongWork, lockMsMax, longTransaction, type Server } from './pool.ts'

/** "PETI" in ASCII. */
const creationLock = 0x50455449

/** Text of two migrations: never edit it. `isValid`: whether a stored idempotency key is still valid. */
const createFunction = (isValid: string) => `
   -- Creates animals, each with or without an idempotency key, and returns the animal of each, in order.
   -- A key appears at most once; keys is null if there is none. A plan for any values saves planning every call.
   CREATE OR REPLACE FUNCTION petstore_create(
     names text[], category_ids bigint[], statuses text[],
     scopes text[], keys text[], fingerprints text[], times_ms bigint[], valid_ms bigint
   ) RETURNS TABLE (pet_id bigint, fingerprint text, created boolean)
   LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
   #variable_conflict use_column
   DECLARE
     last_id bigint := petstore_lock_ids();
   BEGIN
     IF current_setting('synchronous_commit') = 'off' THEN
       PERFORM set_config('synchronous_commit', 'on', true);
     END IF;
     -- For speed: the statement below gives the same result in twice the time.
     IF keys IS NULL THEN
       INSERT INTO pets (id, name, category_id, status)
       SELECT last_id + place, name, category_id, status
       FROM unnest(names, category_ids, statuses) WITH ORDINALITY AS given (name, category_id, status, place);
       RETURN QUERY SELECT last_id + place, NULL, true FROM generate_series(1, cardinality(names)) AS place ORDER BY 1;
       RETURN;
     END IF;
     RETURN QUERY
     WITH given AS (
       SELECT given.*, known.pet_id AS known_id, known.fingerprint AS known_fingerprint
       FROM unnest(names, category_ids, statuses, scopes, keys, fingerprints, times_ms) WITH ORDINALITY
         AS given (name, category_id, status, scope, key, fingerprint, time_ms, place)
       LEFT JOIN LATERAL (
         SELECT creation_keys.pet_id, creation_keys.fingerprint FROM creation_keys
         WHERE creation_keys.scope = given.scope AND creation_keys.key = given.key
           AND ${isValid}
         LIMIT 1
       ) AS known ON true
     ), numbered AS MATERIALIZED (
       SELECT *, last_id + count(*) FILTER (WHERE known_id IS NULL) OVER (ORDER BY place) AS new_id FROM given
     ), new_pets AS (
       INSERT INTO pets (id, name, category_id, status)
       SELECT new_id, name, category_id, status FROM numbered WHERE known_id IS NULL
     ), new_keys AS (
       -- Replaces expired keys that are not deleted yet.
       INSERT INTO creation_keys (scope, key, fingerprint, pet_id, created_at_ms)
       SELECT scope, key, fingerprint, new_id, time_ms FROM numbered WHERE known_id IS NULL AND key IS NOT NULL
       ON CONFLICT (scope, key) DO UPDATE SET
         fingerprint = excluded.fingerprint, pet_id = excluded.pet_id, created_at_ms = excluded.created_at_ms
     )
     SELECT coalesce(known_id, new_id), coalesce(known_fingerprint, fingerprint), known_id IS NULL
     FROM numbered ORDER BY place;
   END $$;`

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

  `-- The previous version, which may be running, locks pet_ids first, too: another order could deadlock.
   LOCK TABLE pet_ids IN ACCESS EXCLUSIVE MODE;

   -- These indexes do not depend on the sort order of the system's C library, which an upgrade can change.
   -- The larger table first: while it is changed, keys of clients can be looked up.
   ALTER TABLE creation_keys ALTER COLUMN scope TYPE text COLLATE "C", ALTER COLUMN key TYPE text COLLATE "C";
   ALTER TABLE api_keys ALTER COLUMN hash TYPE text COLLATE "C";

   -- No id up to this one is assigned again. Raised only when animals are deleted (see the next step): a row that
   -- changed with every creation would bloat during a long snapshot.
   ALTER TABLE pet_ids RENAME TO pet_id_floor;

   -- Returns the last id given. Every creation holds this lock until COMMIT, so ids become visible in their order, and
   -- later statements see all keys. Sequential scans are off in both functions: a plan made while a table is small is
   -- used after it has grown. So is JIT: before version 18, this makes plans look so expensive that each is compiled.
   CREATE FUNCTION petstore_lock_ids() RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
   BEGIN
     IF current_setting('transaction_isolation') <> 'read committed' THEN
       RAISE 'creating animals needs the isolation level read committed' USING ERRCODE = '25001';
     END IF;
     PERFORM pg_advisory_xact_lock(${creationLock});
     -- A new statement: it sees what the previous holder of the lock has committed.
     RETURN (SELECT greatest(last_id, (SELECT max(id) FROM pets)) FROM pet_id_floor);
   END $$;

   ${createFunction('created_at_ms > time_ms - valid_ms')}

   -- For instances of the previous version, which may still be running: they lock the row and count it up.
   CREATE VIEW pet_ids AS SELECT true AS single, petstore_lock_ids() AS last_id;
   CREATE FUNCTION petstore_ignore_update() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
   CREATE TRIGGER ignore_update INSTEAD OF UPDATE ON pet_ids FOR EACH ROW EXECUTE FUNCTION petstore_ignore_update();
   GRANT SELECT, UPDATE ON pet_ids TO PUBLIC;
   -- Their prepared statements do not match the changed columns: ends their sessions.
   SELECT pg_terminate_backend(pid) FROM pg_stat_activity
   WHERE datname = current_database() AND application_name = 'petstore' AND pid <> pg_backend_pid()
     AND pg_has_role(usesysid, 'MEMBER');`,

  `-- A step of its own, so that no transaction holds both locks.
   CREATE FUNCTION petstore_raise_floor() RETURNS trigger LANGUAGE plpgsql AS $$
   BEGIN
     UPDATE pet_id_floor SET last_id = greatest(last_id, (SELECT max(id) FROM pets));
     RETURN NULL;
   END $$;
   CREATE TRIGGER raise_floor BEFORE DELETE OR TRUNCATE ON pets EXECUTE FUNCTION petstore_raise_floor();`,

  // No index matches this condition. A plan made for a few keys looked them up by age, and later read all of them.
  createFunction('created_at_ms + valid_ms > time_ms'),
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
      await transaction.unsafe(longTransaction)
      await transaction`SELECT pg_advisory_xact_lock(${migrationLock})`
      // Another instance may have applied it meanwhile.
      if ((await versionIn(transaction)) > index) return
      // Running instances wait behind this step. If another program has locked a table, they must not wait for long.
      await transaction.unsafe(`SET LOCAL lock_timeout = ${lockMsMax}`)
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
