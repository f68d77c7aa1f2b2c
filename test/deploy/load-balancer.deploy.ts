import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  expectChangesSentOnce,
  expectOthersReplace,
  expectOutageSurvived,
  restartPauseMs,
  sendOddRequests,
} from '../cli/nginx.ts'
import { failedDecisions } from '../conform/decisions.ts'
import { exchange } from '../support/connections.ts'
import { programs as findPrograms } from '../support/debian.ts'
import { expectOthersServed, key, serveFrom } from '../support/load.ts'
import { startCluster } from '../support/postgres.ts'
import { freePort, readProjectFile, until } from '../support/process.ts'
import { ProcessFolder } from './process-folder.ts'

const programs = await findPrograms('the tests of load balancers', { haproxy: 'haproxy' })

const serverLine = (number: number, host: string, options: string) =>
  `  server petstore-${number} ${host}${options.replace(/1$/, String(number))}\n`

/** HAProxy as documented, but for its time-out, in front of these instances. Gives its port and its log. */
async function startHaproxy(stack: AsyncDisposableStack, hosts: readonly string[], timeout = '12s') {
  const folder = stack.use(new ProcessFolder())
  const port = freePort()
  const text = readProjectFile('deploy/haproxy.cfg')
    .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
    .replace('timeout server 12s', `timeout server ${timeout}`)
    .replace(/^ {2}server petstore-1 127.0.0.1:8081(.*)\n.*petstore-2 .*\n/gm, (_, options: string) =>
      hosts.map((host, index) => serverLine(index + 1, host, options)).join(''),
    )
  writeFileSync(join(folder.folder('haproxy'), 'haproxy.cfg'), text)
  folder.start('haproxy', programs?.haproxy ?? '', '-db', '-f', 'haproxy.cfg')
  const isUp = () => fetch(`http://127.0.0.1:${port}/livez`).then(({ ok }) => ok || undefined)
  await until('HAProxy', () => isUp().catch(() => undefined)).catch(error => {
    throw new Error(`${error.message}\n${folder.log('haproxy')}`)
  })
  return { port, log: () => folder.log('haproxy') }
}

const startBalancer = async (...parts: Parameters<typeof startHaproxy>) => (await startHaproxy(...parts)).port

/** Two instances on one PostgreSQL server, behind HAProxy as documented. */
async function deploy() {
  await using stack = new AsyncDisposableStack()
  const cluster = stack.use(await startCluster())
  const { url } = await cluster.newDatabase()
  const instances = [stack.use(await serveFrom(url)), stack.use(await serveFrom(url))] as const
  const hosts = instances.map(server => new URL(server.url).host)
  const { port, log } = await startHaproxy(stack, hosts)
  return Object.assign(stack.move(), { cluster, instances, port, log })
}

setDefaultTimeout(120_000)

describe.skipIf(!programs)('two instances behind HAProxy, configured as documented', () => {
  const list = (port: number, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}/v1/pets`, { headers: { authorization: `Bearer ${key}` }, ...init })

  test('while PostgreSQL is down, clients get 503 with our own Error body, and nothing else', async () => {
    await using deployed = await deploy()
    const { cluster, port, log } = deployed
    expect(log()).not.toMatch(/warning/i)
    await expectOutageSurvived(port, cluster, 6_000)
  })

  test('of four instances, one alone loses the database: reads succeed, and creations but for a share of one', () =>
    expectOthersReplace(startBalancer))

  test('an instance that stops or freezes fails no read, and without any instance the error is an Error body', async () => {
    await using deployed = await deploy()
    const { port, instances } = deployed
    const [first, second] = instances
    const statuses = async () =>
      new Set(await Promise.all(Array.from({ length: 50 }, async () => (await list(port)).status)))
    expect(await statuses()).toEqual(new Set([200]))
    process.kill(first.pid, 'SIGSTOP')
    expect(await statuses()).toEqual(new Set([200]))
    process.kill(first.pid, 'SIGCONT')
    await until('the first instance', async () => (await fetch(new URL('/readyz', first.url))).ok || undefined)
    await Bun.sleep(restartPauseMs)

    const stopping = second.stop('SIGTERM')
    expect(await statuses()).toEqual(new Set([200]))
    await stopping
    expect(await statuses()).toEqual(new Set([200]))

    await first.stop('SIGTERM')
    const response = await list(port)
    expect([response.status, response.headers.get('content-type')]).toEqual([503, 'application/json'])
    expect(response.headers.get('retry-after')).toBe('1')
    expect(await response.json()).toMatchObject({ code: 'bad_gateway', status: 503 })
  })

  test('requests that the runtime drops or refuses do not make those of others fail', async () => {
    await using deployed = await deploy()
    const { port } = deployed
    await expectOthersServed({ port, key }, () => sendOddRequests(port, key))
    const { replies } = await exchange(port, ['TRACE /v1/pets/7 HTTP/1.1\r\nHost: x\r\n\r\n'], { expected: 1 })
    const allowed = replies.map(({ status, headers }) => [status, headers.get('allow')])
    expect(allowed).toEqual([[405, 'GET, HEAD, POST, PATCH, DELETE']])
  })

  test('each change is sent once, and a read that fails is repeated', () => expectChangesSentOnce(startBalancer))

  test('our decisions are followed', async () => {
    await using deployed = await deploy()
    expect(await failedDecisions(`http://127.0.0.1:${deployed.port}/v1`, key)).toEqual([])
  })

  test('clients do not reach the metrics, however the path is written', async () => {
    await using deployed = await deploy()
    const { port } = deployed
    const authorization = `Authorization: Bearer ${key}`
    for (const path of ['/metrics', '/./metrics', '/x/../metrics', '/.\\metrics', '//metrics', '/%2e/metrics']) {
      const bytes = `GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`
      const { replies } = await exchange(port, [bytes], { expected: 1 })
      const { status, text = '{}' } = replies[0] ?? {}
      expect([path, status, JSON.parse(text).code]).toEqual([path, 404, 'not_found'])
    }
  })
})
