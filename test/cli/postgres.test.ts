import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { SQL } from 'bun'
import {
  type Cluster,
  describeWithOwnPostgres,
  describeWithPostgres,
  newDatabase,
  sharedDatabase,
  startCluster,
  type TestDatabase,
} from '../support/postgres.ts'
import { loggedBy, pasteCurl, petstore, startServer, temporaryFolder, testMsMax, until } from '../support/process.ts'
import { animalLines } from '../support/workplace.ts'
import { spawnPetstore } from './child.ts'

setDefaultTimeout(testMsMax)

const rex = { method: 'POST', body: '{"name":"Rex","categoryId":9223372036854775807}' }

/** The address as messages show it: without user and password. */
const placeOf = ({ url }: TestDatabase) => url.replace(/\/\/[^@]*@/, '//').replace(/\?.*/, '')

/** The address with a password, which the server started for the tests ignores and no output may show. */
const withPassword = ({ url }: TestDatabase) =>
  process.env['PETSTORE_TEST_POSTGRES_URL'] ? url : url.replace(/\/\/([^:@]*)(?::[^@]*)?@/, '//$1:hunter2@')

describeWithPostgres('petstore on PostgreSQL', () => {
  test('the first start creates the tables and shows a key that works when pasted; the second shows none', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: withPassword(database) } }
    await using first = await startServer(surroundings)
    expect(first.stdout).toContain(` serves ${first.url} from ${placeOf(database)}\n`)
    const [, key = ''] = /^The first API key, shown only this once: (pets_[0-9A-Za-z]{36})$/m.exec(first.stdout) ?? []
    expect(await pasteCurl(first, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
    expect((await first.fetch('/pets', key, rex)).status).toBe(201)
    const ended = await first.stop('SIGTERM')
    expect(ended.exitCode).toBe(0)
    expect(loggedBy(ended)).toEqual(['info Stopping'])
    expect(ended.stdout + ended.stderr).not.toMatch(/hunter2|postgres@/)

    await using second = await startServer(surroundings)
    expect(second.stdout).not.toMatch(/first API key|pets_[0-9A-Za-z]{36}/)
    expect(second.stdout).toContain('keys create --name')
    const response = await second.fetch('/pets', key)
    expect(await response.text()).toBe('[{"id":1,"name":"Rex","categoryId":9223372036854775807}]')
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('keys can be created, listed and revoked while a server runs', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: database.url } }
    const place = placeOf(database)
    const keys = (...args: string[]) => petstore(['keys', ...args], surroundings)
    const none = await keys('list')
    expect(none).toMatchObject({ exitCode: 1, stdout: '' })
    expect(none.stderr).toStartWith(`petstore: There is no store in ${place}`)
    const { stdout, stderr } = await keys('create', '--name', 'till', '--expires', '90d')
    expect(stderr).toStartWith(`Created a new store at ${place}\nCreated key "till" (read-write) in ${place}. `)
    await using server = await startServer(surroundings)
    expect((await server.fetch('/pets', stdout.trim(), rex)).status).toBe(201)
    expect((await keys('revoke', 'till')).exitCode).toBe(0)
    const listed = JSON.parse((await keys('list', '--json')).stdout)
    expect(listed).toMatchObject([{ name: 'till', revokedAt: expect.any(String) }])
  })

  test('unreachable replicas are named', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const args = ['serve', '--port', '0', '--read-url', 'postgres://somebody:hunter2@127.0.0.1:1/pets']
    const ended = await petstore(args, { cwd: folder.path, env: { DATABASE_URL: database.url } })
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^petstore: [^\n]*127\.0\.0\.1:1\b[^\n]*\n$/)
    expect(ended.stderr).not.toContain('hunter2')
  })
})

const sessions = `
  SELECT wait_event_type FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database()`

describeWithOwnPostgres('interrupting a command while PostgreSQL does not answer', () => {
  let cluster: Cluster

  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  /** An empty store in a new database, in which another program holds a lock, and a working folder. */
  async function lockedStore(lock: string) {
    await using stack = new AsyncDisposableStack()
    const { path } = stack.use(temporaryFolder())
    const { url } = stack.use(await newDatabase(cluster.url()))
    const surroundings = { cwd: path, env: { DATABASE_URL: url } }
    expect((await petstore(['keys', 'create', '--name', 'till'], surroundings)).exitCode).toBe(0)
    const sql = stack.use(new SQL(url, { max: 1 }))
    await sql.unsafe('BEGIN')
    await sql.unsafe(lock)
    // Another connection: pg_stat_activity does not change within a transaction.
    const watching = stack.use(new SQL(url, { max: 1 }))
    const sessionsAre = (what: string, probe: (waits: readonly string[]) => boolean) =>
      until(what, async () => {
        const found = await watching.unsafe<{ wait_event_type: string }[]>(sessions)
        return probe(found.map(row => row.wait_event_type)) || undefined
      })
    const owned = stack.move()
    return {
      path,
      /** Runs a command until it waits for the lock. */
      async waiting(args: readonly string[], input = '') {
        const child = spawnPetstore(args, surroundings, input)
        owned.defer(async () => {
          child.kill('SIGKILL')
          await child.exited
        })
        await sessionsAre('it to wait', waits => waits.includes('Lock'))
        return child
      },
      /** Releases the lock and waits until the program's sessions have ended. */
      async release() {
        await sql.unsafe('ROLLBACK')
        await sessionsAre('its session to end', waits => waits.length === 0)
      },
      exported: () => petstore(['export'], surroundings),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    }
  }

  /** Sends the signal, waits for exit code 1 and returns the text on stderr. */
  async function interrupted(child: ReturnType<typeof spawnPetstore>, signal: 'SIGINT' | 'SIGTERM', msMax: number) {
    child.kill(signal)
    const late = Bun.sleep(msMax).then(() => 'it runs on')
    expect(await Promise.race([child.exited, late])).toBe(1)
    expect(await child.stdout.text()).toBe('')
    const stderr = await child.stderr.text()
    expect(stderr).not.toMatch(/\n\s+at /)
    return stderr
  }

  test.each(['pet_ids', 'pets'])(
    'an export that waits for the table %s is ended by SIGINT and leaves no file, although the server is frozen',
    async table => {
      await using store = await lockedStore(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
      const child = await store.waiting(['export', 'out.ndjson'])
      expect(readdirSync(store.path)).toEqual([expect.stringMatching(/^out\.ndjson\.partial-/)])
      cluster.freeze()
      try {
        const stderr = await interrupted(child, 'SIGINT', 6_000)
        expect(stderr).toEndWith('petstore: Interrupted: out.ndjson was not created\n')
        expect(readdirSync(store.path)).toEqual([])
      } finally {
        cluster.thaw()
      }
    },
  )

  test('an import that waits for a lock is ended by SIGTERM and adds nothing', async () => {
    await using store = await lockedStore('SELECT last_id FROM pet_ids FOR UPDATE')
    const child = await store.waiting(['import', '-'], animalLines(3))
    const stderr = await interrupted(child, 'SIGTERM', 8_000)
    expect(stderr).toMatch(/\npetstore: .*(nothing was imported|check before you import again)\n$/)
    await store.release()
    expect(await store.exported()).toMatchObject({ exitCode: 0, stdout: '' })
  })
})
