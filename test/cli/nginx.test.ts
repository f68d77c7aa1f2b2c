import { expect, test } from 'bun:test'
import { conform } from '../../src/conform/run.ts'
import { failedDecisions } from '../conform/decisions.ts'
import { KeepAliveClient, unreadBytes } from '../support/connections.ts'
import { expectOthersServed, key, Load, serveFrom } from '../support/load.ts'
import { describeWithOwnPostgres, describeWithPostgres, startCluster } from '../support/postgres.ts'
import { freePort, run, startServer, temporaryFolder, until } from '../support/process.ts'
import {
  documentedConfiguration,
  expectChangesSentOnce,
  expectOthersReplace,
  expectOutageSurvived,
  nginx,
  restartPauseMs,
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
  const list = async () => (await fetch(`${publicUrl}/pets`, { headers: { authorization: `Bearer ${key}` } })).status
  expect(new Set(await Promise.all(Array.from({ length: 100 }, list)))).toEqual(new Set([200]))

  const askEncoding = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${key}` } })
    return [response.status, response.headers.get('content-encoding'), response.headers.get('vary')]
  }
  for (const path of ['/v1/pets', '/'])
    expect([path, await askEncoding(path)]).toEqual([path, [200, 'gzip', 'Accept-Encoding']])

  const from = ['--interface', '127.0.0.2', '-H', 'X-Forwarded-For: 203.0.113.7']
  await run(['curl', '-s', ...from, `http://127.0.0.1:${port}/from-elsewhere`], { cwd: server.cwd })
  const line = await until('its line in the log', () => /^.*"\/from-elsewhere".*$/m.exec(server.stderr)?.[0])
  expect(JSON.parse(line)).toMatchObject({ status: 404, client: '127.0.0.2' })
})

const adding = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }

/** Two instances of one SQLite store, each on a port that stays the same, behind nginx as documented. */
async function startPair() {
  await using stack = new AsyncDisposableStack()
  const { path: cwd } = stack.use(temporaryFolder())
  const [first, second, port] = [freePort(), freePort(), freePort()]
  const startOn = (port: number) =>
    startServer({ cwd, env: { PETSTORE_API_KEY: key }, args: ['serve', '--port', String(port)] })
  const instances = new Map([
    [first, await startOn(first)],
    [second, await startOn(second)],
  ])
  stack.defer(async () => void (await Promise.all([...instances.values()].map(each => each[Symbol.asyncDispose]()))))
  stack.use(await startNginx(documentedConfiguration(port, `127.0.0.1:${first}`, `127.0.0.1:${second}`), port))
  /** Sends a request through nginx. Without the documented limit, nginx would wait for a frozen instance for 60 s. */
  const send = (init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${key}` }
    return fetch(`http://127.0.0.1:${port}/v1/pets`, { headers, ...init, signal: AbortSignal.timeout(40_000) })
  }
  return Object.assign(stack.move(), { port, instances, startOn, send })
}

testBehindNginx(
  'behind nginx, a frozen instance delays requests by 12 s; then the other one replaces it, but for single requests',
  async () => {
    await using pair = await startPair()
    const { instances, send } = pair
    const [[frozenPort, frozen] = [0]] = instances
    process.kill(frozen?.pid ?? 0, 'SIGSTOP')
    try {
      const reading = Array.from({ length: 20 }, () => send())
      const creating = Array.from({ length: 20 }, () => send(adding))
      await until('requests that wait for the frozen instance', () => unreadBytes(frozenPort) > 0 || undefined)
      for (const response of await Promise.all([...reading, ...creating])) {
        if (response.status < 300) continue
        expect(response.status).toBe(504)
        expect(await response.json()).toMatchObject({ code: 'gateway_timeout', status: 504 })
      }
      // At most every 2 s, nginx tries the frozen instance again with a request, which may be one of these.
      const startMs = performance.now()
      const sent = Array.from({ length: 20 }, async () => {
        const { status } = await send()
        const answeredMs = performance.now() - startMs
        return { status, chosenMs: status === 504 ? answeredMs - 12_000 : answeredMs }
      })
      const answers = await Promise.all(sent)
      const triesMax = 1 + Math.max(...answers.map(({ chosenMs }) => chosenMs)) / 2_000
      const { 200: _ = [], 504: tries = [], ...others } = Object.groupBy(answers, ({ status }) => status)
      expect(others).toEqual({})
      expect(tries.length).toBeLessThanOrEqual(triesMax)
    } finally {
      process.kill(frozen?.pid ?? 0, 'SIGCONT')
    }
  },
)

testBehindNginx(
  'behind nginx, requests that the runtime drops or refuses do not make those of others fail',
  async () => {
    await using pair = await startPair()
    const { port } = pair
    await expectOthersServed({ port, key }, () => sendOddRequests(port, key))
  },
)

testBehindNginx('behind nginx, the documented restart fails no read and no repeated creation', async () => {
  await using pair = await startPair()
  const { port, instances, startOn } = pair
  const load = new Load(port, key, 8)
  const isReady = async (port: number) => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok || undefined
  for (const [own, instance] of instances) {
    expect((await instance.stop('SIGTERM')).exitCode).toBe(0)
    instances.set(own, await startOn(own))
    await until('the instance to be ready', () => isReady(own))
    await Bun.sleep(restartPauseMs)
    await load.makesProgress()
  }
  await load.stop()
  using client = new KeepAliveClient(port, key)
  await load.expectEachOnceBehindNginx(client)
})

/** nginx as documented, but for its time-out, in front of these instances. Gives its port. */
async function startBalancer(stack: AsyncDisposableStack, hosts: readonly string[], timeout = '12s') {
  const port = freePort()
  const text = documentedConfiguration(port, ...hosts)
  stack.use(await startNginx(text.replace('proxy_read_timeout 12s', `proxy_read_timeout ${timeout}`), port))
  return port
}

testBehindNginx('behind nginx, each change is sent once, and a read that fails is repeated', () =>
  expectChangesSentOnce(startBalancer),
)

describeWithOwnPostgres('instances behind nginx, and PostgreSQL stops for a while', () => {
  testBehindNginx('clients get 503 with our Error body meanwhile, and nothing else', async () => {
    await using cluster = await startCluster()
    const { url } = await cluster.newDatabase()
    await using first = await serveFrom(url)
    await using second = await serveFrom(url)
    const port = freePort()
    const [one = '', two = ''] = [first, second].map(({ url }) => new URL(url).host)
    await using _ = await startNginx(documentedConfiguration(port, one, two), port)
    await expectOutageSurvived(port, cluster, 3_000)
  })
})

describeWithPostgres('instances behind nginx, of which one alone loses the database', () => {
  testBehindNginx('reads succeed, and creations but for a share of one', () => expectOthersReplace(startBalancer))
})
