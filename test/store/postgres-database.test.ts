import { afterEach, beforeEach, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { issueApiKey, type Permission } from '../../src/api-key.ts'
import { withAdvice } from '../../src/cli/advice.ts'
import { StoreUnavailable, StoreUnreachable } from '../../src/errors.ts'
import { WriteHealth } from '../../src/store/commit-queue.ts'
import { openStores } from '../../src/store/open.ts'
import { Connections, waitingMax } from '../../src/store/postgres/connections.ts'
import { createPostgresKeys } from '../../src/store/postgres/keys.ts'
import { statements } from '../../src/store/postgres/pets.ts'
import { longTransaction, sessionSettings } from '../../src/store/postgres/server.ts'
import { parsePostgresUrl } from '../../src/store/postgres/url.ts'
import type { OnStoreEvent } from '../../src/store-contract.ts'
import { advance, eventually, settle, standingClock } from '../support/clock.ts'
import { ask, describeWithPostgres, sharedDatabase, type TestDatabase } from '../support/postgres.ts'
import { until } from '../support/process.ts'
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

async function rows<T>(statement: string, url = database.url): Promise<T[]> {
  await using sql = new SQL(url, { max: 1 })
  return [...(await sql.unsafe<T[]>(statement))]
}

const waitingForLocks = `SELECT query_start::text AS since FROM pg_stat_activity
  WHERE wait_event_type = 'Lock' AND datname = current_database()`

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

  test('one that the second address for reads refuses is repeated at the first', async () => {
    await using role = await newUser()
    await run(`REVOKE SELECT ON pets FROM ${role.name}`)
    await using stores = closing(await openStores(database.url, { create: false, readUrl: role.url }))
    const pet = await stores.pets.create(rex)
    expect(await stores.pets.get(pet.id)).toEqual(pet)
  })
})

describeWithPostgres('PostgreSQL: rights', () => {
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
    expect(await stores.pets.update(1n, { name: 'Mia' })).toMatchObject({ outcome: 'changed' })
    expect(await stores.pets.remove(1n)).toMatchObject({ outcome: 'changed' })
    expect((await stores.pets.list({ limit: 10 })).pets).toHaveLength(1)
    await stores.close()
  })

  test.each([
    ['DELETE on pets', 'DELETE ON pets'],
    ['EXECUTE on petstore_change', 'EXECUTE ON FUNCTION petstore_change'],
  ])('a server does not start without %s', async (lacking, right) => {
    await using role = await newUser()
    await run(`REVOKE ${right} FROM ${role.name}, PUBLIC`)
    await using stores = await opened(role.url, false)
    const message = expect.stringMatching(new RegExp(`: the user lacks ${lacking}$`))
    expect(await failureOf(() => stores.startWriting())).toMatchObject({ problem: 'missing-right', message })
  })
})

describeWithPostgres('PostgreSQL: connections', () => {
  /** A server's store for a user who may only read and write rows, and what it logs. */
  async function servingAs(role: { readonly url: string }, connectionsMax?: number) {
    const logged: string[] = []
    const onEvent: OnStoreEvent = (level, event) => void logged.push(`${level} ${withAdvice(event)}`)
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

  test('with a limit below the pool, it reads and writes with fewer, and says so once', async () => {
    await using role = await newUser(6)
    await using stores = await servingAs(role)
    const crowd = () => Promise.all(Array.from({ length: 200 }, () => stores.pets.list({ limit: 5 })))
    // A fast server answers a crowd before the last connection is open.
    await until('all connections, and one that is refused', async () => {
      await crowd()
      return ((await sessionsOf(role.name)).length === 6 && stores.logged.length > 0) || undefined
    })
    await crowd()
    expect((await stores.pets.create(rex)).id).toBe(1n)
    const refused =
      /^error Cannot connect to PostgreSQL at \S+ for reading: .*\(53300: .*\); raise the server's max_connections/
    expect(stores.logged).toEqual([expect.stringMatching(refused)])
  })

  test('without a free one, a server does not start, and a running one says what to do and when it can write again', async () => {
    await using role = await newUser(3)
    await using stores = await servingAs(role)
    await stores.pets.create(rex)
    expect(stores.activity().isWritable).toBe(true)

    const advice =
      /the server has no free connection \(53300: too many connections for role .*\); raise the server's max_connections/
    await run(`ALTER ROLE ${role.name} CONNECTION LIMIT 0`)
    await run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role.name}'`)
    const failure = await until('a refusal', async () => {
      const error = await failureOf(() => stores.pets.create(rex))
      return String(error).includes('53300') ? error : undefined
    })
    expect(failure).toBeInstanceOf(StoreUnavailable)
    expect(withAdvice(failure as StoreUnavailable)).toMatch(advice)
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
    const lists = () => Array.from({ length: 5 }, () => stores.pets.list({ limit: 1 }))
    // Until both connections for reading are open.
    await until('a second connection', async () => {
      const reading = Promise.all(lists())
      const isBusy = stores.activity().pools?.['reading']?.connectionsBusy === 2
      await reading
      return isBusy || undefined
    })
    const work: unknown[] = []
    await admin.begin(async locked => {
      await locked`LOCK TABLE pets IN ACCESS EXCLUSIVE MODE`
      work.push(stores.pets.create(rex), ...lists())
      // Two reads and a write: the other reads wait behind them.
      await until('the statements', async () => (await rows(waitingForLocks)).length === 3 || undefined)
      expect(stores.activity().pools).toEqual({
        reading: { connectionsMax: 2, connectionsBusy: 2, waiting: 3 },
        writing: { connectionsMax: 2, connectionsBusy: 1, waiting: 0 },
      })
    })
    await Promise.all(work)
    expect(stores.activity().pools).toEqual({ reading: idle, writing: idle })
  })

  test('work that has waited too long for a connection is not sent later', async () => {
    using _ = standingClock()
    const address = parsePostgresUrl(database.url)
    const writing = new Connections({ use: 'writing', address, connectionsMax: 1, onEvent() {} })
    const first = Promise.withResolvers<void>()
    const sent: string[] = []
    const busy = writing.run(async () => sent.push('first') && first.promise).catch(() => {})
    await eventually('a connection', () => sent[0])
    const late = writing.run(async () => sent.push('late')).catch(error => error)
    await advance(5_000)
    expect(await late).toMatchObject({ message: 'PostgreSQL did not answer within 5000 ms' })
    first.resolve()
    await busy
    const next = writing.run(async () => sent.push('next'))
    await eventually('the next', () => Bun.peek.status(next) !== 'pending' || undefined)
    expect(sent).toEqual(['first', 'next'])
    const closing = writing.close()
    while (Bun.peek.status(closing) === 'pending') await advance(100)
  })

  test('changes at the same moment share a commit', async () => {
    await using stores = await opened()
    const pets = await Promise.all(Array.from({ length: 300 }, () => stores.pets.create(rex)))
    await Promise.all(pets.map(({ id }) => stores.pets.update(id, { name: 'Mia' })))
    const commits = await rows(`SELECT DISTINCT xmin::text FROM pets WHERE name = 'Mia'`)
    expect(commits).toHaveLength(1)
  })

  test('a look-up of a key goes before a full queue of reads', async () => {
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
    held.resolve()
    await Promise.all([...sent, ...waiting, lookUp])
    // Among the first: its answer passes a few more promises than that of a read.
    expect(done.indexOf('look-up')).toBeWithin(1, 64)
  })

  test('a look-up that waits for another one is given up after 5 s, too', async () => {
    using _ = standingClock()
    const address = parsePostgresUrl(database.url)
    await created()
    const reading = new Connections({ use: 'reading', address, connectionsMax: 1, onEvent() {} })
    const keys = createPostgresKeys({ run: () => new Promise(() => {}) }, reading, new WriteHealth())
    const given = [keys.find('first').catch(error => error)]
    await advance(500)
    given.push(keys.find('second').catch(error => error))
    const settled = () => given.map(each => Bun.peek.status(each) === 'fulfilled')
    await advance(4_500)
    expect(settled()).toEqual([true, false])
    await advance(500)
    expect(settled()).toEqual([true, true])
    expect(await Promise.all(given)).toEqual([expect.any(StoreUnavailable), expect.any(StoreUnavailable)])
  })

  test('the store takes no writes while uses of keys cannot be stored', async () => {
    await using role = await newUser()
    await using stores = await servingAs(role)
    const { id } = await stores.keys.create(newKey('till'))
    const record = () => stores.keys.recordUses([{ id, lastUsedAt: new Date(), deprecatedUses: 0 }])
    await run(`REVOKE UPDATE ON api_keys FROM ${role.name}`)
    expect(await failureOf(record)).toBeInstanceOf(StoreUnavailable)
    expect(stores.activity().isWritable).toBe(false)
    await run(`GRANT UPDATE ON api_keys TO ${role.name}`)
    await record()
    expect(stores.activity().isWritable).toBe(true)
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

  test('the server ends a session that pauses for 10 minutes', async () => {
    await using sql = new SQL(database.url, { max: 1 })
    await sql.begin(async transaction => {
      await transaction.unsafe(longTransaction)
      const [row] = await transaction`SHOW idle_in_transaction_session_timeout`
      expect(row).toEqual({ idle_in_transaction_session_timeout: '10min' })
    })
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

const recordedCommits = () => rows<{ setting: string }>('SELECT setting FROM seen')

/** For sessions that begin later. */
const setCommit = (setting: string) => run(`ALTER DATABASE ${databaseName()} SET synchronous_commit = '${setting}'`)

describeWithPostgres('PostgreSQL: durability', () => {
  test.each(['off', 'remote_apply'])('synchronous_commit = %s is used; off becomes on', async set => {
    await recordCommits()
    await setCommit(set)
    const stores = await opened()
    await stores.keys.createFirst(newKey('till'))
    await stores.keys.revoke(1n, new Date())
    await stores.pets.create(rex)
    await stores.pets.createOnce(rex, { scope: 'a', key: 'k', at: new Date() })
    await stores.pets.update(1n, { name: 'Mia' })
    await stores.pets.remove(1n)
    await stores.transfer.load(batches([rex]), 'new')
    await stores.close()
    expect(await recordedCommits()).toEqual(Array(8).fill({ setting: set === 'off' ? 'on' : set }))
  })

  test('behind a pooler, where sessions are not ours, animals are written with synchronous_commit = on', async () => {
    await recordCommits()
    await setCommit('off')
    await using stores = closing(await openStores(database.url, { create: false, pooler: true }))
    const { id } = await stores.pets.create(rex)
    await stores.pets.createOnce(rex, { scope: 'a', key: 'k', at: new Date() })
    await stores.pets.update(id, { name: 'Mia' })
    await stores.pets.remove(id)
    expect(await recordedCommits()).toEqual(Array(5).fill({ setting: 'on' }))
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

  const batch = 100
  /** Random keys of one client, in the order of time. */
  const addKeys = (count: number, timeMs: string) =>
    run(
      `INSERT INTO idempotency_keys
       SELECT repeat('a', 64), encode(sha256(i::text::bytea), 'hex'), repeat('f', 64), i, ${timeMs}
       FROM generate_series(1, ${count}) AS i ON CONFLICT DO NOTHING`,
    )

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
})
