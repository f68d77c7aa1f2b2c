import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
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
import {
  loggedBy,
  pasteCurl,
  petstore,
  projectFolder,
  startServer,
  temporaryFolder,
  testMsMax,
  until,
} from '../support/process.ts'
import { animalLines } from '../support/workplace.ts'

setDefaultTimeout(testMsMax)

const outsideKey = 'a-key-from-outside-0123456789'
const rex = { method: 'POST', body: '{"name":"Rex","categoryId":9223372036854775807}' }

/** The address as messages show it: without user and password. */
const placeOf = ({ url }: TestDatabase) => url.replace(/\/\/[^@]*@/, '//').replace(/\?.*/, '')

describeWithPostgres('petstore on PostgreSQL', () => {
  test('the first start creates the tables and shows a key that works when pasted; the second shows none', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: database.url } }
    await using first = await startServer(surroundings)
    const [, key = ''] = /^The first API key, shown only this once: (pets_[0-9A-Za-z]{36})$/m.exec(first.stdout) ?? []
    expect(await pasteCurl(first, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
    expect((await first.fetch('/pets', key, rex)).status).toBe(201)
    const ended = await first.stop('SIGTERM')
    expect(ended.exitCode).toBe(0)
    expect(loggedBy(ended)).toEqual(['info Stopping'])

    await using second = await startServer(surroundings)
    expect(second.stdout).not.toMatch(/first API key|pets_\w{36}/)
    expect(second.stdout).toContain('keys create --name')
    const response = await second.fetch('/pets', key)
    expect(await response.text()).toBe('[{"id":1,"name":"Rex","categoryId":9223372036854775807}]')
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('only one of four concurrent first starts shows a key', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: database.url } }
    const servers = await Promise.all(Array.from({ length: 4 }, () => startServer(surroundings)))
    try {
      const shown = servers.flatMap(({ stdout }) => /pets_\w{36}/.exec(stdout)?.[0] ?? [])
      expect(shown).toHaveLength(1)
      for (const server of servers) expect((await server.fetch('/pets', shown[0] ?? '')).status).toBe(200)
    } finally {
      for (const server of servers) await server[Symbol.asyncDispose]()
    }
  })

  test('npm start shows the address without user and password', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const url = database.url.replace(/\/\/([^:@]*)(?::[^@]*)?@/, '//$1:hunter2@')
    // A given server checks its own password.
    const DATABASE_URL = process.env['PETSTORE_TEST_POSTGRES_URL'] ? database.url : url
    const env = { PORT: '0', DATABASE_URL }
    await using server = await startServer({ command: ['npm', 'start'], cwd: projectFolder, env })
    expect(server.stdout).toContain(` serves ${server.url} from ${placeOf(database)}\n`)
    expect(await pasteCurl(server, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
    const { stdout, stderr, exitCode } = await server.stopAll('SIGINT')
    expect(exitCode).toBe(0)
    expect(stdout + stderr).not.toMatch(/hunter2|postgres@/)
  })

  test('keys can be created, listed and revoked while a server runs', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: database.url } }
    const keys = (...args: string[]) => petstore(['keys', ...args], surroundings)
    const none = await keys('list')
    expect(none).toMatchObject({ exitCode: 1, stdout: '' })
    expect(none.stderr).toStartWith(`petstore: There is no store in ${placeOf(database)}`)

    const made = await keys('create', '--name', 'till', '--expires', '90d')
    expect(made.exitCode).toBe(0)
    expect(made.stdout).toMatch(/^pets_[0-9A-Za-z]{36}\n$/)
    expect(made.stderr).toBe(
      `Created a new store at ${placeOf(database)}\nCreated key "till" (read-write) in ${placeOf(database)}. It is shown only once:\n`,
    )
    const key = made.stdout.trim()
    await using server = await startServer(surroundings)
    expect((await server.fetch('/pets', key, rex)).status).toBe(201)
    expect((await keys('revoke', 'till')).exitCode).toBe(0)
    const status = async () => (await server.fetch('/pets', key)).status
    await until('the key to be refused', async () => ((await status()) === 401 ? true : undefined), 5_000)
    const [till] = JSON.parse((await keys('list', '--json')).stdout)
    expect(till).toMatchObject({ name: 'till', revokedAt: expect.any(String) })
  })

  test('backup is refused, and the message names the alternatives', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const ended = await petstore(['backup', 'copy.db', '--database-url', database.url], { cwd: folder.path })
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^petstore: Cannot back up PostgreSQL: [^\n]*pg_dump[^\n]*export[^\n]*\n$/)
    expect(readdirSync(folder.path)).toEqual([])
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

  test('--read-url and --database-pool serve the same catalogue', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const env = { DATABASE_URL: database.url, PETSTORE_API_KEY: outsideKey }
    const args = ['serve', '--port', '0', '--read-url', database.url, '--database-pool', '1']
    await using server = await startServer({ cwd: folder.path, env, args })
    for (let i = 0; i < 5; i++) expect((await server.fetch('/pets', outsideKey, rex)).status).toBe(201)
    const all = await Promise.all(Array.from({ length: 50 }, () => server.fetch('/pets', outsideKey)))
    for (const answer of all) expect(await answer.json()).toHaveLength(5)
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
        const { PATH = '' } = process.env
        const child = Bun.spawn([join(projectFolder, 'bin/petstore'), ...args], {
          cwd: path,
          env: { PATH, ...surroundings.env },
          stdio: [Buffer.from(input), 'pipe', 'pipe'],
        })
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

  /** Sends the signal, waits for exit code 1 and returns the output. */
  async function interrupted(
    child: Bun.Subprocess<Buffer, 'pipe', 'pipe'>,
    signal: 'SIGINT' | 'SIGTERM',
    msMax: number,
  ) {
    child.kill(signal)
    const late = Bun.sleep(msMax).then(() => 'it runs on')
    expect(await Promise.race([child.exited, late])).toBe(1)
    return { stdout: await child.stdout.text(), stderr: await child.stderr.text() }
  }

  test.each([
    ['pet_ids', 'SIGINT'],
    ['pets', 'SIGTERM'],
  ] as const)(
    'an export that waits for the table %s is ended by %s and leaves no file, although the server is frozen',
    async (table, signal) => {
      await using store = await lockedStore(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
      const child = await store.waiting(['export', 'out.ndjson'])
      expect(readdirSync(store.path)).toEqual([`out.ndjson.partial-${child.pid}`])
      cluster.freeze()
      try {
        const { stdout, stderr } = await interrupted(child, signal, 6_000)
        expect(stdout).toBe('')
        expect(stderr).toEndWith('petstore: Interrupted: out.ndjson was not created\n')
        expect(stderr).not.toMatch(/\n\s+at /)
        expect(readdirSync(store.path)).toEqual([])
      } finally {
        cluster.thaw()
      }
    },
  )

  test('an import that waits for a lock is ended by SIGTERM and adds nothing', async () => {
    await using store = await lockedStore('SELECT last_id FROM pet_ids FOR UPDATE')
    const child = await store.waiting(['import', '-'], animalLines(3))
    const { stdout, stderr } = await interrupted(child, 'SIGTERM', 8_000)
    expect(stdout).toBe('')
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(
      /^petstore: .*(nothing was imported|check before you import again)$/,
    )
    expect(stderr).not.toMatch(/\n\s+at /)
    await store.release()
    expect(await store.exported()).toMatchObject({ exitCode: 0, stdout: '' })
  })
})
