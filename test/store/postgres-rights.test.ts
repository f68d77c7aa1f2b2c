import { expect, setDefaultTimeout, test } from 'bun:test'
import { SQL } from 'bun'
import { issueApiKey } from '../../src/api-key.ts'
import { SetupError, StoreUnavailable, StoreUnreachable } from '../../src/errors.ts'
import { openStores } from '../../src/store/open.ts'
import { ask, type TestDatabase } from '../support/postgres.ts'
import { testMsMax, until } from '../support/process.ts'
import { describeWithPostgres, sharedDatabase } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

const opened = async (url: string) => openStores(url, { create: true })
const refusal = (url: string) =>
  opened(url).then(
    async stores => stores.close(),
    (error: unknown) => error,
  )

interface Role extends AsyncDisposable {
  readonly name: string
  /** Of the database, as that user. */
  readonly url: string
}

let roles = 0

/** A user of the server who may do nothing yet, gone with the test. */
async function newRole({ url }: TestDatabase): Promise<Role> {
  const name = `petstore_test_${process.pid}_${++roles}`
  await ask(url, `CREATE ROLE ${name} LOGIN PASSWORD 'hunter2'`)
  return {
    name,
    url: url.replace(/\/\/[^@]*@/, `//${name}:hunter2@`),
    async [Symbol.asyncDispose]() {
      await ask(url, `DROP OWNED BY ${name}`)
      await ask(url, `DROP ROLE ${name}`)
    },
  }
}

describeWithPostgres('PostgreSQL: rights', () => {
  test('a user who may not make tables is refused on an empty database, in one line without the password', async () => {
    await using database = await sharedDatabase()
    await using role = await newRole(database)
    const error = await refusal(role.url)
    expect(error).toBeInstanceOf(SetupError)
    // Waiting would not help.
    expect(error).not.toBeInstanceOf(StoreUnreachable)
    expect(String(error)).toMatch(/this user may not create or use the tables; GRANT it .*\(42501\)$/)
    expect(String(error)).not.toMatch(/\n|hunter2/)
  })

  test('a user who may only read and write what is in the tables can do everything that a server does', async () => {
    await using database = await sharedDatabase()
    await (await opened(database.url)).close()
    await using role = await newRole(database)
    await ask(
      database.url,
      `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role.name}`,
    )
    const stores = await opened(role.url)
    const createdAt = new Date(0)
    const key = issueApiKey({ name: 'till', permission: 'read-write', createdAt }).record
    expect(await stores.keys.createFirst(key)).toMatchObject({ id: 1n })
    await stores.keys.create(issueApiKey({ name: 'other', permission: 'read-only', createdAt }).record)
    await stores.keys.recordUses([{ id: 1n, lastUsedAt: new Date(), deprecatedUses: 1 }])
    expect(await stores.keys.revoke(2n, new Date())).toBe(true)
    const pet = { name: 'Rex', categoryId: 1n }
    await stores.pets.create(pet)
    await stores.pets.createOnce(pet, { scope: 'a', key: 'k', at: createdAt })
    expect(await stores.pets.deleteExpiredKeys(new Date(), 10)).toBe(1)
    expect((await stores.pets.list({ limit: 10 })).pets).toHaveLength(2)
    await stores.close()
  })

  test('a user who may not even read the tables of a store is refused', async () => {
    await using database = await sharedDatabase()
    await (await opened(database.url)).close()
    await using role = await newRole(database)
    expect(String(await refusal(role.url))).toMatch(
      /^SetupError: .* may not create or use the tables.*\(42501\)$/,
    )
  })
})

/** From now on every write notes how it will be committed. */
async function recordCommits({ url }: TestDatabase): Promise<void> {
  await ask(url, 'CREATE TABLE seen (setting text)')
  await ask(
    url,
    `CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
     'BEGIN INSERT INTO seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'`,
  )
  for (const table of ['pets', 'api_keys', 'creation_keys']) {
    await ask(
      url,
      `CREATE TRIGGER seeing AFTER INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION see()`,
    )
  }
}

async function recordedCommits({ url }: TestDatabase): Promise<readonly string[]> {
  await using sql = new SQL(url, { max: 1 })
  const seen = await sql.unsafe<{ setting: string }[]>('SELECT setting FROM seen')
  return seen.map(({ setting }) => setting)
}

/** As an administrator does it: for every session that begins later. */
async function setCommit({ url }: TestDatabase, setting: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await ask(url, `ALTER DATABASE ${name} SET synchronous_commit = '${setting}'`)
}

const endSessions = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database()`

describeWithPostgres('PostgreSQL: what a database has to promise', () => {
  test('one whose encoding is not UTF8 is refused, and stays empty', async () => {
    await using database = await sharedDatabase()
    const name = `petstore_test_${process.pid}_ascii`
    const url = database.url.replace(/\/[^/?]*(\?|$)/, `/${name}$1`)
    await ask(
      database.url,
      `CREATE DATABASE ${name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`,
    )
    try {
      const error = await refusal(url)
      expect(error).toBeInstanceOf(SetupError)
      expect(error).not.toBeInstanceOf(StoreUnreachable)
      expect(String(error)).toMatch(/its encoding is SQL_ASCII, .*create it with ENCODING 'UTF8'$/)
      await using sql = new SQL(url, { max: 1 })
      expect([...(await sql`SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace`)]).toEqual([])
    } finally {
      await ask(database.url, `DROP DATABASE ${name} WITH (FORCE)`)
    }
  })

  test.each([
    ['off', 'on'],
    ['on', 'on'],
    ['local', 'local'],
    ['remote_apply', 'remote_apply'],
  ])(
    'with synchronous_commit = %s on the server, all that is acknowledged is committed with %s',
    async (set, used) => {
      await using database = await sharedDatabase()
      await (await opened(database.url)).close()
      await recordCommits(database)
      await setCommit(database, set)
      const stores = await opened(database.url)
      const key = issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date() }).record
      await stores.keys.createFirst(key)
      await stores.keys.revoke(1n, new Date())
      await stores.pets.create({ name: 'Rex', categoryId: 1n })
      await stores.pets.createOnce({ name: 'Rex', categoryId: 1n }, { scope: 'a', key: 'k', at: new Date() })
      await stores.transfer.load(
        (async function* () {
          yield [{ name: 'Loaded', categoryId: 1n }]
        })(),
        'new',
      )
      await stores.close()
      expect(await recordedCommits(database)).toEqual(Array.from({ length: 6 }, () => used))
    },
  )

  test('when the server is set to synchronous_commit = off later, a store that is open already does not follow it', async () => {
    await using database = await sharedDatabase()
    await (await opened(database.url)).close()
    await recordCommits(database)
    await setCommit(database, 'on')
    const stores = await opened(database.url)
    const at = new Date()
    const once = async (key: string) =>
      stores.pets.createOnce({ name: 'Rex', categoryId: 1n }, { scope: 'a', key, at })
    await stores.pets.create({ name: 'Rex', categoryId: 1n })
    await once('before')
    await setCommit(database, 'off')
    await ask(database.url, endSessions)
    await until('animals again', () =>
      once('after').catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error
        return undefined
      }),
    )
    await stores.pets.create({ name: 'Rex', categoryId: 1n })
    await stores.keys.create(issueApiKey({ name: 'till', permission: 'read-write', createdAt: at }).record)
    expect(await stores.keys.revoke(1n, at)).toBe(true)
    await stores.close()
    const seen = await recordedCommits(database)
    expect(seen.length).toBeGreaterThanOrEqual(8)
    expect(new Set(seen)).toEqual(new Set(['on']))
  })
})
