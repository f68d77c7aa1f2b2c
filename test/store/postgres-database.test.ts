import { afterEach, beforeEach, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { issueApiKey, type Permission } from '../../src/api-key.ts'
import { StoreUnavailable, StoreUnreachable } from '../../src/errors.ts'
import { WriteHealth } from '../../src/store/commit-queue.ts'
import { openStores } from '../../src/store/open.ts'
import { Connections, waitingMax } from '../../src/store/postgres/connections.ts'
import { createPostgresKeys } from '../../src/store/postgres/keys.ts'
import { statements } from '../../src/store/postgres/pets.ts'
import { sessionSettings } from '../../src/store/postgres/server.ts'
import { parsePostgresUrl } from '../../src/store/postgres/url.ts'
import type { OnStoreEvent } from '../../src/store-contract.ts'
import { settle } from '../support/clock.ts'
import { ask, describeWithPostgres, sharedDatabase, type TestDatabase } from '../support/postgres.ts'
import { until } from '../support/process.ts'
import { batches, closing, failureOf, rex } from './stores.ts'

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

async function rows<T>(statement: string, url = database.url): Promise<T[]> {
  await using sql = new SQL(url, { max: 1 })
  return [...(await sql.unsafe<T[]>(statement))]
}

/** The names of the tables, indexes, views, types and functions in the database. */
async function contents(url?: string): Promise<readonly string[]> {
  const found = await rows<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
     UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
     UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY name`,
    url,
  )
  return found.map(({ name }) => name)
}

describeWithPostgres('PostgreSQL: the database', () => {
  test.each([
    'CREATE TABLE petstore_schema_version (step text)',
    'CREATE VIEW idempotency_keys AS SELECT 1 AS id',
    "CREATE TYPE pet_id_floor AS ENUM ('a')",
  ])('after another program\'s "%s" the database is refused, and nothing changes', async theirs => {
    await run(theirs)
    const before = await contents()
    expect(await failureOf(opened)).toMatchObject({ name: 'StoreError', problem: 'wrong-database' })
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
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
      await until('it to wait', async () => (await rows(waiting)).length === 1 || undefined)
    })
    expect(await creating).toBeUndefined()
    expect((await stores.keys.list()).map(({ name }) => name)).toEqual(['theirs'])
  })

  test('a database with another encoding than UTF8 is refused, and stays empty', async () => {
    const name = `petstore_test_${process.pid}_ascii`
    const url = database.url.replace(/\/[^/?]*(\?|$)/, `/${name}$1`)
    await run(`CREATE DATABASE ${name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`)
    try {
      const message = expect.stringContaining('SQL_ASCII')
      expect(await failureOf(() => opened(url))).toMatchObject({ problem: 'wrong-database', message })
      expect(await contents(url)).toEqual([])
    } finally {
      await run(`DROP DATABASE ${name} WITH (FORCE)`)
    }
  })
})

/** A user who may only read and write the rows of a store, with a limit of connections; -1 is none. */
async function newUser(connectionsMax = -1) {
  await created()
  const name = `petstore_test_${crypto.randomUUID().replaceAll('-', '')}`
  await run(`CREATE ROLE ${name} LOGIN PASSWORD 'hunter2' CONNECTION LIMIT ${connectionsMax}`)
  await run(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${name}`)
  return {
    name,
    url: database.url.replace(/\/\/[^@]*@/, `//${name}:hunter2@`),
    async [Symbol.asyncDispose]() {
      await run(`DROP OWNED BY ${name}`)
      await run(`DROP ROLE ${name}`)
    },
  }
}

/** Why a server cannot start. */
const startFailure = (url: string) =>
  failureOf(async () => {
    const stores = await opened(url, false)
    await stores.startWriting().finally(() => stores.close())
  })

describeWithPostgres('PostgreSQL: ids', () => {
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
})

describeWithPostgres('PostgreSQL: rights', () => {
  test('a user who may only read and write rows can do everything that a server does, and without a right, the store takes no writes', async () => {
    await using role = await newUser()
    const stores = await opened(role.url)
    expect(await stores.keys.createFirst(newKey('till'))).toMatchObject({ id: 1n })
    await stores.keys.create(newKey('other', 'read-only'))
    const recordUse = () => stores.keys.recordUses([{ id: 1n, lastUsedAt: new Date(), deprecatedUses: 1 }])
    await recordUse()
    expect(await stores.keys.revoke(2n, new Date())).toBe(true)
    await stores.pets.create(rex)
    await stores.pets.createOnce(rex, { scope: 'a', key: 'k', at: new Date(0) })
    expect(await stores.pets.deleteExpiredIdempotencyKeys(new Date(), 10)).toBe(1)
    expect(await stores.pets.update(1n, { name: 'Mia' })).toMatchObject({ outcome: 'changed' })
    expect(await stores.pets.remove(1n)).toMatchObject({ outcome: 'changed' })
    expect((await stores.pets.list({ limit: 10 })).pets).toHaveLength(1)
    expect(stores.activity().isWritable).toBe(true)
    await run(`REVOKE UPDATE ON api_keys FROM ${role.name}`)
    expect(await failureOf(recordUse)).toBeInstanceOf(StoreUnavailable)
    expect(stores.activity().isWritable).toBe(false)
    await stores.close()
  })

  test.each([
    ['DELETE on pets', 'DELETE ON pets'],
    ['EXECUTE on petstore_change', 'EXECUTE ON FUNCTION petstore_change'],
  ])('a server does not start without %s', async (lacking, right) => {
    await using role = await newUser()
    await run(`REVOKE ${right} FROM ${role.name}, PUBLIC`)
    const message = expect.stringContaining(lacking)
    expect(await startFailure(role.url)).toMatchObject({ problem: 'missing-right', message })
  })
})

describeWithPostgres('PostgreSQL: connections', () => {
  /** A server's store for a user who may only read and write rows, and what it logs. */
  async function servingAs(role: { readonly url: string }, connectionsMax?: number) {
    const logged: string[] = []
    const onEvent: OnStoreEvent = (level, event) => void logged.push(`${level} ${event.message}`)
    const stores = await openStores(role.url, { create: false, onEvent, connectionsMax })
    await stores.startWriting()
    return { ...closing(stores), logged }
  }
  test('with a limit below the pool, it works with fewer; without a free one, it says that it cannot write, until it can', async () => {
    await using role = await newUser(6)
    await using stores = await servingAs(role)
    const crowd = () => Promise.all(Array.from({ length: 200 }, () => stores.pets.list({ limit: 5 })))
    // A fast server answers a crowd before the last connection is open.
    await until('all connections, and one that is refused', async () => {
      await crowd()
      const sessions = await rows(`SELECT 1 FROM pg_stat_activity WHERE usename = '${role.name}'`)
      return (sessions.length === 6 && stores.logged.length > 0) || undefined
    })
    await crowd()
    expect((await stores.pets.create(rex)).id).toBe(1n)
    expect(stores.logged).toEqual([expect.stringMatching(/^error .* for reading: .*53300/)])
    expect(stores.activity().isWritable).toBe(true)

    await run(`ALTER ROLE ${role.name} CONNECTION LIMIT 0`)
    await run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role.name}'`)
    const full = { problem: 'no-free-connection' }
    const isRefused = async () => Bun.deepMatch(full, Object(await failureOf(() => stores.pets.create(rex))))
    await until('a refusal', async () => (await isRefused()) || undefined)
    expect(stores.activity().isWritable).toBe(false)
    expect(await startFailure(role.url)).toMatchObject(full)

    await run(`ALTER ROLE ${role.name} CONNECTION LIMIT 3`)
    await until('a creation', async () => Promise.resolve(stores.pets.create(rex)).catch(() => undefined))
    expect(stores.activity().isWritable).toBe(true)
  })

  test('changes at the same moment share a commit', async () => {
    await using stores = await opened()
    const pets = await Promise.all(Array.from({ length: 300 }, () => stores.pets.create(rex)))
    await Promise.all(pets.map(({ id }) => stores.pets.update(id, { name: 'Mia' })))
    const commits = await rows(`SELECT DISTINCT xmin::text FROM pets WHERE name = 'Mia'`)
    expect(commits).toHaveLength(1)
  })

  test('a look-up of a key goes before a full queue of reads, and the activity counts all that wait', async () => {
    await created()
    const address = parsePostgresUrl(database.url)
    const reading = new Connections({ use: 'reading', address, connectionsMax: 1, onEvent() {} })
    await using _ = { [Symbol.asyncDispose]: () => reading.close() }
    const keys = createPostgresKeys(reading, reading, new WriteHealth())
    const done: string[] = []
    const read = () => reading.run(async sql => sql`SELECT 1`).then(() => done.push('read'))
    await read()
    const held = Promise.withResolvers<void>()
    const sent = Array.from({ length: 16 }, () => reading.run(() => held.promise))
    const waiting = Array.from({ length: waitingMax }, read)
    expect(await failureOf(read)).toBeInstanceOf(StoreUnavailable)
    const lookUp = keys.find('nobody').then(() => done.push('look-up'))
    await settle()
    expect(reading.activity).toEqual({ connectionsMax: 1, connectionsBusy: 1, waiting: waitingMax + sent.length })
    held.resolve()
    await Promise.all([...sent, ...waiting, lookUp])
    expect(reading.activity).toEqual({ connectionsMax: 1, connectionsBusy: 0, waiting: 0 })
    // Among the first: its answer passes a few more promises than that of a read.
    expect(done.indexOf('look-up')).toBeWithin(1, 64)
  })
})

const ourSessions = `
  SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'petstore%' AND datname = current_database()`
const endOurSessions = ourSessions.replace('pid', 'pg_terminate_backend(pid)')

describeWithPostgres('PostgreSQL: export and import', () => {
  test('an export or an import that loses its session fails, and nothing is added', async () => {
    await using stores = await opened()
    await run('INSERT INTO pets SELECT n, n, 1 FROM generate_series(1, 6000) AS n')
    const exporting = async () => {
      for await (const _ of stores.transfer.read()) await run(endOurSessions)
    }
    async function* slow() {
      yield [rex]
      await run(endOurSessions)
      yield [rex]
    }
    for (const work of [exporting, () => stores.transfer.load(slow(), 'new')]) {
      expect(await failureOf(work)).toBeInstanceOf(StoreUnreachable)
    }
    expect(await rows('SELECT 1 FROM pets')).toHaveLength(6_000)
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
    await run(`CREATE TRIGGER seeing AFTER INSERT OR UPDATE OR DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION see()`)
  }
}

describeWithPostgres('PostgreSQL: durability', () => {
  // Behind a pooler, sessions are not ours: only the functions for animals see to it.
  test.each([
    ['off', 'on', false],
    ['remote_apply', 'remote_apply', false],
    ['off', 'on', true],
  ])('with synchronous_commit = %s, writes use %s; behind a pooler: %p', async (set, used, pooler) => {
    await recordCommits()
    await run(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET synchronous_commit = '${set}'`)
    const stores = await openStores(database.url, { create: false, pooler })
    await stores.pets.create(rex)
    await stores.pets.createOnce(rex, { scope: 'a', key: 'k', at: new Date() })
    await stores.pets.update(1n, { name: 'Mia' })
    await stores.pets.remove(1n)
    if (!pooler) {
      await stores.keys.createFirst(newKey('till'))
      await stores.keys.revoke(1n, new Date())
      await stores.transfer.load(batches([rex]), 'new')
    }
    await stores.close()
    expect(await rows('SELECT setting FROM seen')).toEqual(Array(pooler ? 5 : 8).fill({ setting: used }))
  })
})

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
    // One status is common, one is rare, one is found only among the oldest, and a quarter has none.
    await run(
      `INSERT INTO pets (id, name, category_id, status)
       SELECT id, 'Animal ' || id, id % 100,
         CASE WHEN id % 4 = 0 THEN NULL WHEN id < 90 THEN 'sold' WHEN id % 1000 = 2 THEN 'pending' ELSE 'available' END
       FROM generate_series(1, 60000) AS id`,
    )
    await run('VACUUM ANALYZE pets')

    async function expectFewBlocks(sql: SQL, statement: string, ...values: unknown[]): Promise<void> {
      await sql.unsafe(`PREPARE asked AS ${statement}`)
      const execute = `EXECUTE asked (${values.map(value => `'${value}'`).join()})`
      const lines = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) ${execute}`)
      await sql.unsafe('DEALLOCATE asked')
      const plan = lines.map((line: { 'QUERY PLAN': string }) => line['QUERY PLAN']).join('\n')
      const [, hit, read = 0] = /Buffers: shared hit=(\d+)(?: read=(\d+))?/.exec(plan) ?? []
      expect(Number(hit) + Number(read), plan).toBeLessThan(30)
      expect(plan).toContain('Index Scan')
      expect(plan).not.toContain('Sort')
    }

    // Behind a pooler, sessions do not have our settings.
    for (const connection of [{}, sessionSettings]) {
      await using sql = new SQL(database.url, { max: 1, connection })
      // As the server runs a statement: planned for its values or, after several uses, for any values.
      for (const mode of ['custom', 'generic']) {
        await sql.unsafe(`SET plan_cache_mode = force_${mode}_plan`)
        for (const after of [0, 50_000, 60_000]) {
          await expectFewBlocks(sql, statements.get, `{${after},${after + 1}}`)
          await expectFewBlocks(sql, statements.list, after, 21)
          for (const status of ['available', 'pending', 'sold']) {
            await expectFewBlocks(sql, statements.listByStatus, status, after, 21)
          }
        }
      }
    }
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
      await Promise.all([pets.update(1n, { name: `${number}` }), pets.remove(BigInt(number + 2))])
      await pets.deleteExpiredIdempotencyKeys(new Date(), 1)
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
