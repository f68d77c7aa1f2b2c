import { afterEach, beforeEach, expect } from 'bun:test'
import { SQL } from 'bun'
import { issueApiKey, type Permission } from '../../src/api-key.ts'
import { SetupError, StoreUnavailable, StoreUnreachable } from '../../src/errors.ts'
import { openStores } from '../../src/store/open.ts'
import { PostgresCatalogue } from '../../src/store/postgres/catalogue.ts'
import { statements } from '../../src/store/postgres/pets.ts'
import { Pool } from '../../src/store/postgres/pool.ts'
import { connect, planSettings } from '../../src/store/postgres/server.ts'
import { type PostgresAddress, type PostgresHost, parsePostgresUrl } from '../../src/store/postgres/url.ts'
import { advance, eventually, standingClock } from '../support/clock.ts'
import { ask, describeWithPostgres, sharedDatabase, type TestDatabase } from '../support/postgres.ts'
import { until } from '../support/process.ts'
import { petsOf } from '../support/service.ts'
import { test } from '../support/test.ts'
import { batches, closing, failureOf, rex } from './contract.ts'

let database: TestDatabase
beforeEach(async () => {
  database = await sharedDatabase()
})
afterEach(() => database[Symbol.asyncDispose]())

const newKey = (name: string, permission: Permission = 'read-write') =>
  issueApiKey({ name, permission, createdAt: new Date(0) }).record
const run = (statement: string) => ask(database.url, statement)
const opened = async (url = database.url, create = true) => closing(await openStores(url, { create }))
const created = async () => (await opened()).close()
const databaseName = () => new URL(database.url).pathname.slice(1)

/** The message if it is a SetupError, and whether another attempt may succeed. */
async function refusal(url = database.url, create = true): Promise<string> {
  const error = await failureOf(async () => (await opened(url, create)).close())
  if (!(error instanceof SetupError)) return `not refused: ${error}`
  return error instanceof StoreUnreachable ? `unreachable: ${error.message}` : error.message
}

async function rows<T>(statement: string, url = database.url): Promise<T[]> {
  await using sql = new SQL(url, { max: 1 })
  return [...(await sql.unsafe<T[]>(statement))]
}

const waitingForLocks = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`

/** What the database contains: columns, constraints, indexes, triggers, and functions with the MD5 of their bodies. */
async function contents(url?: string): Promise<readonly string[]> {
  const codePoint = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return (await rows<{ line: string }>(schemaLines, url)).map(({ line }) => line.replace(/[^ -~]/g, codePoint))
}

const schemaLines = `
  (SELECT concat_ws(' ', attrelid::regclass, attname, format_type(atttypid, atttypmod),
     CASE WHEN attnotnull THEN 'NOT NULL' END, pg_get_expr(adbin, adrelid), CASE attidentity WHEN 'a' THEN 'IDENTITY' END,
     (SELECT collname FROM pg_collation WHERE oid = attcollation AND collname <> 'default')) AS line
   FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
   LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
   WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 ORDER BY attrelid, attnum)
  UNION ALL
  (SELECT concat_ws(' ', conrelid::regclass, quote_ident(conname), pg_get_constraintdef(oid)) FROM pg_constraint
   WHERE connamespace = 'public'::regnamespace AND contype = 'c' ORDER BY conrelid, conname)
  UNION ALL
  (SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname)
  UNION ALL
  (SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname)
  UNION ALL
  (SELECT concat_ws(' ', oid::regprocedure, pg_get_function_result(oid), proconfig::text, md5(prosrc)) FROM pg_proc
   WHERE pronamespace = 'public'::regnamespace ORDER BY proname)`

const schemaOfVersion1 = String.raw`pets id bigint NOT NULL
pets name text NOT NULL
pets category_id bigint NOT NULL
pets status text
pet_id_floor single boolean NOT NULL true
pet_id_floor last_id bigint NOT NULL
api_keys id bigint NOT NULL IDENTITY
api_keys name text NOT NULL
api_keys hash text NOT NULL C
api_keys shown text NOT NULL
api_keys permission text NOT NULL
api_keys created_at_ms bigint NOT NULL
api_keys expires_at_ms bigint
api_keys revoked_at_ms bigint
api_keys last_used_at_ms bigint
api_keys deprecated_uses bigint NOT NULL 0
api_keys deprecated_last_used_at_ms bigint
idempotency_keys scope text NOT NULL C
idempotency_keys key text NOT NULL C
idempotency_keys fingerprint text NOT NULL
idempotency_keys pet_id bigint NOT NULL
idempotency_keys created_at_ms bigint NOT NULL
petstore_schema_version version integer NOT NULL
pets "name of 1 to 1,000 characters, not blank" CHECK (((char_length(name) <= 1000) AND (btrim(name, '\u0009\u000a\u000b\u000c\u000d \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'::text) <> ''::text)))
pets pets_id_check CHECK ((id > 0))
pets pets_status_check CHECK ((status = ANY (ARRAY['available'::text, 'pending'::text, 'sold'::text])))
pet_id_floor pet_id_floor_single_check CHECK (single)
api_keys api_keys_permission_check CHECK ((permission = ANY (ARRAY['read-write'::text, 'read-only'::text, 'metrics'::text])))
CREATE UNIQUE INDEX api_keys_hash_key ON public.api_keys USING btree (hash)
CREATE UNIQUE INDEX api_keys_pkey ON public.api_keys USING btree (id)
CREATE INDEX idempotency_keys_by_age ON public.idempotency_keys USING btree (created_at_ms)
CREATE UNIQUE INDEX idempotency_keys_pkey ON public.idempotency_keys USING btree (scope, key)
CREATE UNIQUE INDEX pet_id_floor_pkey ON public.pet_id_floor USING btree (single)
CREATE INDEX pets_by_status ON public.pets USING btree (status, id)
CREATE UNIQUE INDEX pets_pkey ON public.pets USING btree (id)
CREATE TRIGGER fixed_id BEFORE UPDATE OF id ON public.pets FOR EACH STATEMENT EXECUTE FUNCTION petstore_refuse_id()
CREATE TRIGGER raise_floor BEFORE DELETE OR TRUNCATE ON public.pets FOR EACH STATEMENT EXECUTE FUNCTION petstore_raise_floor()
petstore_create(text[],bigint[],text[],text[],text[],text[],bigint[],bigint) TABLE(pet_id bigint, fingerprint text, created boolean) {enable_seqscan=off,jit=off,plan_cache_mode=force_generic_plan} 6bf707bc6e70e404c79c766041c52db6
petstore_lock_ids() bigint {enable_seqscan=off,jit=off} b41be5d9881c9f343248bb331f7b21e5
petstore_raise_floor() trigger 663020f8a3e9edc52c0e1c6e8315a413
petstore_refuse_id() trigger 029a38585ab2cf2f13dd331718327b08`

describeWithPostgres('PostgreSQL: the database', () => {
  test('it has the schema of version 1, and opening it again changes nothing', async () => {
    await created()
    expect(await contents()).toEqual(schemaOfVersion1.split('\n'))
    const version = () => rows('SELECT version, xmin::text FROM petstore_schema_version')
    const [first] = await version()
    expect(first).toMatchObject({ version: 1 })
    await created()
    expect(await version()).toEqual([first])
  })

  test('an empty database becomes a store only on request', async () => {
    expect(await refusal(database.url, false)).toStartWith('There is no store in postgres://')
    expect(await contents()).toEqual([])
  })

  test('a store of a version before 1.0.0 is refused with what to do, and stays as it was', async () => {
    await run('CREATE TABLE pets (id bigint); CREATE TABLE petstore_schema (version integer)')
    await run('INSERT INTO pets VALUES (1); INSERT INTO petstore_schema VALUES (1)')
    const before = await contents()
    const message =
      /^Cannot use postgres:.*: a version before 1\.0\.0 made it\. Export it with that program, run import /
    for (const create of [true, false]) expect(await refusal(database.url, create)).toMatch(message)
    expect(await contents()).toEqual(before)
    expect(await rows('SELECT version::text FROM petstore_schema UNION ALL SELECT id::text FROM pets')).toHaveLength(2)
    // A new store in a schema before it works.
    await run('CREATE SCHEMA shop')
    for (const path of ['shop', 'shop, public']) {
      await run(`ALTER DATABASE ${databaseName()} SET search_path = ${path}`)
      await created()
    }
    await run('DROP SCHEMA shop CASCADE')
  })

  test.each([
    'CREATE TABLE pets (title text)',
    'CREATE TABLE petstore_schema_version (step text)',
    'CREATE VIEW idempotency_keys AS SELECT 1 AS id',
    "CREATE TYPE pet_id_floor AS ENUM ('a')",
    'CREATE SEQUENCE idempotency_keys_by_age',
  ])('after another program\'s "%s" the database is refused, and nothing changes', async theirs => {
    await run(theirs)
    const before = await contents()
    const message = /^Cannot open .*: another program has a table of the same name there; .*\([0-9A-Z]{5}: .*\)$/
    expect(await refusal()).toMatch(message)
    expect(await contents()).toEqual(before)
  })

  test('a first key is not created while another instance creates one', async () => {
    await using other = new SQL(database.url, { max: 1 })
    await using stores = await opened()
    let creating: ReturnType<typeof stores.keys.createFirst> | undefined
    await other.begin(async transaction => {
      const { name, hash, shown } = newKey('theirs')
      await transaction`INSERT INTO api_keys (name, hash, shown, permission, created_at_ms)
        VALUES (${name}, ${hash}, ${shown}, 'read-write', 0)`
      creating = stores.keys.createFirst(newKey('ours'))
      await until('it to wait', async () => (await rows(waitingForLocks)).length === 1 || undefined)
    })
    expect(await creating).toBeUndefined()
    expect((await stores.keys.list()).map(({ name }) => name)).toEqual(['theirs'])
  })

  test('a database with another encoding than UTF8 is refused, and stays empty', async () => {
    const name = `petstore_test_${process.pid}_ascii`
    const url = database.url.replace(/\/[^/?]*(\?|$)/, `/${name}$1`)
    await run(`CREATE DATABASE ${name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`)
    try {
      expect(await refusal(url)).toMatch(
        /^Cannot use .*: the encoding of its database is SQL_ASCII; create one with ENCODING 'UTF8'$/,
      )
      expect(await contents(url)).toEqual([])
    } finally {
      await run(`DROP DATABASE ${name} WITH (FORCE)`)
    }
  })
})

/** A user without any rights, and the address of the database for that user. */
async function newRole() {
  const name = `petstore_test_${crypto.randomUUID().replaceAll('-', '')}`
  await run(`CREATE ROLE ${name} LOGIN PASSWORD 'hunter2'`)
  return {
    name,
    url: database.url.replace(/\/\/[^@]*@/, `//${name}:hunter2@`),
    async [Symbol.asyncDispose]() {
      await run(`DROP OWNED BY ${name}`)
      await run(`DROP ROLE ${name}`)
    },
  }
}

/** A user who may only read and write the rows of a store, with a limit of connections; -1 is none. */
async function newUser(connectionsMax = -1) {
  await created()
  const role = await newRole()
  await run(`ALTER ROLE ${role.name} CONNECTION LIMIT ${connectionsMax}`)
  await run(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role.name}`)
  return role
}

describeWithPostgres('PostgreSQL: ids and reads', () => {
  test('those of deleted animals are not assigned again, and those inserted by hand are skipped', async () => {
    await using stores = await opened()
    const nextId = async () => (await stores.pets.create(rex)).id
    expect([await nextId(), await nextId(), await nextId()]).toEqual([1n, 2n, 3n])
    for (const [change, next] of [
      ['DELETE FROM pets WHERE id = 1', 4n],
      ['DELETE FROM pets WHERE id >= 3', 5n],
      ['TRUNCATE pets', 6n],
      ["INSERT INTO pets VALUES (100, 'Rex', 7, NULL)", 101n],
      ['DELETE FROM pets', 102n],
      // Behind the last animal, as after a restore of single tables.
      ['UPDATE pet_id_floor SET last_id = 0', 103n],
    ] as const) {
      await run(change)
      expect([change, await nextId()]).toEqual([change, next])
    }
  })

  test('one that a standby cancelled, because it had to apply a change, is repeated', async () => {
    await created()
    // The server itself stands in for its replica.
    await using stores = closing(await openStores(database.url, { create: false, readUrl: database.url }))
    await stores.pets.create(rex)
    await run('CREATE SEQUENCE attempts')
    await run(
      `CREATE FUNCTION fail_first() RETURNS boolean LANGUAGE plpgsql AS
       'BEGIN IF nextval(''attempts'') = 1 THEN RAISE serialization_failure; END IF; RETURN true; END'`,
    )
    await run('ALTER TABLE pets RENAME TO all_pets')
    await run('CREATE VIEW pets AS SELECT * FROM all_pets WHERE fail_first()')
    expect(await stores.pets.get(1n)).toEqual({ id: 1n, ...rex })
    const [attempts] = await rows<{ count: number }>('SELECT last_value::int AS count FROM attempts')
    expect(attempts?.count).toBeGreaterThan(1)
  })
})

describeWithPostgres('PostgreSQL: rights', () => {
  test('one that is lost while a server runs makes the store unavailable, and is named', async () => {
    await using role = await newUser()
    await using stores = await opened(role.url)
    await stores.pets.create(rex)
    await run(`REVOKE INSERT ON pets FROM ${role.name}`)
    const failure = stores.pets.create(rex)
    await expect(failure).rejects.toBeInstanceOf(StoreUnavailable)
    await expect(failure).rejects.toThrow(/42501: permission denied for table pets; .* GRANT it SELECT, INSERT/)
    expect(await stores.pets.get(1n)).toEqual({ id: 1n, ...rex })
    await run(`GRANT INSERT ON pets TO ${role.name}`)
    expect((await stores.pets.create(rex)).id).toBe(2n)
    await run(`REVOKE TEMPORARY ON DATABASE ${databaseName()} FROM PUBLIC`)
    await expect(stores.catalogue.load(batches([rex]), 'new')).rejects.toThrow(
      /TEMPORARY on the database for an import/,
    )
  })

  const noRight = /^Cannot open .*: the user lacks a right; GRANT it .*\(42501: permission denied for .*\)$/
  const noSchema = /^Cannot open .*: the search_path of the user names no schema that exists; .* \(3F000: [^\n]*\)$/
  test.each<[string, (role: string) => Promise<unknown>, RegExp]>([
    ['may not create tables in an empty database', async () => {}, noRight],
    ['may not read the tables of a store', created, noRight],
    ['has no schema in the search_path', role => run(`ALTER ROLE ${role} SET search_path = nowhere`), noSchema],
  ])('a user who %s is refused in one line without the password', async (_, prepare, problem) => {
    await using role = await newRole()
    await prepare(role.name)
    const message = await refusal(role.url)
    expect(message).toMatch(problem)
    expect(message).not.toContain('hunter2')
  })

  test('a user who may only read and write rows can do everything that a server does', async () => {
    await using role = await newUser()
    const stores = await opened(role.url)
    expect(await stores.keys.createFirst(newKey('till'))).toMatchObject({ id: 1n })
    await stores.keys.create(newKey('other', 'read-only'))
    await stores.keys.recordUses([{ id: 1n, lastUsedAt: new Date(), deprecatedUses: 1 }])
    expect(await stores.keys.revoke(2n, new Date())).toBe(true)
    await stores.pets.create(rex)
    await stores.pets.createOnce(rex, { scope: 'a', key: 'k', at: new Date(0) })
    expect(await stores.pets.deleteExpiredIdempotencyKeys(new Date(), 10)).toBe(1)
    expect(petsOf(await stores.pets.list({ limit: 10 }))).toHaveLength(2)
    await stores.close()
  })
})

describeWithPostgres('PostgreSQL: connections', () => {
  const warning = (allowed: number, needed: number) =>
    `warn PostgreSQL allows ${allowed} connections and this instance may use ${needed}: raise the limit of the role, the database or the server, or lower --database-pool`

  /** A server's store for a user who may only read and write rows, and what it logs. */
  async function servingAs(role: { readonly url: string }, connectionsMax?: number) {
    const logged: string[] = []
    const onEvent = (level: string, message: string) => void logged.push(`${level} ${message}`)
    const stores = await openStores(role.url, { create: false, onEvent, connectionsMax })
    await stores.startWriting()
    return { ...closing(stores), logged }
  }
  /** Why a server cannot start. */
  const startFailure = (url: string) =>
    failureOf(async () => {
      const stores = await opened(url, false)
      await stores.startWriting().finally(() => stores.close())
    })
  const sessionsOf = (name: string) => rows(`SELECT pid FROM pg_stat_activity WHERE usename = '${name}'`)

  test.each<[string, (role: string) => string]>([
    ['the role', role => `ALTER ROLE ${role}`],
    ['the database', () => `ALTER DATABASE ${databaseName()}`],
  ])('with a limit of %s below the pool, it reads with fewer, and can write after all are lost', async (_, target) => {
    await using role = await newUser()
    await run(`${target(role.name)} CONNECTION LIMIT 6`)
    await using stores = await servingAs(role)
    expect(stores.logged).toEqual([warning(6, 13)])
    const crowd = () => Promise.all(Array.from({ length: 200 }, () => stores.pets.list({ limit: 5 })))
    await crowd()
    expect((await stores.pets.create(rex)).id).toBe(1n)
    // A fast server answers a crowd before the last connection is open.
    await until('all connections', async () => {
      await crowd()
      return (await sessionsOf(role.name)).length === 6 || undefined
    })
    await crowd()

    await run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role.name}'`)
    await until('reads', async () => crowd().catch(() => undefined))
    await until('a creation', async () => Promise.resolve(stores.pets.create(rex)).catch(() => undefined))
    expect(stores.activity().isWritable).toBe(true)
  })

  test('with a limit of the server below the pool, the log says so; with enough, it says nothing', async () => {
    const admin = { url: database.url }
    await created()
    await using few = await servingAs(admin, 500)
    expect(few.logged).toEqual([expect.stringMatching(/^warn PostgreSQL allows \d+ connections .* may use 503: /)])
    await using enough = await servingAs(admin, 10)
    expect(enough.logged).toEqual([])
  })

  test('without a free one, a server does not start, and a running one says what to do and when it can write again', async () => {
    await using role = await newUser(3)
    await using stores = await servingAs(role)
    await stores.pets.create(rex)
    expect(stores.activity().isWritable).toBe(true)

    const advice =
      /53300: too many connections for role .*; the server has no free connection; raise its max_connections/
    await run(`ALTER ROLE ${role.name} CONNECTION LIMIT 0`)
    await run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role.name}'`)
    const failure = await until('a refusal', async () => {
      const error = await failureOf(() => stores.pets.create(rex))
      return String(error).includes('53300') ? error : undefined
    })
    expect(failure).toBeInstanceOf(StoreUnavailable)
    expect(String(failure)).toMatch(advice)
    expect(stores.activity().isWritable).toBe(false)
    expect(String(await startFailure(role.url))).toContain('the server has no free connection')

    await run(`ALTER ROLE ${role.name} CONNECTION LIMIT 3`)
    await until('a creation', async () => Promise.resolve(stores.pets.create(rex)).catch(() => undefined))
    expect(stores.activity().isWritable).toBe(true)
  })

  test('the activity counts busy connections, and statements that wait for one', async () => {
    await created()
    await using stores = await servingAs({ url: database.url }, 2)
    await using admin = new SQL(database.url, { max: 1 })
    const idle = { connectionsMax: 2, connectionsBusy: 0, waiting: 0 }
    expect(stores.activity().pools).toEqual({ reading: idle, writing: idle })
    const work: unknown[] = []
    await admin.begin(async locked => {
      await locked`LOCK TABLE pets IN ACCESS EXCLUSIVE MODE`
      work.push(stores.pets.create(rex), ...Array.from({ length: 5 }, () => stores.pets.list({ limit: 1 })))
      // Two reads and a write: the other reads have no connection.
      await until('the statements', async () => (await rows(waitingForLocks)).length === 3 || undefined)
      expect(stores.activity().pools).toEqual({
        reading: { connectionsMax: 2, connectionsBusy: 2, waiting: 3 },
        writing: { connectionsMax: 2, connectionsBusy: 1, waiting: 0 },
      })
    })
    await Promise.all(work)
    expect(stores.activity().pools).toEqual({ reading: idle, writing: idle })
  })

  test('with one of the two for writing refused for long, every creation uses the other', async () => {
    await using role = await newUser()
    using _ = standingClock()
    await using stores = await servingAs(role)
    await run(`ALTER ROLE ${role.name} CONNECTION LIMIT 1`)
    const ofRole = `FROM pg_stat_activity WHERE usename = '${role.name}'`
    await run(`SELECT pg_terminate_backend(pid) ${ofRole} AND pid = (SELECT max(pid) ${ofRole})`)
    for (let id = 1n; id <= 5n; id++) {
      const creating = Promise.resolve(stores.pets.create(rex))
      await eventually('the creation', () => Bun.peek.status(creating) !== 'pending' || undefined)
      expect(await creating).toMatchObject({ id })
      // Connections are checked every 10 s. The clock moves a little for each statement that PostgreSQL answers.
      for (let second = 0; second < 10; second++) {
        await advance(1_000)
        await run('SELECT 1')
      }
    }
    expect(await sessionsOf(role.name)).toHaveLength(1)
  })

  test('work that has waited too long for a recovery is not sent later', async () => {
    const [host] = (parsePostgresUrl(database.url) as PostgresAddress).hosts
    const recovery = Promise.withResolvers<void>()
    const lost = Promise.withResolvers<void>()
    const pool = new Pool({
      ...{ clients: 1, connectionsMax: 1, msMax: 50, onLost: lost.resolve, recovery: () => recovery.promise },
      connect: onclose => connect(host as PostgresHost, {}, { onclose }),
    })
    await pool.write(sql => sql`SELECT 1`)
    await run(endOurSessions)
    await lost.promise
    const sent: string[] = []
    const writing = pool.write(async () => sent.push('late'))
    await expect(writing).rejects.toThrow('PostgreSQL did not answer within 50 ms')
    recovery.resolve()
    await pool.read(async () => sent.push('next'))
    expect(sent).toEqual(['next'])
    await pool.close()
  })

  test('after all are ended at once, however often, also during a recovery, every read succeeds', async () => {
    await created()
    await using stores = await servingAs({ url: database.url })
    await using admin = new SQL(database.url, { max: 1 })
    const crowd = () => Promise.all(Array.from({ length: 64 }, () => stores.pets.list({ limit: 5 })))
    for (let round = 0; round < 30; round++) {
      // Nothing is left of the round before.
      await crowd()
      // A recovery begins, whose own session will be ended, too.
      if (round % 2 === 1) await admin.unsafe(`${endOurSessions} AND query = 'SELECT 1'`)
      const reading = crowd()
      await admin.unsafe(endOurSessions)
      await reading
    }
  })

  test('two instances that lose all connections can write again, though their readers reconnect first', async () => {
    await using role = await newUser(16)
    await using first = await servingAs(role)
    await using second = await servingAs(role)
    const both = [first, second]
    expect(both.map(({ logged }) => logged)).toEqual([[], []])
    const allAreOpen = () => until('all', async () => (await sessionsOf(role.name)).length === 16 || undefined)
    let isOver = false
    const reading = both.map(async ({ pets }) => {
      while (!isOver) {
        const crowd = Array.from({ length: 24 }, () => pets.list({ limit: 5 }))
        await Promise.allSettled(crowd)
      }
    })
    try {
      for (let round = 0; round < 3; round++) {
        await allAreOpen()
        await run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role.name}'`)
        for (const { pets } of both) {
          await until('a creation', async () => Promise.resolve(pets.create(rex)).catch(() => undefined))
          await until('a page', async () => Promise.resolve(pets.list({ limit: 1 })).catch(() => undefined))
        }
      }
    } finally {
      isOver = true
      await Promise.all(reading)
    }
    // A search for the server may still be running.
    await until('both to be writable', () => both.every(stores => stores.activity().isWritable) || undefined)
  })
})

const ourSessions = `
  SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'petstore%' AND datname = current_database()`
const endOurSessions = ourSessions.replace('pid', 'pg_terminate_backend(pid)')

describeWithPostgres('PostgreSQL: export and import', () => {
  const copying = `SELECT 1 FROM pg_stat_activity WHERE query LIKE 'COPY%' AND datname = current_database()`
  const endOfSession = () => until('the end of the session', async () => ((await rows(copying))[0] ? undefined : true))
  const catalogueWith = (idleMsMax: number) =>
    new PostgresCatalogue(parsePostgresUrl(database.url) as PostgresAddress, idleMsMax)

  test('ids can be kept after all animals were deleted by hand', async () => {
    await using stores = await opened()
    await stores.catalogue.load(batches([{ ...rex, id: 50n }]), 'keep')
    await run('DELETE FROM pets')
    await stores.catalogue.load(batches([{ ...rex, id: 7n }]), 'keep')
    expect(await rows('SELECT id::text FROM pets')).toEqual([{ id: '7' }])
    expect(await stores.pets.create(rex)).toMatchObject({ id: 51n })
  })

  test.each<[string, number, () => Promise<unknown>]>([
    ['loses its connection fails', 60_000, () => run(`${endOurSessions} AND query LIKE 'COPY%'`)],
    ['nobody reads is ended', 100, endOfSession],
  ])('an export that %s', async (_, idleMsMax, meanwhile) => {
    await created()
    // More than the buffers of both sides of a connection hold.
    await run(`INSERT INTO pets SELECT n, repeat('x', 1000), 1 FROM generate_series(1, 30000) AS n`)
    const failure = await failureOf(async () => {
      for await (const _ of catalogueWith(idleMsMax).read()) await meanwhile()
    })
    expect(failure).toBeInstanceOf(StoreUnavailable)
  })

  test('an import whose source stands still is ended, and nothing is added', async () => {
    await created()
    async function* slow() {
      yield [rex]
      await endOfSession()
    }
    expect(await failureOf(() => catalogueWith(100).load(slow(), 'new'))).toBeInstanceOf(StoreUnavailable)
    expect(await rows('SELECT 1 FROM pets')).toEqual([])
  })
})

/** A store whose triggers record the synchronous_commit of every write. */
async function recordCommits(): Promise<void> {
  await created()
  await run('CREATE TABLE seen (setting text)')
  await run(
    `CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
     'BEGIN INSERT INTO seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'`,
  )
  for (const table of ['pets', 'api_keys', 'idempotency_keys']) {
    await run(`CREATE TRIGGER seeing AFTER INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION see()`)
  }
}

const recordedCommits = () => rows<{ setting: string }>('SELECT setting FROM seen')

/** For sessions that begin later. */
const setCommit = (setting: string) => run(`ALTER DATABASE ${databaseName()} SET synchronous_commit = '${setting}'`)

describeWithPostgres('PostgreSQL: durability', () => {
  test.each(['off', 'on', 'local', 'remote_apply'])('synchronous_commit = %s is used; off becomes on', async set => {
    await recordCommits()
    await setCommit(set)
    const stores = await opened()
    await stores.keys.createFirst(newKey('till'))
    await stores.keys.revoke(1n, new Date())
    await stores.pets.create(rex)
    await stores.pets.createOnce(rex, { scope: 'a', key: 'k', at: new Date() })
    await stores.catalogue.load(batches([rex]), 'new')
    await stores.close()
    expect(await recordedCommits()).toEqual(Array(6).fill({ setting: set === 'off' ? 'on' : set }))
  })

  test('a store that is open ignores a later synchronous_commit = off', async () => {
    await recordCommits()
    await setCommit('on')
    const stores = await opened()
    const createOnce = async (key: string) => stores.pets.createOnce(rex, { scope: 'a', key, at: new Date() })
    await stores.pets.create(rex)
    await createOnce('before')
    await setCommit('off')
    await run(endOurSessions)
    await until('a new connection', () =>
      createOnce('after').catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error
        return undefined
      }),
    )
    await stores.pets.create(rex)
    await stores.keys.create(newKey('till'))
    expect(await stores.keys.revoke(1n, new Date())).toBe(true)
    await stores.close()
    const seen = await recordedCommits()
    expect(seen.length).toBeGreaterThanOrEqual(8)
    expect(seen).toEqual(seen.map(() => ({ setting: 'on' })))
  })
})

/** The plan of a statement that has just run, and how many blocks it read. */
async function explained(sql: SQL, statement: string) {
  const lines = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) ${statement}`)
  const plan = lines.map((line: { 'QUERY PLAN': string }) => line['QUERY PLAN']).join('\n')
  const [, hit, read = 0] = /Buffers: shared hit=(\d+)(?: read=(\d+))?/.exec(plan) ?? []
  return { plan, blocks: Number(hit) + Number(read) }
}

type Scans = { readonly whole: number; readonly indexed: number }
const scans = `
  SELECT relname, seq_scan::int AS whole, coalesce(idx_scan, 0)::int AS indexed FROM pg_stat_user_tables
  WHERE relname IN ('pets', 'idempotency_keys') ORDER BY relname`

/** Waits until the sessions of closed stores have ended: that completes their statistics. */
const endOfOurSessions = () =>
  until('the end of our sessions', async () => ((await rows(ourSessions))[0] ? undefined : true))

describeWithPostgres('PostgreSQL: the cost of requests', () => {
  test('no page reads more blocks than its animals need, with any query plan', async () => {
    await created()
    await using sql = new SQL(database.url, { max: 1 })
    // One status is common, one is rare, one is found only among the oldest, and a quarter has none.
    await sql.unsafe(
      `INSERT INTO pets (id, name, category_id, status)
       SELECT id, 'Animal ' || id, id % 100,
         CASE WHEN id % 4 = 0 THEN NULL WHEN id < 90 THEN 'sold' WHEN id % 1000 = 2 THEN 'pending' ELSE 'available' END
       FROM generate_series(1, 60000) AS id`,
    )
    await sql.unsafe('VACUUM ANALYZE pets')

    async function expectFewBlocks(statement: string, ...values: unknown[]): Promise<void> {
      await sql.unsafe(`PREPARE asked AS ${statement}`)
      const { plan, blocks } = await explained(sql, `EXECUTE asked (${values.map(value => `'${value}'`).join()})`)
      await sql.unsafe('DEALLOCATE asked')
      expect(blocks, plan).toBeLessThan(30)
      expect(plan).toContain('Index Scan')
      expect(plan).not.toContain('Sort')
    }

    // As the server runs a statement: planned for its values or, after several uses, for any values.
    for (const mode of ['custom', 'generic']) {
      await sql.unsafe(`SET plan_cache_mode = force_${mode}_plan`)
      for (const after of [0, 50_000, 60_000]) {
        await expectFewBlocks(statements.get, `{${after},${after + 1}}`)
        await expectFewBlocks(statements.list, after, 21)
        for (const status of ['available', 'pending', 'sold']) {
          await expectFewBlocks(statements.listByStatus, status, after, 21)
        }
      }
    }
  })

  const batch = 100
  /** Random keys of one client, in the order of time. */
  const addKeys = (count: number, timeMs: string) =>
    run(
      `INSERT INTO idempotency_keys
       SELECT repeat('a', 64), encode(sha256(i::text::bytea), 'hex'), repeat('f', 64), i, ${timeMs}
       FROM generate_series(1, ${count}) AS i ON CONFLICT DO NOTHING`,
    )

  test('expired idempotency keys are deleted in batches that read few blocks, with any query plan', async () => {
    await using stores = await opened()
    await using sql = new SQL(database.url, { max: 1, connection: planSettings })
    await sql.unsafe(`PREPARE sweep AS ${statements.deleteExpiredKeys}`)
    const execute = `EXECUTE sweep (1000000, 0, ${batch})`
    // Planned while the table is empty, then used as it is, then planned for its size.
    await run('ANALYZE idempotency_keys')
    await sql.unsafe(execute)
    await addKeys(50_000, 'i')
    // To find, lock, delete and return each one takes four or five blocks. A look-up by key takes four more.
    expect((await explained(sql, execute)).blocks).toBeLessThan(6 * batch)
    await run('ANALYZE idempotency_keys')
    expect((await explained(sql, execute)).blocks).toBeLessThan(6 * batch)

    await run("INSERT INTO idempotency_keys SELECT repeat('a', 64), 'valid', '', 1, extract(epoch FROM now()) * 1000")
    let deleted = 2 * batch
    for (let last = 10_000; last === 10_000; deleted += last) {
      last = await stores.pets.deleteExpiredIdempotencyKeys(new Date(), 10_000)
    }
    expect(deleted).toBe(50_000)
    expect(await rows('SELECT key FROM idempotency_keys')).toEqual([{ key: 'valid' }])
  })

  test('a sweep reads no rows again that it has deleted, though a snapshot still sees them', async () => {
    const stores = await opened()
    await addKeys(5_000, 'i')
    await using snapshot = new SQL(database.url, { max: 1 })
    await using reserved = { sql: await snapshot.reserve(), [Symbol.asyncDispose]: async () => reserved.sql.release() }
    await reserved.sql.unsafe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM idempotency_keys')
    const fetched = `SELECT idx_tup_read::int AS rows FROM pg_stat_user_indexes WHERE indexrelname = 'idempotency_keys_by_age'`
    for (let last = batch; last === batch; ) {
      last = await stores.pets.deleteExpiredIdempotencyKeys(new Date(), batch)
    }
    await stores.close()
    await endOfOurSessions()
    const [read] = await rows<{ rows: number }>(fetched)
    // With the rows of all batches before, it would be 25 times as many.
    expect(read?.rows).toBeWithin(5_000, 2 * 5_000)
  })

  test('no request reads a whole table, though its plan was made while the tables were tiny', async () => {
    await created()
    await endOfOurSessions()
    // Of the building of the indexes.
    const before = await rows<Scans>(scans)
    const stores = await opened()
    const work = async (number: number) => {
      const { pets } = stores
      await pets.createOnce(rex, { scope: 'a', key: `${number}`, at: new Date() })
      const lists = [{ limit: 5 }, { limit: 5, status: 'sold' } as const]
      await Promise.all([pets.create(rex), pets.get(1n), ...lists.map(list => pets.list(list))])
    }
    // Often enough for PostgreSQL to keep a plan for any values.
    for (let number = 0; number < 20; number++) await work(number)
    await run('ANALYZE pets, idempotency_keys')
    for (let number = 20; number < 40; number++) await work(number)
    await run("INSERT INTO pets SELECT i, 'x', i, NULL FROM generate_series(1000, 10000) AS i")
    await run("INSERT INTO idempotency_keys SELECT 'b', i::text, 'f', i, 0 FROM generate_series(1, 10000) AS i")
    for (let number = 40; number < 60; number++) await work(number)
    await stores.close()
    await endOfOurSessions()
    const after = await rows<Scans>(scans)
    expect(after.map(({ whole }) => whole)).toEqual(before.map(({ whole }) => whole))
    // At least one for each time.
    expect(after.filter(({ indexed }) => indexed >= 60)).toHaveLength(2)
  })
})
