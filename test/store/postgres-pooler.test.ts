import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { conform } from '../../src/conform/run.ts'
import { openStores } from '../../src/store/open.ts'
import { failedDecisions } from '../conform/decisions.ts'
import { key, serveFrom } from '../faults/load.ts'
import { pgbouncer as findPgbouncer } from '../support/debian.ts'
import { ask, asPostgresWithUs, type Cluster, describeWithOwnPostgres, own, startCluster } from '../support/postgres.ts'
import { freePort, loggedBy, outputFile, petstore, refusal, temporaryFolder, until } from '../support/process.ts'

const pgbouncer = await findPgbouncer()
const modes = ['session', 'transaction']
const limits = ['statement_timeout', 'idle_in_transaction_session_timeout']

/** PgBouncer in front of the database of this address, as configured by default but for these lines. */
async function startPooler(url: string, ...lines: readonly string[]) {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder())
  const port = freePort()
  const { host, pathname } = new URL(url)
  const [address, serverPort] = host.split(':')
  const inside = (name: string) => join(folder.path, name)
  writeFileSync(inside('users.txt'), '"postgres" ""\n')
  const configuration = `[databases]
    * = host=${address} port=${serverPort}
    [pgbouncer]
    listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =
    auth_type = trust\nauth_file = ${inside('users.txt')}\nadmin_users = postgres
    ${lines.join('\n')}\n`
  writeFileSync(inside('pgbouncer.ini'), configuration.replace(/^ +/gm, ''))
  own(folder.path)
  const pooled = `postgres://postgres@127.0.0.1:${port}${pathname}`
  const command = [...asPostgresWithUs, pgbouncer ?? '', inside('pgbouncer.ini')]
  const start = () => Bun.spawn(command, { stdout: 'ignore', stderr: Bun.file(outputFile('pgbouncer')) })
  let child = start()
  const kill = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  stack.defer(kill)
  const isUp = async () => {
    await using sql = new SQL(pooled.replace(/[^/]*$/, 'pgbouncer'), { max: 1, prepare: false })
    await sql.unsafe('SHOW VERSION').simple()
    return true
  }
  await until('PgBouncer', () => isUp().catch(() => undefined))
  const signal = (name: NodeJS.Signals) => child.kill(name)
  const restart = () => {
    child = start()
  }
  return Object.assign(stack.move(), { url: pooled, signal, kill, restart })
}

describe.skipIf(!pgbouncer)('behind PgBouncer (skipped if it is not installed)', () => {
  describeWithOwnPostgres('on PostgreSQL', testPooler)
})

function testPooler(): void {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  test.each(modes)('in %s mode checks, decisions and commands pass, and missing limits are logged', async mode => {
    const { url } = await cluster.newDatabase()
    await using pooler = await startPooler(url, `pool_mode = ${mode}`)
    await using serving = await serveFrom(pooler.url, '--database-pooler')
    const results = await Array.fromAsync(conform({ baseUrl: serving.url, key, readOnly: false }))
    expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([])
    expect(await failedDecisions(serving.url, key)).toEqual([])
    expect((await serving.fetch('/pets/1', key, { method: 'PATCH', body: '{"status":null}' })).status).toBe(200)
    expect((await serving.fetch('/pets/1', key, { method: 'DELETE' })).status).toBe(204)
    const env = { DATABASE_URL: pooler.url, PETSTORE_DATABASE_POOLER: 'true' }
    const command = (...args: string[]) => petstore(args, { cwd: serving.cwd, env })
    for (const line of ['keys create --name till', 'export all.ndjson', 'import all.ndjson']) {
      expect(await command(...line.split(' '))).toMatchObject({ exitCode: 0 })
    }
    const logged = loggedBy(await serving.stop('SIGTERM')).filter(line => line.startsWith('warn '))
    expect(logged).toEqual(limits.map(name => expect.stringMatching(`run ALTER ROLE postgres SET ${name} = '`)))
  })

  test('one in transaction mode that is frozen, or killed and started again: clients get 503, and it goes on', async () => {
    const { url } = await cluster.newDatabase()
    await using pooler = await startPooler(url, 'pool_mode = transaction')
    await using serving = await serveFrom(pooler.url, '--database-pooler')
    await serving.underLoad(/within 5000 ms$/, async load => {
      await load.makesProgress(100)
      pooler.signal('SIGSTOP')
      const reading = serving.fetch('/pets', key)
      await load.getsUnavailable()
      expect((await reading).status).toBe(503)
      pooler.signal('SIGCONT')
      await load.makesProgress(100)
      await pooler.kill()
      await load.getsUnavailable()
      pooler.restart()
      await load.makesProgress(100)
    })
  })

  /** Starts a server in transaction mode, which must fail with this advice. */
  async function expectRefused(url: string, advice: string, line = '', ...flags: string[]) {
    await using pooler = await startPooler(url, 'pool_mode = transaction', line)
    const args = ['serve', '--port', '0', '--database-url', pooler.url, ...flags]
    expect(await refusal(args, { cwd: '/' })).toContain(advice)
  }

  test('a pooler that ignores the settings of our sessions, or has another isolation level, is refused with advice', async () => {
    const { url } = await cluster.newDatabase()
    await (await openStores(url, { create: true })).close()
    const isolation = 'default_transaction_isolation'
    const settings = [...limits, isolation, 'enable_seqscan', 'plan_cache_mode', 'tcp_keepalives_idle']
    await expectRefused(url, 'PETSTORE_DATABASE_POOLER', `ignore_startup_parameters = ${settings.join()}`)
    await ask(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET ${isolation} = 'serializable'`)
    await expectRefused(url, `ALTER ROLE postgres SET ${isolation} = `, '', '--database-pooler')
  })
}
