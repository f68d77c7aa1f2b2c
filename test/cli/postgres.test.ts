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
import { loggedBy, petstore, startServer, temporaryFolder, testMsMax, until } from '../support/process.ts'
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
  test('keys can be created, listed and revoked while a server runs, and no output shows a password', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: withPassword(database) } }
    const place = placeOf(database)
    const keys = (...args: string[]) => petstore(['keys', ...args], surroundings)
    const none = await keys('list')
    expect(none).toMatchObject({ exitCode: 1, stdout: '' })
    expect(none.stderr).toStartWith(`petstore: There is no store in ${place}`)
    const created = await keys('create', '--name', 'till', '--expires', '90d')
    expect(created.stderr).toStartWith(`Created a new store at ${place}\nCreated key "till" (read-write) in ${place}. `)
    await using server = await startServer(surroundings)
    expect(server.stdout).toContain(` serves ${server.url} from ${place}\n`)
    expect((await server.fetch('/pets', created.stdout.trim(), rex)).status).toBe(201)
    expect((await keys('revoke', 'till')).exitCode).toBe(0)
    const listed = JSON.parse((await keys('list', '--json')).stdout)
    expect(listed).toMatchObject([{ name: 'till', revokedAt: expect.any(String) }])
    const ended = await server.stop('SIGTERM')
    expect(ended.exitCode).toBe(0)
    expect(loggedBy(ended)).toEqual(['info Stopping'])
    const printed = [none, created, ended].map(({ stdout, stderr }) => stdout + stderr)
    expect(printed.join()).not.toMatch(/hunter2|postgres@/)
    expect(readdirSync(folder.path)).toEqual([])
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

  /** A command on an empty store in a new database, which waits because another program holds a lock. */
  async function startWaiting(lock: string, args: readonly string[], input = '') {
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
    const child = stack.use(spawnPetstore(args, surroundings, input))
    await sessionsAre('it to wait', waits => waits.includes('Lock'))
    const owned = stack.move()
    return {
      path,
      /** Sends the signal, waits for exit code 1 and returns the text on stderr. */
      async interrupt(signal: 'SIGINT' | 'SIGTERM', msMax: number) {
        child.kill(signal)
        const exitCode = await Promise.race([child.exited, Bun.sleep(msMax)])
        child.kill('SIGKILL')
        expect([exitCode, await child.stdout.text()]).toEqual([1, ''])
        const stderr = await child.stderr.text()
        expect(stderr).not.toMatch(/\n\s+at /)
        return stderr
      },
      /** Releases the lock, waits until the command's sessions have ended, and exports the store. */
      async exported() {
        await sql.unsafe('ROLLBACK')
        await sessionsAre('its session to end', waits => waits.length === 0)
        return await petstore(['export'], surroundings)
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    }
  }

  test.each(['pet_ids', 'pets'])(
    'an export that waits for the table %s is ended by SIGINT and leaves no file, although the server is frozen',
    async table => {
      await using waiting = await startWaiting(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`, ['export', 'out.ndjson'])
      expect(readdirSync(waiting.path)).toEqual([expect.stringMatching(/^out\.ndjson\.partial-/)])
      cluster.freeze()
      try {
        const stderr = await waiting.interrupt('SIGINT', 6_000)
        expect(stderr).toEndWith('petstore: Interrupted: out.ndjson was not created\n')
        expect(readdirSync(waiting.path)).toEqual([])
      } finally {
        cluster.thaw()
      }
    },
  )

  test('an import that waits for a lock is ended by SIGTERM and adds nothing', async () => {
    const lock = 'SELECT last_id FROM pet_ids FOR UPDATE'
    await using waiting = await startWaiting(lock, ['import', '-'], animalLines(3))
    const stderr = await waiting.interrupt('SIGTERM', 8_000)
    expect(stderr).toMatch(/\npetstore: .*(nothing was imported|check before you import again)\n$/)
    expect(await waiting.exported()).toMatchObject({ exitCode: 0, stdout: '' })
  })
})
