import { expect, setDefaultTimeout, test } from 'bun:test'
import { SQL } from 'bun'
import { issueApiKey } from '../../src/api-key.ts'
import { SetupError } from '../../src/errors.ts'
import { openStores } from '../../src/store/open.ts'
import { migrations } from '../../src/store/postgres/schema.ts'
import { ask } from '../support/postgres.ts'
import { testMsMax, until } from '../support/process.ts'
import { describeWithPostgres, sharedDatabase } from '../support/with-postgres.ts'
import { describeStoreContract } from './contract.ts'
import { openAtOnce } from './open-at-once.ts'
import { postgresUnderTest } from './postgres-under-test.ts'

setDefaultTimeout(testMsMax)

describeWithPostgres('PostgreSQL', () => describeStoreContract('PostgreSQL', postgresUnderTest))

const opened = async (url: string, create = true) => openStores(url, { create })
const refusal = (url: string, create = true) =>
  opened(url, create).then(
    async stores => stores.close(),
    (error: unknown) => error,
  )

async function rows<T>(url: string, statement: string): Promise<T[]> {
  await using sql = new SQL(url, { max: 1 })
  return [...(await sql.unsafe<T[]>(statement))]
}

/** "PETS" in ASCII: held by whoever migrates. */
const migrationLock = 0x50455453
const waiting = `
  SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database
  WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()`

/** Everything that anybody but the server itself has put into the database: its name, its kind and its columns. */
const contentsOf = (url: string) =>
  rows<{ name: string }>(
    url,
    `SELECT relname AS name, relkind::text AS kind,
       (SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid) AS columns
     FROM pg_class AS c WHERE relnamespace = 'public'::regnamespace ORDER BY relname`,
  )

describeWithPostgres('PostgreSQL: the database', () => {
  test('integers live exactly in the table', async () => {
    await using database = await sharedDatabase()
    const stores = await opened(database.url)
    await stores.pets.create({ name: 'Rex', categoryId: 9223372036854775807n })
    await stores.close()
    expect(
      await rows(database.url, 'SELECT pg_typeof(category_id)::text AS type, category_id::text FROM pets'),
    ).toEqual([{ type: 'bigint', category_id: '9223372036854775807' }])
  })

  test('it carries its schema version, and opening it again changes nothing', async () => {
    await using database = await sharedDatabase()
    await (await opened(database.url)).close()
    const before = await contentsOf(database.url)
    const version = () => rows(database.url, 'SELECT version, xmin::text FROM petstore_schema')
    const [made] = await version()
    expect(made).toMatchObject({ version: migrations.length })
    await (await opened(database.url)).close()
    expect(await version()).toEqual([made])
    expect(await contentsOf(database.url)).toEqual(before)
    expect(before.map(({ name }) => name)).toContain('pets_by_status')
  })

  test('a metrics key is stored as read-only too: an instance of the version before never lets it write', async () => {
    await using database = await sharedDatabase()
    const stores = await opened(database.url)
    await stores.keys.create(
      issueApiKey({ name: 'prometheus', permission: 'metrics', createdAt: new Date() }).record,
    )
    await stores.close()
    expect(await rows(database.url, 'SELECT read_only FROM api_keys')).toEqual([{ read_only: true }])
  })

  test('an empty one becomes a store only where that was asked for', async () => {
    await using database = await sharedDatabase()
    const error = await refusal(database.url, false)
    expect(error).toBeInstanceOf(SetupError)
    expect(String(error)).toContain('There is no store in postgres://')
    expect(await contentsOf(database.url)).toEqual([])
  })

  test('one of a newer version is refused, and stays as it was', async () => {
    await using database = await sharedDatabase()
    await (await opened(database.url)).close()
    await ask(database.url, 'UPDATE petstore_schema SET version = 1000')
    await ask(database.url, 'ALTER TABLE pets ADD COLUMN colour text')
    const before = await contentsOf(database.url)
    const error = await refusal(database.url)
    expect(error).toBeInstanceOf(SetupError)
    expect(String(error)).toMatch(/schema version 1000.*upgrade the program/)
    expect(await contentsOf(database.url)).toEqual(before)
    expect(await rows(database.url, 'SELECT version FROM petstore_schema')).toEqual([{ version: 1000 }])
  })

  test.each([
    ['a table pets', 'CREATE TABLE pets (title text)'],
    ['a table api_keys', 'CREATE TABLE api_keys (id integer PRIMARY KEY)'],
    ['a table petstore_schema', 'CREATE TABLE petstore_schema (step text)'],
    ['a view creation_keys', 'CREATE VIEW creation_keys AS SELECT 1 AS id'],
    ['a type pet_ids', "CREATE TYPE pet_ids AS ENUM ('a')"],
    ['a sequence creation_keys_by_age', 'CREATE SEQUENCE creation_keys_by_age'],
  ])('one in which another program has %s is refused, and nothing is left behind', async (_, theirs) => {
    await using database = await sharedDatabase()
    await ask(database.url, theirs)
    const before = await contentsOf(database.url)
    const error = await refusal(database.url)
    expect(error).toBeInstanceOf(SetupError)
    expect(String(error)).toMatch(/: another program has a table of the same name there; .*\([0-9A-Z]{5}\)$/)
    expect(await contentsOf(database.url)).toEqual(before)
  })

  test('a migration that fails at its very end leaves nothing behind, and succeeds when the cause is gone', async () => {
    await using database = await sharedDatabase()
    await ask(
      database.url,
      `CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
       'BEGIN IF EXISTS (SELECT 1 FROM pg_class WHERE relname = ''petstore_schema'') THEN RAISE disk_full; END IF; END'`,
    )
    await ask(database.url, 'CREATE EVENT TRIGGER refusing ON ddl_command_end EXECUTE FUNCTION refuse()')
    expect(await refusal(database.url)).toBeInstanceOf(Error)
    expect(await contentsOf(database.url)).toEqual([])
    await ask(database.url, 'DROP EVENT TRIGGER refusing')
    const stores = await opened(database.url)
    expect((await stores.pets.create({ name: 'Rex', categoryId: 1n })).id).toBe(1n)
    await stores.close()
  })

  test('one that another instance migrates while we wait for our turn is taken as it is then', async () => {
    await using database = await sharedDatabase()
    await using other = new SQL(database.url, { max: 1 })
    let opening: Promise<unknown> | undefined
    await other.begin(async transaction => {
      await transaction`SELECT pg_advisory_xact_lock(${migrationLock})`
      opening = refusal(database.url)
      await until('it to wait for the lock', async () => {
        const [row] = await transaction.unsafe(waiting)
        return row && true
      })
      for (const step of migrations) await transaction.unsafe(step)
      await transaction`CREATE TABLE petstore_schema (version integer NOT NULL)`
      await transaction`INSERT INTO petstore_schema VALUES (${migrations.length})`
    })
    expect(await opening).toBeUndefined()
  })

  test('a first key is not made where another instance is just making one', async () => {
    await using database = await sharedDatabase()
    const [stores, other] = [await opened(database.url), new SQL(database.url, { max: 1 })]
    let making: ReturnType<typeof stores.keys.createFirst> | undefined
    const first = (name: string) =>
      issueApiKey({ name, permission: 'read-write', createdAt: new Date() }).record
    await other.begin(async transaction => {
      const { name, hash, shown } = first('theirs')
      await transaction`INSERT INTO api_keys (name, hash, shown, read_only, created_at_ms)
        VALUES (${name}, ${hash}, ${shown}, false, 0)`
      making = stores.keys.createFirst(first('ours'))
      await Bun.sleep(300)
    })
    expect(await making).toBeUndefined()
    expect((await stores.keys.list()).map(({ name }) => name)).toEqual(['theirs'])
    await stores.close()
    await other.close()
  })

  test('eight processes that open an empty one at once all get it, migrated once', async () => {
    await using database = await sharedDatabase()
    await openAtOnce(database.url, 8)
    const stores = await opened(database.url, false)
    const { pets } = await stores.pets.list({ limit: 100 })
    await stores.close()
    expect(pets.map(({ id }) => id)).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n])
    expect(await rows(database.url, 'SELECT count(*)::integer AS count FROM petstore_schema')).toEqual([
      { count: 1 },
    ])
  })
})
