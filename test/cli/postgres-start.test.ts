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
import {
  loggedBy,
  petstore,
  projectFolder,
  run,
  startServer,
  temporaryFolder,
  testMsMax,
  until,
} from '../support/process.ts'

setDefaultTimeout(testMsMax)

const key = 'a-key-from-outside-0123456789'
const password = 'hunter2-s3cret'
const unreachable = `postgres://somebody:${password}@127.0.0.1:1/pets`

/** Starts a server that cannot start and returns the one line on stderr. */
async function refusedLine(databaseUrl: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  using folder = temporaryFolder()
  const surroundings = {
    cwd: folder.path,
    env: { PORT: '0', DATABASE_URL: databaseUrl, ...env },
    waitMs: 10_000,
  }
  const ended = await petstore(['serve'], surroundings)
  expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
  expect(ended.stderr).toMatch(/^petstore: [^\n]+\n$/)
  expect(ended.stderr).not.toMatch(/hunter2|somebody|\.ts:/)
  return ended.stderr
}

/** Users other than the administrator need a password. */
async function requirePasswords(cluster: Cluster): Promise<void> {
  await using sql = new SQL(cluster.url(), { max: 1 })
  const [file] = await sql.unsafe<{ setting: string }[]>("SELECT setting FROM pg_settings WHERE name = 'hba_file'")
  const rules = ['host all postgres 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 scram-sha-256']
  const lines = rules.map(rule => `'${rule}'`).join()
  await sql.unsafe(`COPY (SELECT unnest(ARRAY[${lines}])) TO '${file?.setting}'`)
  await sql.unsafe('SELECT pg_reload_conf()')
}

describe('serve reports in one line', () => {
  test.each([
    ['a port without a server', '127.0.0.1:1'],
    ['a host that does not exist', 'nowhere.invalid'],
    ['two hosts that do not answer', '127.0.0.1:1,nowhere.invalid:2'],
  ])('%s', async (_, hosts) => {
    const line = await refusedLine(`postgres://somebody:${password}@${hosts}/pets`)
    expect(line).toContain('does not answer')
    for (const host of hosts.split(',')) expect(line).toContain(host)
  })

  test.each<[string, (socket: Bun.Socket) => void]>([
    ['closes every connection', socket => socket.end()],
    ['never answers', () => {}],
    ['speaks SSH', socket => void socket.write('SSH-2.0-OpenSSH_9.6\r\n')],
  ])('a program that %s', async (_, open) => {
    using other = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { open, data() {} } })
    const line = await refusedLine(`postgres://somebody:${password}@127.0.0.1:${other.port}/pets`)
    expect(line).toContain(`127.0.0.1:${other.port}`)
  })

  test('a web server', async () => {
    await using web = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('Hello') })
    const line = await refusedLine(`postgres://somebody:${password}@127.0.0.1:${web.port}/pets`)
    expect(line).toContain('PostgreSQL')
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
    const lines = ended.stderr.trimEnd().split('\n')
    expect(lines).toHaveLength(2)
    expect(lines[1]).toMatch(/^petstore: Cannot open the store postgres:\/\/127\.0\.0\.1:1\/pets: /)
    expect(ended.stderr).not.toMatch(/hunter2|somebody|\n\s+at /)
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
    await using child = spawn(waiting('60s', unreachable), folder.path)
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

/** `bin/petstore ARGS`, to be interrupted. */
function spawn(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
  const { PATH = '' } = process.env
  return Bun.spawn([join(projectFolder, 'bin/petstore'), ...args], {
    cwd,
    env: { PATH, PORT: '0', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
}

describeWithOwnPostgres('serve on PostgreSQL', () => {
  let cluster: Cluster
  const as = (credential: string, database = 'pets') => `postgres://${credential}@${cluster.host}/${database}`
  beforeAll(async () => {
    cluster = await startCluster()
    await ask(cluster.url(), `CREATE ROLE somebody LOGIN PASSWORD '${password}'`)
    await ask(cluster.url(), 'CREATE DATABASE pets')
    await requirePasswords(cluster)
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  test.each(['somebody:hunter2-wrong', 'somebody', 'somebody-else:hunter2-wrong'])(
    'refuses a wrong password, no password and an unknown user: %s',
    async credential => {
      const line = await refusedLine(as(credential))
      expect(line).toContain(`Cannot open the store postgres://${cluster.host}/pets: `)
      expect(line).toMatch(/DATABASE_URL.*\(28P01\)/)
    },
  )

  test('refuses a database that does not exist', async () => {
    const line = await refusedLine(as(`somebody:${password}`, 'nothing'))
    expect(line).toMatch(/\/nothing: .*\(3D000\)/)
  })

  test('refuses a server without TLS if TLS is required', async () => {
    const line = await refusedLine(`${as(`somebody:${password}`)}?sslmode=require`)
    expect(line).toContain('sslmode')
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

  test('waits for a database that is created later', async () => {
    using folder = temporaryFolder()
    const creating = Bun.sleep(1_000).then(() => ask(cluster.url(), 'CREATE DATABASE later'))
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: cluster.url('later') }
    const args = ['serve', '--port', '0', '--wait-for-database', '30s']
    await using server = await startServer({ cwd: folder.path, env, args })
    await creating
    expect((await server.fetch('/pets', key)).status).toBe(200)
  })

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s ends it at once, without a key, while another instance creates the tables',
    async signal => {
      using folder = temporaryFolder()
      await using database = await newDatabase(cluster.url())
      await using sql = new SQL(database.url, { max: 1 })
      await sql.unsafe(`SELECT pg_advisory_lock(${0x50455453})`)
      await using child = spawn(['serve'], folder.path, { DATABASE_URL: database.url })
      await until('the server to wait', async () => (await sql.unsafe(advisoryWaits)).length > 0 || undefined)
      child.kill(signal)
      const exitCode = await Promise.race([child.exited, Bun.sleep(2_000)])
      child.kill('SIGKILL')
      expect(exitCode).toBe(0)
      expect([await child.stdout.text(), await child.stderr.text()]).toEqual(['', ''])
    },
  )
})

const advisoryWaits = `
  SELECT 1 FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database() AND wait_event = 'advisory'`

const hasOpenssl = Bun.which('openssl') !== null
if (!hasOpenssl) process.stderr.write('openssl is not installed: the tests of TLS to PostgreSQL are skipped\n')

/** A self-signed certificate for 127.0.0.1. */
async function makeCertificate(cwd: string): Promise<void> {
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=127.0.0.1']
  const name = ['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', 'key.pem', '-out', 'cert.pem']
  const made = await run(['openssl', ...request, ...name], { cwd })
  expect(made.exitCode).toBe(0)
}

describeWithOwnPostgres('serve on PostgreSQL with a self-signed certificate', () => {
  describe.skipIf(!hasOpenssl)('TLS', () => {
    const folder = temporaryFolder()
    const certificate = join(folder.path, 'cert.pem')
    let cluster: Cluster

    beforeAll(async () => {
      await makeCertificate(folder.path)
      const programs = postgresPrograms()
      if (programs instanceof Error) throw programs
      own(programs, folder.path)
      cluster = await startCluster([
        'ssl = on',
        `ssl_cert_file = '${certificate}'`,
        `ssl_key_file = '${join(folder.path, 'key.pem')}'`,
      ])
    }, testMsMax)
    afterAll(async () => {
      await cluster[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    })

    const urlWith = (sslmode: string, host = cluster.host) =>
      `postgres://postgres:${password}@${host}/postgres?sslmode=${sslmode}`

    /** For each connection of the program, whether it is encrypted. */
    async function encrypted(): Promise<readonly boolean[]> {
      await using sql = new SQL(cluster.url(), { max: 1 })
      const rows = await sql.unsafe<{ ssl: boolean }[]>(
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'petstore'",
      )
      return rows.map(({ ssl }) => ssl)
    }

    async function expectRefused(url: string, env?: Readonly<Record<string, string>>): Promise<void> {
      expect(await refusedLine(url, env)).toMatch(/certificate.*NODE_EXTRA_CA_CERTS/)
    }

    test.each(['verify-full', 'verify-ca'])('sslmode=%s is refused', async sslmode => expectRefused(urlWith(sslmode)))

    test('sslmode=verify-full is refused for a name that is not in the trusted certificate', async () => {
      const url = urlWith('verify-full', cluster.host.replace('127.0.0.1', 'localhost'))
      await expectRefused(url, { NODE_EXTRA_CA_CERTS: certificate })
    })

    test.each([
      ['verify-full', 'its certificate in NODE_EXTRA_CA_CERTS', { NODE_EXTRA_CA_CERTS: certificate }],
      ['verify-ca', 'its certificate in NODE_EXTRA_CA_CERTS', { NODE_EXTRA_CA_CERTS: certificate }],
      ['require', 'nothing else', {}],
    ])('sslmode=%s with %s serves over TLS', async (sslmode, _, env) => {
      using cwd = temporaryFolder()
      const args = ['serve', '--port', '0', '--database-url', urlWith(sslmode)]
      await using server = await startServer({ cwd: cwd.path, env: { PETSTORE_API_KEY: key, ...env }, args })
      expect((await server.fetch('/pets', key)).status).toBe(200)
      const seen = await encrypted()
      expect(seen.length).toBeGreaterThan(0)
      expect(seen).not.toContain(false)
    })
  })
})
