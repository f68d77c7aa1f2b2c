import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { animalLines } from '../support/load.ts'
import { type Cluster, describeWithOwnPostgres, own, startCluster } from '../support/postgres.ts'
import {
  loggedBy,
  petstore,
  program,
  refusal,
  Server,
  startServer,
  temporaryFolder,
  until,
} from '../support/process.ts'
import { hasOpenssl, makeCertificate, spawnPetstore } from './child.ts'

const key = 'a-key-from-outside-0123456789'
const password = 'hunter2-s3cret'
const unreachable = `postgres://somebody:${password}@127.0.0.1:1/pets`

/** Starts a server that cannot start and returns the one line on stderr. */
async function refusedLine(databaseUrl: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  using folder = temporaryFolder()
  const surroundings = { cwd: folder.path, env: { PORT: '0', DATABASE_URL: databaseUrl, ...env } }
  const stderr = await refusal(['serve'], surroundings)
  expect(stderr).toMatch(/^petstore: [^\n]+\n$/)
  expect(stderr).not.toMatch(/hunter2|somebody/)
  return stderr
}

// Each waits for the time limit of a connection.
test.concurrent.each<[string, (socket: Bun.Socket) => void]>([
  ['never answers', () => {}],
  ['speaks HTTP', socket => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
])('serve reports in one line a program that %s', async (_, open) => {
  using other = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { open, data() {} } })
  const line = await refusedLine(`postgres://somebody:${password}@127.0.0.1:${other.port}/pets`)
  expect(line).toContain(`127.0.0.1:${other.port}`)
})

const isWaiting = `
  SELECT bool_or(wait_event_type = 'Lock') AS waits FROM pg_stat_activity
  WHERE application_name LIKE 'petstore%' AND datname = current_database()`

describeWithOwnPostgres('a PostgreSQL server of its own', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  test('commands and the server name the database without the user and the password, and leave no file', async () => {
    using folder = temporaryFolder()
    await using database = await cluster.newDatabase()
    const place = database.url.replace('postgres@', '')
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: database.url.replace('@', `:${password}@`) } }
    const none = await refusal(['keys', 'list'], surroundings)
    expect(none).toStartWith(`petstore: Cannot open the store ${place}: it has no tables; `)
    const created = await petstore(['keys', 'create', '--name', 'till'], surroundings)
    expect(created.stderr).toStartWith(
      `Created a new store at ${place}\nCreated key "till" (read-write, never expires) in ${place}. `,
    )
    await using server = await startServer(surroundings)
    expect(server.stdout).toContain(` serves ${server.url} from ${place}\n`)
    const printed = [created, await server.stop('SIGTERM')].map(({ stdout, stderr }) => stdout + stderr)
    expect([none, ...printed].join()).not.toMatch(/hunter2|postgres@/)
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('serve starts if the second address for reads does not answer, and logs it', async () => {
    await using database = await cluster.newDatabase()
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: database.url, PETSTORE_READ_URL: unreachable }
    await using server = await startServer({ env })
    expect((await server.fetch('/pets', key)).status).toBe(200)
    const left = /^error Reading from 127\.0\.0\.1:\d+, because 127\.0\.0\.1:1 fails: /
    expect(loggedBy(await server.stop('SIGTERM'))).toContainEqual(expect.stringMatching(left))
  })

  test('serve waits for a server that starts later', async () => {
    await cluster.stop('SIGINT')
    using folder = temporaryFolder()
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: cluster.url() }
    const command = [program, 'serve', '--port', '0', '--wait-for-database', '300s']
    await using server = new Server(command, { cwd: folder.path, env })
    await server.says('that it retries', () => server.stderr.includes('retrying') || undefined)
    await cluster.start()
    server.url = await server.says('the address on stdout', () => server.greetedAt())
    expect((await server.fetch('/pets', key)).status).toBe(200)
    const ended = await server.stop('SIGTERM')
    const retrying = expect.stringMatching(/ no PostgreSQL server answers.*; retrying for 300 s$/)
    expect(loggedBy(ended)).toEqual([retrying, 'info Stopping'])
  })

  /** What a command prints that is ended by a signal while another program holds a lock and the server is frozen. */
  async function endWaiting(signal: NodeJS.Signals, url: string, lock: string, args: readonly string[], input = '') {
    using folder = temporaryFolder()
    await using sql = new SQL(url, { max: 1 })
    await sql.unsafe('BEGIN')
    await sql.unsafe(lock)
    // Another connection: pg_stat_activity does not change within a transaction.
    await using watching = new SQL(url, { max: 1 })
    const waits = async () => (await watching.unsafe<{ waits: boolean | null }[]>(isWaiting))[0]?.waits
    await using child = spawnPetstore(args, { cwd: folder.path, env: { DATABASE_URL: url } })
    child.stdin.write(input)
    await child.stdin.end()
    await until('it to wait', async () => (await waits()) || undefined)
    cluster.freeze()
    child.kill(signal)
    const ended = Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
    const [exitCode, stdout, stderr] = await ended.finally(() => cluster.thaw())
    await until('its session to end', async () => (await waits()) === null || undefined)
    return { exitCode, stdout, stderr }
  }

  test.each([
    ['SIGTERM', 1, /\npetstore: Interrupted: .*; check before you import again\n$/],
    ['SIGKILL', 137, /^/],
  ] as const)(
    'an import that gets %s while it waits for a lock adds nothing and leaves no session',
    async (signal, exitCode, problem) => {
      await using database = await cluster.newDatabase()
      const stores = { cwd: '/', env: { DATABASE_URL: database.url } }
      await petstore(['keys', 'create', '--name', 'till'], stores)
      const lock = 'SELECT petstore_lock_ids()'
      const ended = await endWaiting(signal, database.url, lock, ['import', '-'], animalLines(3))
      expect(ended).toEqual({ exitCode, stdout: '', stderr: expect.stringMatching(problem) })
      expect(await petstore(['export'], stores)).toMatchObject({ exitCode: 0, stdout: '' })
    },
  )

  test('a server that waits while another instance creates the tables is ended by SIGTERM, without a key', async () => {
    await using database = await cluster.newDatabase()
    const lock = `SELECT pg_advisory_lock(${0x50455453})`
    const ended = await endWaiting('SIGTERM', database.url, lock, ['serve', '--port', '0'])
    expect(ended).toMatchObject({ exitCode: 0, stdout: '' })
    expect(loggedBy(ended)).toEqual(['info Stopping'])
  })
})

if (hasOpenssl) {
  describeWithOwnPostgres('serve on PostgreSQL with a self-signed certificate', () => {
    const folder = temporaryFolder()
    const certificate = join(folder.path, 'cert.pem')
    const trusted = { NODE_EXTRA_CA_CERTS: certificate }
    let cluster: Cluster

    beforeAll(async () => {
      await makeCertificate(folder.path)
      own(folder.path)
      const files = [`ssl_cert_file = '${certificate}'`, `ssl_key_file = '${join(folder.path, 'key.pem')}'`]
      cluster = await startCluster(['ssl = on', ...files])
    })
    afterAll(async () => {
      await cluster[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    })

    const urlWith = (sslmode: string, name = '127.0.0.1') =>
      `postgres://postgres:${password}@${cluster.host.replace('127.0.0.1', name)}/postgres?sslmode=${sslmode}`

    test.each([
      ['127.0.0.1', {}, /certificate is not trusted \(.*\); set NODE_EXTRA_CA_CERTS/],
      ['localhost', trusted, /certificate is for another host name \(.*\); use that name in DATABASE_URL/],
    ])('sslmode=verify-full to %s is refused with %p', async (name, env, problem) => {
      expect(await refusedLine(urlWith('verify-full', name), env)).toMatch(problem)
    })

    test.each([
      ['verify-full', trusted],
      ['require', {}],
    ])('sslmode=%s serves over TLS with %p', async (sslmode, env) => {
      const args = ['serve', '--port', '0', '--database-url', urlWith(sslmode)]
      await using server = await startServer({ env: { PETSTORE_API_KEY: key, ...env }, args })
      expect((await server.fetch('/pets', key)).status).toBe(200)
      await using sql = new SQL(cluster.url(), { max: 1 })
      const connections = await sql.unsafe<{ ssl: boolean }[]>(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'petstore'",
      )
      expect(new Set(connections.map(({ ssl }) => ssl))).toEqual(new Set([true]))
    })
  })
}
