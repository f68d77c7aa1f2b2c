// The functions in the database with which animals are created, changed and removed.

/** "PETI" in ASCII. */
const creationLock = 0x50455449

/** As this version needs them. After a change, append a migration that replaces them. */
export const functions = `
  -- Returns the last id given. Every creation holds this lock until COMMIT, so ids become visible in their order, and
  -- later statements see all keys. Sequential scans are off in both functions: a plan made while a table is small is
  -- used after it has grown. So is JIT: before version 18, this makes plans look so expensive that each is compiled.
  CREATE OR REPLACE FUNCTION petstore_lock_ids() RETURNS bigint
  LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
  BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
      RAISE 'creating animals needs the isolation level read committed' USING ERRCODE = '25001';
    END IF;
    PERFORM pg_advisory_xact_lock(${creationLock});
    -- A new statement: it sees what the previous holder of the lock has committed.
    RETURN (SELECT greatest(last_id, (SELECT max(id) FROM pets)) FROM pet_id_floor);
  END $$;

  -- Creates animals, each with or without an idempotency key, and returns the animal of each, in order.
  -- A key appears at most once; keys is null if there is none. A plan for any values saves planning every call. After a
  -- second without a lock it gives up, because the animals have deadlines that it does not know.
  CREATE OR REPLACE FUNCTION petstore_create(
    names text[], category_ids bigint[], statuses text[],
    scopes text[], keys text[], fingerprints text[], times_ms bigint[], valid_ms bigint
  ) RETURNS TABLE (pet_id bigint, fingerprint text, created boolean)
  LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '1s' AS $$
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
        SELECT idempotency_keys.pet_id, idempotency_keys.fingerprint FROM idempotency_keys
        WHERE idempotency_keys.scope = given.scope AND idempotency_keys.key = given.key
          -- No index matches this. A plan made for a few keys could look them up by age, and later read all of them.
          AND created_at_ms + valid_ms > time_ms
        LIMIT 1
      ) AS known ON true
    ), numbered AS MATERIALIZED (
      SELECT *, last_id + count(*) FILTER (WHERE known_id IS NULL) OVER (ORDER BY place) AS new_id FROM given
    ), new_pets AS (
      INSERT INTO pets (id, name, category_id, status)
      SELECT new_id, name, category_id, status FROM numbered WHERE known_id IS NULL
    ), new_keys AS (
      -- Replaces expired keys that are not deleted yet.
      INSERT INTO idempotency_keys (scope, key, fingerprint, pet_id, created_at_ms)
      SELECT scope, key, fingerprint, new_id, time_ms FROM numbered WHERE known_id IS NULL AND key IS NOT NULL
      ON CONFLICT (scope, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, pet_id = excluded.pet_id, created_at_ms = excluded.created_at_ms
    )
    SELECT coalesce(known_id, new_id), coalesce(known_fingerprint, fingerprint), known_id IS NULL
    FROM numbered ORDER BY place;
    -- With a record in the log, COMMIT waits for a synchronous standby, also if every animal was created before: the
    -- first COMMIT may not have reached the standby.
    PERFORM pg_logical_emit_message(true, 'petstore', '');
  END $$;

  -- Changes or removes animals one after the other, and returns the outcome of each, in order, with the animal after
  -- its change or before its removal. NULL means unchanged, and an empty status means none. It waits for no animal that
  -- another transaction has locked, so neither deadlocks nor a forgotten lock can stop the other changes. The settings
  -- are those of petstore_create. With a stricter isolation level, PostgreSQL refuses rows that changed meanwhile.
  CREATE OR REPLACE FUNCTION petstore_change(
    ids bigint[], removals boolean[], names text[], category_ids bigint[], statuses text[], if_statuses text[]
  ) RETURNS TABLE (outcome text, pet pets)
  LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan
  SET lock_timeout = '1s' AS $$
  #variable_conflict use_column
  DECLARE
    locked bigint[] := ARRAY (SELECT id FROM pets WHERE id = ANY (ids) ORDER BY id FOR UPDATE SKIP LOCKED);
    change record;
  BEGIN
    PERFORM set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';
    FOR change IN
      SELECT * FROM unnest(ids, removals, names, category_ids, statuses, if_statuses)
        AS given (id, is_removal, name, category_id, status, if_status)
    LOOP
      SELECT * INTO pet FROM pets WHERE id = change.id;
      outcome := CASE
        WHEN pet.id IS NULL THEN 'no-such-pet'
        WHEN pet.id <> ALL (locked) THEN 'locked'
        WHEN pet.status IS DISTINCT FROM coalesce(change.if_status, pet.status) THEN 'status-differs'
        ELSE 'changed'
      END;
      IF outcome = 'changed' AND change.is_removal THEN
        DELETE FROM pets WHERE id = change.id;
      ELSIF outcome = 'changed' THEN
        UPDATE pets SET
          name = coalesce(change.name, name),
          category_id = coalesce(change.category_id, category_id),
          status = nullif(coalesce(change.status, status), '')
        WHERE id = change.id RETURNING * INTO pet;
      END IF;
      RETURN NEXT;
    END LOOP;
    PERFORM pg_logical_emit_message(true, 'petstore', '');
  END $$;`
