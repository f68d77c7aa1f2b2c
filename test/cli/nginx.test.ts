import { expect, test } from 'bun:test'
import { conform } from '../../src/conform/run.ts'
import { failedDecisions } from '../conform/decisions.ts'
import { expectOthersServed, key, Load, serveFrom } from '../faults/load.ts'
import { KeepAliveClient } from '../support/connections.ts'
import { describeWithOwnPostgres, describeWithPostgres, startCluster } from '../support/postgres.ts'
import { freePort, readProjectFile, run, startServer, temporaryFolder, until } from '../support/process.ts'
import {
  documentedConfiguration,
  expectChangesSentOnce,
  expectOthersReplace,
  expectOutageSurvived,
  nginx,
  sendOddRequests,
  startNginx,
} from './nginx.ts'

/** At once: most of them wait for limits of nginx. */
const testBehindNginx = (name: string, run: () => Promise<void>) =>
  nginx ? test.concurrent(name, run) : test.skip(`${name} (skipped: nginx is not installed)`, run)

testBehindNginx('deploy/nginx.conf follows every rule, and the log has the client address', async () => {
  const port = freePort()
  const publicUrl = `http://127.0.0.1:${port}/v1`
  await using server = await startServer({
    env: { PETSTORE_API_KEY: key, PETSTORE_PUBLIC_URL: publicUrl, PETSTORE_TRUSTED_PROXIES: '127.0.0.1' },
  })
  await using _ = await startNginx(documentedConfiguration(port, new URL(server.url).host), port)
  const results = await Array.fromAsync(conform({ baseUrl: publicUrl, key, readOnly: false }))
  expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([])
  expect(await failedDecisions(publicUrl, key)).toEqual([])

  const from = ['--interface', '127.0.0.2', '-H', 'X-Forwarded-For: 203.0.113.7']
  await run(['curl', '-s', ...from, `http://127.0.0.1:${port}/from-elsewhere`], { cwd: server.cwd })
  const line = await until('its line in the log', () => /^.*"\/from-elsewhere".*$/m.exec(server.stderr)?.[0])
  expect(JSON.parse(line)).toMatchObject({ status: 404, client: '127.0.0.2' })
})

/** nginx as documented, but for its time-out, in front of these instances. Gives its port. */
async function startBalancer(stack: AsyncDisposableStack, hosts: readonly string[], timeout = '12s') {
  const port = freePort()
  const text = documentedConfiguration(port, ...hosts)
  stack.use(await startNginx(text.replace('proxy_read_timeout 12s', `proxy_read_timeout ${timeout}`), port))
  return port
}

const hostOf = ({ url }: { readonly url: string }) => new URL(url).host

/** Two instances of one SQLite store behind nginx as documented. */
async function startPair(stack: AsyncDisposableStack) {
  const { path: cwd } = stack.use(temporaryFolder())
  const start = async (port = freePort()) =>
    stack.use(await startServer({ cwd, env: { PETSTORE_API_KEY: key }, args: ['serve', '--port', `${port}`] }))
  const instances = [await start(), await start()] as const
  return { port: await startBalancer(stack, instances.map(hostOf)), instances, start }
}

testBehindNginx('behind nginx, a frozen instance is replaced by the other one, but for single requests', async () => {
  await using stack = new AsyncDisposableStack()
  const { port, instances } = await startPair(stack)
  process.kill(instances[0].pid, 'SIGSTOP')
  const send = async (init: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${port}/v1/pets`, {
      headers: { authorization: `Bearer ${key}` },
      ...init,
    })
    if (response.status < 300) return false
    expect([response.status, await response.json()]).toMatchObject([504, { code: 'gateway_timeout', status: 504 }])
    return true
  }
  /** Sends many requests at once. Gives how many timed out. */
  const countTimeouts = async () => {
    const creations = Array.from({ length: 20 }, () => send({ method: 'POST', body: '{"name":"Rex","categoryId":7}' }))
    const reads = Array.from({ length: 20 }, () => send({}))
    return (await Promise.all([...creations, ...reads])).filter(Boolean).length
  }
  const first = await countTimeouts()
  const startMs = performance.now()
  const second = await countTimeouts()
  expect(second).toBeLessThan(first)
  // nginx tries it again every 2 s (fail_timeout).
  expect(second).toBeLessThanOrEqual(1 + (performance.now() - startMs) / 2_000)
})

test('deploy/rolling-restart.sh waits longer than nginx leaves out an instance that failed', () => {
  const [, pause] = /^ {2}sleep (\d+)$/m.exec(readProjectFile('deploy/rolling-restart.sh')) ?? []
  const [, leftOut] = /fail_timeout=(\d+)s/.exec(readProjectFile('deploy/nginx.conf')) ?? []
  expect(Number(pause)).toBeGreaterThan(Number(leftOut))
})

testBehindNginx(
  'behind nginx, requests that the runtime drops or refuses do not make those of others fail',
  async () => {
    await using stack = new AsyncDisposableStack()
    const { port } = await startPair(stack)
    await expectOthersServed({ port, key }, () => sendOddRequests(port, key))
  },
)

testBehindNginx('behind nginx, a restart of one instance after the other fails no read', async () => {
  await using stack = new AsyncDisposableStack()
  const { port, instances, start } = await startPair(stack)
  const load = new Load(port, key, 8)
  for (const instance of instances) {
    expect((await instance.stop('SIGTERM')).exitCode).toBe(0)
    const again = await start(instance.port)
    await until('nginx to use it again', () => again.stderr.includes('listPets') || undefined)
    await load.makesProgress()
  }
  await load.stop()
  using client = new KeepAliveClient(port, key)
  await load.expectEachOnceBehindNginx(client)
})

testBehindNginx('behind nginx, each change is sent once, and a read that fails is repeated', () =>
  expectChangesSentOnce(startBalancer),
)

describeWithOwnPostgres('instances behind nginx, and PostgreSQL stops for a while', () => {
  testBehindNginx('clients get 503 with our Error body meanwhile, and nothing else', async () => {
    await using stack = new AsyncDisposableStack()
    const cluster = stack.use(await startCluster())
    const { url } = await cluster.newDatabase()
    const instances = [stack.use(await serveFrom(url)), stack.use(await serveFrom(url))]
    await expectOutageSurvived(await startBalancer(stack, instances.map(hostOf)), cluster)
  })
})

describeWithPostgres('instances behind nginx, of which one alone loses the database', () => {
  testBehindNginx('reads succeed, and most creations', () => expectOthersReplace(startBalancer))
})
