import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { SQL } from 'bun'
import {
  ask,
  type Cluster,
  describeWithOwnPostgres,
  newDatabase,
  own,
  postgresPrograms,
  startCluster,
} from '../support/postgres.ts'
import { loggedBy, petstore, startServer, temporaryFolder, testMsMax, until } from '../support/process.ts'
import { hasOpenssl, makeCertificate, spawnPetstore } from './child.ts'

setDefaultTimeout(testMsMax)

const key = 'a-key-from-outside-0123456789'
const password = 'hunter2-s3cret'
const unreachable = `postgres://somebody:${password}@127.0.0.1:1/pets`

/** Starts a server that cannot start and returns the one line on stderr. */
async function refusedLine(databaseUrl: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  using folder = temporaryFolder()
  const surroundings = { cwd: folder.path, env: { PORT: '0', DATABASE_URL: databaseUrl, ...env }, waitMs: 10_000 }
  const ended = await petstore(['serve'], surroundings)
  expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
  expect(ended.stderr).toMatch(/^petstore: [^\n]+\n$/)
  expect(ended.stderr).not.toMatch(/hunter2|somebody|\.ts:/)
  return ended.stderr
}

describe('serve reports in one line', () => {
  test('two hosts that do not answer', async () => {
    const line = await refusedLine(`postgres://somebody:${password}@127.0.0.1:1,nowhere.invalid:2/pets`)
    for (const text of ['does not answer', '127.0.0.1:1', 'nowhere.invalid:2']) expect(line).toContain(text)
  })

  test.each<[string, (socket: Bun.Socket) => void]>([
    ['closes every connection', socket => socket.end()],
    ['never answers', () => {}],
    ['speaks SSH', socket => void socket.write('SSH-2.0-OpenSSH_9.6\r\n')],
    ['speaks HTTP', socket => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ])('a program that %s', async (_, open) => {
    using other = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { open, data() {} } })
    const line = await refusedLine(`postgres://somebody:${password}@127.0.0.1:${other.port}/pets`)
    expect(line).toContain(`127.0.0.1:${other.port}`)
  })
})

describe('--wait-for-database', () => {
  const waiting = (time: string, url: string) => ['serve', '--wait-for-database', time, '--database-url', url]

  test('of 1s ends with exit code 1 after about a second if no database answers', async () => {
    using folder = temporaryFolder()
    const startMs = performance.now()
    const ended = await petstore(waiting('1s', unreachable), { cwd: folder.path, env: { PORT: '0' } })
    expect(performance.now() - startMs).toBeWithin(1_000, 6_000)
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    // One line when the retries begin and one when they end.
    expect(loggedBy(ended)).toEqual([expect.stringMatching(/^error Cannot open the store .*; retrying for 1 s$/)])
    expect(ended.stderr).toMatch(/^.+\npetstore: Cannot open the store postgres:\/\/127\.0\.0\.1:1\/pets: .+\n$/)
    expect(ended.stderr).not.toMatch(/hunter2|somebody/)
  })

  test.each([
    ['an invalid address', 'postgres://127.0.0.1:1/pets?sslmode=maybe', 2],
    ['a folder without write permission', 'sqlite:/sys/petstore.db', 1],
  ])('does not retry because of %s', async (_, url, exitCode) => {
    using folder = temporaryFolder()
    const surroundings = { cwd: folder.path, env: { PORT: '0' }, waitMs: 10_000 }
    expect((await petstore(waiting('60s', url), surroundings)).exitCode).toBe(exitCode)
  })

  test.each(['SIGTERM', 'SIGINT'] as const)('is ended by %s at once, with exit code 0', async signal => {
    using folder = temporaryFolder()
    await using child = spawnPetstore(waiting('60s', unreachable), { cwd: folder.path })
    const [beginning, all] = child.stderr.tee()
    for await (const text of beginning.pipeThrough(new TextDecoderStream())) {
      if (text.includes('retrying for 60 s')) break
    }
    child.kill(signal)
    expect(await Promise.race([child.exited, Bun.sleep(2_000)])).toBe(0)
    expect(await child.stdout.text()).toBe('')
    expect((await new Response(all).text()).trimEnd().split('\n')).toHaveLength(1)
  })
})

/** Users other than the administrator need a password. */
async function requirePasswords(cluster: Cluster): Promise<void> {
  await using sql = new SQL(cluster.url(), { max: 1 })
  const [file] = await sql.unsafe<{ setting: string }[]>("SELECT setting FROM pg_settings WHERE name = 'hba_file'")
  const rules = "'host all postgres 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 scram-sha-256'"
  await sql.unsafe(`COPY (SELECT unnest(ARRAY[${rules}])) TO '${file?.setting}'`)
  await sql.unsafe('SELECT pg_reload_conf()')
}

const advisoryWaits = `
  SELECT 1 FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database() AND wait_event = 'advisory'`

describeWithOwnPostgres('serve on PostgreSQL', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
    await ask(cluster.url(), `CREATE ROLE somebody LOGIN PASSWORD '${password}'`)
    await ask(cluster.url(), 'CREATE DATABASE pets')
    await requirePasswords(cluster)
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  test.each([
    ['a wrong password', 'somebody:hunter2-wrong', 'pets', /pets: .*DATABASE_URL.*\(28P01\)/],
    ['no password', 'somebody', 'pets', /pets: .*DATABASE_URL.*\(28P01\)/],
    ['an unknown user', 'somebody-else:hunter2-wrong', 'pets', /pets: .*DATABASE_URL.*\(28P01\)/],
    ['a database that does not exist', `somebody:${password}`, 'nothing', /nothing: .*\(3D000\)/],
    ['a server without TLS if it is required', `somebody:${password}`, 'pets?sslmode=require', /pets: .*sslmode/],
  ])('refuses %s', async (_, credential, database, message) => {
    const line = await refusedLine(`postgres://${credential}@${cluster.host}/${database}`)
    expect(line).toStartWith(`petstore: Cannot open the store postgres://${cluster.host}/`)
    expect(line).toMatch(message)
  })

  test('names a replica that does not answer', async () => {
    const line = await refusedLine(cluster.url(), { PETSTORE_READ_URL: unreachable })
    expect(line).toMatch(/\b127\.0\.0\.1:1\b/)
  })

  test('waits for a PostgreSQL server that starts later', async () => {
    using folder = temporaryFolder()
    await cluster.stop('SIGINT')
    const starting = Bun.sleep(1_000).then(() => cluster.start())
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: cluster.url() }
    const args = ['serve', '--port', '0', '--wait-for-database', '30s']
    await using server = await startServer({ cwd: folder.path, env, args })
    await starting
    expect((await server.fetch('/pets', key)).status).toBe(200)
    const ended = await server.stop('SIGTERM')
    expect(loggedBy(ended)).toEqual([expect.stringMatching(/does not answer.*; retrying for 30 s$/), 'info Stopping'])
  })

  test('SIGTERM ends it at once, without a key, while another instance creates the tables', async () => {
    using folder = temporaryFolder()
    await using database = await newDatabase(cluster.url())
    await using sql = new SQL(database.url, { max: 1 })
    await sql.unsafe(`SELECT pg_advisory_lock(${0x50455453})`)
    const env = { PORT: '0', DATABASE_URL: database.url }
    await using child = spawnPetstore(['serve'], { cwd: folder.path, env })
    await until('the server to wait', async () => (await sql.unsafe(advisoryWaits)).length > 0 || undefined)
    child.kill('SIGTERM')
    const exitCode = await Promise.race([child.exited, Bun.sleep(2_000)])
    child.kill('SIGKILL')
    expect([exitCode, await child.stdout.text(), await child.stderr.text()]).toEqual([0, '', ''])
  })
})

describeWithOwnPostgres('serve on PostgreSQL with a self-signed certificate', () => {
  describe.skipIf(!hasOpenssl)('TLS', () => {
    const folder = temporaryFolder()
    const certificate = join(folder.path, 'cert.pem')
    const trusted = { NODE_EXTRA_CA_CERTS: certificate }
    let cluster: Cluster

    beforeAll(async () => {
      await makeCertificate(folder.path)
      const programs = postgresPrograms()
      if (programs instanceof Error) throw programs
      own(programs, folder.path)
      const files = [`ssl_cert_file = '${certificate}'`, `ssl_key_file = '${join(folder.path, 'key.pem')}'`]
      cluster = await startCluster(['ssl = on', ...files])
    }, testMsMax)
    afterAll(async () => {
      await cluster[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    })

    const urlWith = (sslmode: string, name = '127.0.0.1') =>
      `postgres://postgres:${password}@${cluster.host.replace('127.0.0.1', name)}/postgres?sslmode=${sslmode}`

    test.each([
      ['verify-full', '127.0.0.1', {}],
      ['verify-ca', '127.0.0.1', {}],
      // The certificate is not for this name.
      ['verify-full', 'localhost', trusted],
    ])('sslmode=%s to %s is refused with %p', async (sslmode, name, env) => {
      expect(await refusedLine(urlWith(sslmode, name), env)).toMatch(/certificate.*NODE_EXTRA_CA_CERTS/)
    })

    test.each([
      ['verify-full', trusted],
      ['verify-ca', trusted],
      ['require', {}],
    ])('sslmode=%s serves over TLS with %p', async (sslmode, env) => {
      using cwd = temporaryFolder()
      const args = ['serve', '--port', '0', '--database-url', urlWith(sslmode)]
      await using server = await startServer({ cwd: cwd.path, env: { PETSTORE_API_KEY: key, ...env }, args })
      expect((await server.fetch('/pets', key)).status).toBe(200)
      await using sql = new SQL(cluster.url(), { max: 1 })
      const connections = await sql.unsafe<{ ssl: boolean }[]>(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'petstore'",
      )
      expect(new Set(connections.map(({ ssl }) => ssl))).toEqual(new Set([true]))
    })
  })
})
