import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { animalLines } from '../support/load.ts'
import { ask, type Cluster, describeWithOwnPostgres, own, startCluster } from '../support/postgres.ts'
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

/** Replaces the lines of pg_hba.conf. */
async function writeRules(cluster: Cluster, ...rules: readonly string[]): Promise<void> {
  await using sql = new SQL(cluster.url(), { max: 1 })
  const [file] = await sql.unsafe<{ setting: string }[]>("SELECT setting FROM pg_settings WHERE name = 'hba_file'")
  const lines = rules.map(rule => `'${rule}'`).join()
  await sql.unsafe(`COPY (SELECT unnest(ARRAY[${lines}])) TO '${file?.setting}'`)
  await sql.unsafe('SELECT pg_reload_conf()')
}

const sessions = `
  SELECT wait_event_type FROM pg_stat_activity
  WHERE application_name LIKE 'petstore%' AND datname = current_database()`

describeWithOwnPostgres('a PostgreSQL server of its own', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
    await ask(cluster.url(), `CREATE ROLE somebody LOGIN PASSWORD '${password}'`)
    await ask(cluster.url(), 'CREATE DATABASE pets')
    await writeRules(cluster, 'host all postgres 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 scram-sha-256')
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

  test.each([
    ['a wrong password', 'somebody:hunter2-wrong', 'pets', /pets: .* \(28P01\); .*DATABASE_URL/],
    ['a database that does not exist', `somebody:${password}`, 'nothing', /nothing: .*\(3D000: .*\)/],
    ['a server without TLS if it is required', `somebody:${password}`, 'pets?sslmode=require', /pets: .*sslmode/],
  ])('serve reports %s', async (_, credential, database, message) => {
    const line = await refusedLine(`postgres://${credential}@${cluster.host}/${database}`)
    expect(line).toStartWith(`petstore: Cannot open the store postgres://${cluster.host}/`)
    expect(line).toMatch(message)
  })

  test('serve starts if the second address for reads does not answer, and logs it', async () => {
    await using database = await cluster.newDatabase()
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: database.url, PETSTORE_READ_URL: unreachable }
    await using server = await startServer({ env })
    expect((await server.fetch('/pets', key)).status).toBe(200)
    const left = /^error Reading from 127\.0\.0\.1:\d+, because 127\.0\.0\.1:1 fails: /
    expect(loggedBy(await server.stop('SIGTERM'))).toContainEqual(expect.stringMatching(left))
  })

  test('serve names the right that a role lacks; commands that only read work with it', async () => {
    await using database = await cluster.newDatabase()
    using folder = temporaryFolder()
    const owner = { cwd: folder.path, env: { DATABASE_URL: database.url } }
    await petstore(['keys', 'create', '--name', 'till'], owner)
    await ask(database.url, 'GRANT SELECT ON ALL TABLES IN SCHEMA public TO somebody')
    const url = database.url.replace('postgres@', `somebody:${password}@`)
    const line = await refusedLine(url)
    expect(line).toMatch(/: the user lacks .*\bINSERT, UPDATE, DELETE on pets\b.*; GRANT it .*\n$/)
    const reader = { ...owner, env: { DATABASE_URL: url } }
    for (const args of [['export'], ['keys', 'list']])
      expect(await petstore(args, reader)).toMatchObject({ exitCode: 0 })
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

  /** A command on a new database, which waits because another program holds a lock. Only `serve` finds no tables there. */
  async function startWaiting(lock: string, args: readonly string[], input = '') {
    await using stack = new AsyncDisposableStack()
    const { path } = stack.use(temporaryFolder())
    const { url } = stack.use(await cluster.newDatabase())
    const surroundings = { cwd: path, env: { DATABASE_URL: url } }
    if (args[0] !== 'serve') await petstore(['keys', 'create', '--name', 'till'], surroundings)
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
    const child = stack.use(spawnPetstore(args, surroundings))
    child.stdin.write(input)
    await child.stdin.end()
    await sessionsAre('it to wait', waits => waits.includes('Lock'))
    return Object.assign(stack.move(), {
      /** Sends SIGTERM and waits for the end, while the server is frozen: the command cannot wait for it. */
      async interrupt() {
        cluster.freeze()
        try {
          child.kill('SIGTERM')
          const [exitCode, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
          expect(stderr).not.toMatch(/\n\s+at /)
          return { exitCode, stdout, stderr }
        } finally {
          cluster.thaw()
        }
      },
      kill: () => child.kill('SIGKILL'),
      sessionsEnd: () => sessionsAre('its session to end', waits => waits.length === 0),
      /** Releases the lock, waits until the command's sessions have ended, and exports the store. */
      async exported() {
        await sql.unsafe('ROLLBACK')
        await this.sessionsEnd()
        return await petstore(['export'], surroundings)
      },
    })
  }

  test('an import that waits for a lock is ended by SIGTERM and adds nothing', async () => {
    const lock = 'SELECT petstore_lock_ids()'
    await using waiting = await startWaiting(lock, ['import', '-'], animalLines(3))
    const stderr = expect.stringMatching(/\npetstore: Interrupted: .*; check before you import again\n$/)
    expect(await waiting.interrupt()).toEqual({ exitCode: 1, stdout: '', stderr })
    expect(await waiting.exported()).toMatchObject({ exitCode: 0, stdout: '' })
  })

  test('an import that is killed while it waits for a lock leaves no session waiting', async () => {
    await using waiting = await startWaiting('SELECT petstore_lock_ids()', ['import', '-'], animalLines(3))
    waiting.kill()
    await waiting.sessionsEnd()
    expect(await waiting.exported()).toMatchObject({ exitCode: 0, stdout: '' })
  })

  test('a server that waits while another instance creates the tables is ended by SIGTERM, without a key', async () => {
    await using waiting = await startWaiting(`SELECT pg_advisory_lock(${0x50455453})`, ['serve', '--port', '0'])
    const { stderr, ...ended } = await waiting.interrupt()
    expect([ended, loggedBy({ stderr })]).toEqual([{ exitCode: 0, stdout: '' }, ['info Stopping']])
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
      ['verify-full', '127.0.0.1', {}, /certificate is not trusted \(.*\); set NODE_EXTRA_CA_CERTS/],
      ['verify-ca', '127.0.0.1', {}, /certificate is not trusted \(.*\); set NODE_EXTRA_CA_CERTS/],
      [
        'verify-full',
        'localhost',
        trusted,
        /certificate is for another host name \(.*\); use that name in DATABASE_URL/,
      ],
    ])('sslmode=%s to %s is refused with %p', async (sslmode, name, env, problem) => {
      expect(await refusedLine(urlWith(sslmode, name), env)).toMatch(problem)
    })

    test('a server that demands TLS of a client without it is named as the reason', async () => {
      await ask(cluster.url(), 'CREATE ROLE somebody LOGIN')
      await writeRules(cluster, 'hostssl all somebody 127.0.0.1/32 trust', 'host all postgres 127.0.0.1/32 trust')
      const line = await refusedLine(`postgres://somebody@${cluster.host}/postgres`)
      expect(line).toMatch(/ \(28000\); .*pg_hba\.conf.* set sslmode=require in DATABASE_URL if .* TLS$/m)
    })

    test.each([
      ['verify-full', trusted],
      ['verify-ca', trusted],
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
