import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { SQL } from 'bun'
import { temporaryFolder } from '../support/folder.ts'
import { ask, type Cluster, startCluster } from '../support/postgres.ts'
import { petstore, testMsMax } from '../support/process.ts'
import { describeWithOwnPostgres } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

const password = 'hunter2-s3cret'

/** Starts what cannot start: one line on stderr, without a stack trace or a password, and soon. */
async function refusedLine(databaseUrl: string): Promise<string> {
  using folder = temporaryFolder()
  const began = performance.now()
  const ended = await petstore(['serve'], {
    cwd: folder.path,
    env: { PORT: '0', DATABASE_URL: databaseUrl },
  })
  expect(performance.now() - began).toBeLessThan(10_000)
  expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
  expect(ended.stderr).toMatch(/^petstore: [^\n]+\n$/)
  expect(ended.stderr).not.toMatch(/hunter2|somebody|\.ts:/)
  return ended.stderr
}

/** Whoever is not the administrator has to know a password. */
async function requirePasswords(cluster: Cluster): Promise<void> {
  await using sql = new SQL(cluster.url(), { max: 1 })
  const [file] = await sql.unsafe<{ setting: string }[]>(
    "SELECT setting FROM pg_settings WHERE name = 'hba_file'",
  )
  const rules = ['host all postgres 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 scram-sha-256']
  const lines = rules.map(rule => `'${rule}'`).join()
  await sql.unsafe(`COPY (SELECT unnest(ARRAY[${lines}])) TO '${file?.setting}'`)
  await sql.unsafe('SELECT pg_reload_conf()')
}

/** A program that listens, and does this with whoever comes. */
function listener(open: (socket: Bun.Socket) => void) {
  return Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { open, data() {} } })
}

describeWithOwnPostgres('serve on a PostgreSQL that does not take us', () => {
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
    'a wrong password, none, or an unknown user (%s): it says that the user is not let in',
    async credential => {
      const line = await refusedLine(as(credential))
      expect(line).toContain(`Cannot open the store postgres://${cluster.host}/pets: `)
      expect(line).toMatch(/refuses this user; check user and password in DATABASE_URL \(28P01\)/)
    },
  )

  test('a database that does not exist: it says so', async () => {
    const line = await refusedLine(as(`somebody:${password}`, 'nothing'))
    expect(line).toMatch(/\/nothing: the server has no such database; create it, .*\(3D000\)/)
  })

  test('no right to make the tables: it says what to grant', async () => {
    const line = await refusedLine(as(`somebody:${password}`))
    expect(line).toMatch(/may not create or use the tables; GRANT it .*\(42501\)/)
  })

  test('a newer schema: the program is told to be the older one', async () => {
    await ask(cluster.url(), 'CREATE DATABASE newer')
    await ask(cluster.url('newer'), 'CREATE TABLE petstore_schema (version integer)')
    await ask(cluster.url('newer'), 'INSERT INTO petstore_schema VALUES (99)')
    await ask(cluster.url('newer'), 'GRANT SELECT ON petstore_schema TO somebody')
    const line = await refusedLine(as(`somebody:${password}`, 'newer'))
    expect(line).toMatch(
      /\/newer has schema version 99, and this program supports versions up to \d+: upgrade the program$/m,
    )
  })

  test('a database in which another program has a table pets: it is told to take one of its own', async () => {
    await ask(cluster.url(), 'CREATE DATABASE theirs OWNER somebody')
    await ask(cluster.url('theirs'), 'CREATE TABLE pets (title text)')
    const line = await refusedLine(as(`somebody:${password}`, 'theirs'))
    expect(line).toMatch(/another program has a table of the same name there; .*\(42P07\)/)
  })

  test('a server that does not speak TLS, where that was asked for: it says so', async () => {
    const line = await refusedLine(`${as(`somebody:${password}`)}?sslmode=require`)
    expect(line).toContain('check that it is PostgreSQL and supports the sslmode in DATABASE_URL')
  })
})

test.each([
  ['a port where nobody listens', '127.0.0.1:1'],
  ['a host that there is not', 'nowhere.invalid'],
  ['two hosts of which neither is there', '127.0.0.1:1,nowhere.invalid:2'],
])('serve on %s says that nothing answers there', async (_, hosts) => {
  const line = await refusedLine(`postgres://somebody:${password}@${hosts}/pets`)
  expect(line).toMatch(/the server does not answer; start it, or check host and port in DATABASE_URL/)
  for (const host of hosts.split(',')) expect(line).toContain(host)
})

test('serve on a program that closes every connection says so', async () => {
  using closing = listener(socket => socket.end())
  const line = await refusedLine(`postgres://somebody:${password}@127.0.0.1:${closing.port}/pets`)
  expect(line).toContain('no PostgreSQL server answers')
})

test('serve on a program that never says anything does not wait for it', async () => {
  using silent = listener(() => {})
  const line = await refusedLine(`postgres://somebody:${password}@127.0.0.1:${silent.port}/pets`)
  expect(line).toMatch(/does? not answer/)
})

test('serve on a web server says that it cannot talk to it', async () => {
  await using web = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('Hello') })
  const line = await refusedLine(`postgres://somebody:${password}@127.0.0.1:${web.port}/pets`)
  expect(line).toContain('no PostgreSQL server answers')
})

test('serve on a program that greets in another language says that it cannot talk to it', async () => {
  using greeting = listener(socket => {
    socket.write('SSH-2.0-OpenSSH_9.6\r\n')
  })
  const line = await refusedLine(`postgres://somebody:${password}@127.0.0.1:${greeting.port}/pets`)
  expect(line).toMatch(/does? not answer|not a supported PostgreSQL/)
})
