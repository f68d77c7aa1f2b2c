import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { SQL } from 'bun'
import { temporaryFolder } from '../support/folder.ts'
import { ask, type Cluster, newDatabase, startCluster } from '../support/postgres.ts'
import { loggedBy, petstore, projectFolder, startServer, testMsMax, until } from '../support/process.ts'
import { describeWithOwnPostgres } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

const nobody = 'postgres://somebody:hunter2@127.0.0.1:1/pets'
const key = 'a-key-from-outside-0123456789'

test('--wait-for-database 1s with nobody there ends with exit code 1 after about a second', async () => {
  using folder = temporaryFolder()
  const began = performance.now()
  const ended = await petstore(['serve', '--wait-for-database', '1s', '--database-url', nobody], {
    cwd: folder.path,
    env: { PORT: '0' },
  })
  const tookMs = performance.now() - began
  expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
  expect(tookMs).toBeWithin(1_000, 6_000)
  // Said when the waiting begins, and when it ends; not at every attempt.
  expect(loggedBy(ended)).toEqual([
    expect.stringMatching(/^error Cannot open the store .*; trying again for 1 s$/),
  ])
  const lines = ended.stderr.trimEnd().split('\n')
  expect(lines).toHaveLength(2)
  expect(lines[1]).toMatch(
    /^petstore: Cannot open the store postgres:\/\/127\.0\.0\.1:1\/pets: .*does not answer/,
  )
  expect(ended.stderr).not.toMatch(/hunter2|somebody|\n\s+at /)
})

test.each([
  ['an address that is none', 'postgres://127.0.0.1:1/pets?sslmode=maybe', 2],
  ['a folder that nobody may write to', 'sqlite:/sys/petstore.db', 1],
])('--wait-for-database does not wait for what waiting does not mend: %s', async (_, url, exitCode) => {
  using folder = temporaryFolder()
  const began = performance.now()
  const args = ['serve', '--wait-for-database', '60s', '--database-url', url]
  const ended = await petstore(args, { cwd: folder.path, env: { PORT: '0' } })
  expect(ended.exitCode).toBe(exitCode)
  expect(performance.now() - began).toBeLessThan(10_000)
})

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s while it waits ends it at once, with exit code 0',
  async signal => {
    using folder = temporaryFolder()
    const program = join(projectFolder, 'bin/petstore')
    const { PATH = '' } = process.env
    await using child = Bun.spawn(
      [program, 'serve', '--wait-for-database', '60s', '--database-url', nobody],
      {
        cwd: folder.path,
        env: { PATH, PORT: '0' },
        stdout: 'pipe',
        stderr: 'pipe',
      },
    )
    const [toldWaiting, rest] = child.stderr.tee()
    for await (const text of toldWaiting.pipeThrough(new TextDecoderStream())) {
      if (text.includes('trying again for 60 s')) break
    }
    const began = performance.now()
    child.kill(signal)
    expect(await child.exited).toBe(0)
    expect(performance.now() - began).toBeLessThan(2_000)
    expect(await child.stdout.text()).toBe('')
    expect((await new Response(rest).text()).trimEnd().split('\n')).toHaveLength(1)
  },
)

describeWithOwnPostgres('serve, with --wait-for-database 30s', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  test('serves once PostgreSQL, which was started two seconds later, is there', async () => {
    using folder = temporaryFolder()
    await cluster.stop('SIGINT')
    const starting = Bun.sleep(2_000).then(() => cluster.start())
    const began = performance.now()
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: cluster.url() }
    const args = ['serve', '--port', '0', '--wait-for-database', '30s']
    await using server = await startServer({ cwd: folder.path, env, args })
    await starting
    expect(performance.now() - began).toBeGreaterThan(2_000)
    expect((await server.fetch('/pets', key)).status).toBe(200)
    const ended = await server.stop('SIGTERM')
    expect(loggedBy(ended)).toEqual([
      expect.stringMatching(/does not answer;.*; trying again for 30 s$/),
      'info Stopping',
    ])
  })

  test('serves once the database, which was created later, is there', async () => {
    using folder = temporaryFolder()
    const creating = Bun.sleep(1_000).then(() => ask(cluster.url(), 'CREATE DATABASE later'))
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: cluster.url('later') }
    const args = ['serve', '--port', '0', '--wait-for-database', '30s']
    await using server = await startServer({ cwd: folder.path, env, args })
    await creating
    expect((await server.fetch('/pets', key)).status).toBe(200)
  })

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s while another instance holds the lock under which tables are made ends it at once, with exit code 0 and no key',
    async signal => {
      using folder = temporaryFolder()
      await using database = await newDatabase(cluster.url())
      await using sql = new SQL(database.url, { max: 1 })
      await sql.unsafe(`SELECT pg_advisory_lock(${0x50455453})`)
      const { PATH = '' } = process.env
      await using child = Bun.spawn([join(projectFolder, 'bin/petstore'), 'serve'], {
        cwd: folder.path,
        env: { PATH, PORT: '0', DATABASE_URL: database.url },
        stdout: 'pipe',
        stderr: 'pipe',
      })
      await until('it to wait', async () => (await sql.unsafe(waiting)).length > 0 || undefined)
      child.kill(signal)
      const exitCode = await Promise.race([child.exited, Bun.sleep(2_000)])
      child.kill('SIGKILL')
      expect(exitCode).toBe(0)
      expect([await child.stdout.text(), await child.stderr.text()]).toEqual(['', ''])
    },
  )
})

const waiting = `
  SELECT 1 FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database() AND wait_event = 'advisory'`
