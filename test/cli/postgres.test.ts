import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { animalLines } from '../faults/load.ts'
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

const isWaiting = `
  SELECT bool_or(wait_event_type = 'Lock') AS waits FROM pg_stat_activity
  WHERE application_name LIKE 'petstore%' AND datname = current_database()`

describeWithOwnPostgres('a PostgreSQL server of its own', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  test('commands and the server name the database without the password, leave no file, and need no second address for reads', async () => {
    using folder = temporaryFolder()
    await using database = await cluster.newDatabase()
    const place = database.url.replace('postgres@', '')
    const env = { DATABASE_URL: database.url.replace('@', `:${password}@`) }
    const surroundings = { cwd: folder.path, env: { ...env, PETSTORE_READ_URL: unreachable } }
    const none = await refusal(['keys', 'list'], { cwd: folder.path, env })
    expect(none).toContain(`${place}: `)
    const created = await petstore(['keys', 'create', '--name', 'till'], { cwd: folder.path, env })
    expect(created.stderr).toStartWith(`Created a new store at ${place}\n`)
    await using server = await startServer(surroundings)
    expect(server.stdout).toContain(` serves ${server.url} from ${place}\n`)
    expect((await server.fetch('/pets', created.stdout.trim())).status).toBe(200)
    const ended = await server.stop('SIGTERM')
    expect(loggedBy(ended)).toContainEqual(expect.stringMatching(/^error .*127\.0\.0\.1:1 /))
    const printed = [created, ended].map(({ stdout, stderr }) => stdout + stderr)
    expect([none, ...printed].join()).not.toMatch(/hunter2|postgres@|somebody/)
    expect(readdirSync(folder.path)).toEqual([])
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
    expect(loggedBy(ended)).toEqual([expect.stringContaining('; retrying'), 'info Stopping'])
  })

  test.each([
    ['an import', 'SIGTERM', 1, 'import -', 'petstore_lock_ids()'],
    ['an import', 'SIGKILL', 137, 'import -', 'petstore_lock_ids()'],
    ['a server without tables', 'SIGTERM', 0, 'serve --port 0', `pg_advisory_lock(${0x50455453})`],
  ] as const)(
    '%s that gets %s while it waits for a lock, and PostgreSQL hangs, ends with exit code %d, without a change or a session',
    async (_, signal, exitCode, line, lock) => {
      using folder = temporaryFolder()
      await using database = await cluster.newDatabase()
      const surroundings = { cwd: folder.path, env: { DATABASE_URL: database.url } }
      const isImport = line === 'import -'
      if (isImport) await petstore(['keys', 'create', '--name', 'till'], surroundings)
      await using sql = new SQL(database.url, { max: 1 })
      await sql.unsafe('BEGIN')
      await sql.unsafe(`SELECT ${lock}`)
      // Another connection: pg_stat_activity does not change within a transaction.
      await using watching = new SQL(database.url, { max: 1 })
      const waits = async () => (await watching.unsafe<{ waits: boolean | null }[]>(isWaiting))[0]?.waits
      await using child = spawnPetstore(line.split(' '), surroundings)
      child.stdin.write(animalLines(3))
      await child.stdin.end()
      await until('it to wait', async () => (await waits()) || undefined)
      cluster.freeze()
      child.kill(signal)
      const ended = Promise.all([child.exited, child.stdout.text()])
      expect(await ended.finally(() => cluster.thaw())).toEqual([exitCode, ''])
      await until('its session to end', async () => (await waits()) === null || undefined)
      await sql.unsafe('ROLLBACK')
      expect(await petstore(['export'], surroundings)).toMatchObject({ exitCode: isImport ? 0 : 1, stdout: '' })
    },
  )
})

describeWithOwnPostgres('PostgreSQL with a self-signed certificate', () => {
  test.skipIf(!hasOpenssl)(
    'sslmode=require serves over TLS, and verify-full only with a certificate that fits',
    async () => {
      using folder = temporaryFolder()
      await makeCertificate(folder.path)
      own(folder.path)
      const certificate = join(folder.path, 'cert.pem')
      const files = [`ssl_cert_file = '${certificate}'`, `ssl_key_file = '${join(folder.path, 'key.pem')}'`]
      await using cluster = await startCluster(['ssl = on', ...files])
      const trusted = { NODE_EXTRA_CA_CERTS: certificate }
      const urlWith = (sslmode: string, host = cluster.host) =>
        `postgres://postgres:${password}@${host}/postgres?sslmode=${sslmode}`

      expect(await refusedLine(urlWith('verify-full'))).toContain('NODE_EXTRA_CA_CERTS')
      const otherName = urlWith('verify-full', cluster.host.replace('127.0.0.1', 'localhost'))
      expect(await refusedLine(otherName, trusted)).toContain('host name')

      for (const [sslmode, env] of [
        ['verify-full', trusted],
        ['require', {}],
      ] as const) {
        const args = ['serve', '--port', '0', '--database-url', urlWith(sslmode)]
        await using server = await startServer({ env: { PETSTORE_API_KEY: key, ...env }, args })
        expect((await server.fetch('/pets', key)).status).toBe(200)
        await using sql = new SQL(cluster.url(), { max: 1 })
        const connections = await sql.unsafe<{ ssl: boolean }[]>(
          "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'petstore'",
        )
        expect(new Set(connections.map(({ ssl }) => ssl))).toEqual(new Set([true]))
      }
    },
  )
})
