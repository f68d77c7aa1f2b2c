import { describe, expect, test } from 'bun:test'
import { expectChangesSentOnce, expectOthersReplace, expectOutageSurvived, sendOddRequests } from '../cli/nginx.ts'
import { failedDecisions } from '../conform/decisions.ts'
import { expectOthersServed, key, serveFrom } from '../faults/load.ts'
import { exchange } from '../support/connections.ts'
import { programs as findPrograms } from '../support/debian.ts'
import { startCluster } from '../support/postgres.ts'
import { freePort, readProjectFile } from '../support/process.ts'
import { ProcessFolder } from './process-folder.ts'

const programs = await findPrograms('the tests of load balancers', { haproxy: 'haproxy' })

/** HAProxy as documented, but for its time-out, in front of these instances. Gives its port. */
async function startBalancer(stack: AsyncDisposableStack, hosts: readonly string[], timeout = '12s') {
  const folder = stack.use(new ProcessFolder())
  const port = freePort()
  const text = readProjectFile('deploy/haproxy.cfg')
    .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
    .replace('timeout server 12s', `timeout server ${timeout}`)
    .replace(/^( {2}server petstore-)1 127.0.0.1:8081(.*)\n.*petstore-2 .*\n/gm, (_, server, options: string) =>
      hosts.map((host, index) => `${server}${index + 1} ${host}${options.replace(/1$/, `${index + 1}`)}\n`).join(''),
    )
  folder.start('haproxy', { 'haproxy.cfg': text }, programs?.haproxy ?? '', '-db', '-f', 'haproxy.cfg')
  await folder.until('haproxy', () => fetch(`http://127.0.0.1:${port}/livez`).then(({ ok }) => ok || undefined))
  expect(folder.log('haproxy')).not.toMatch(/warning.*config/i)
  return port
}

/** Three instances on one PostgreSQL server, behind HAProxy as documented. */
async function deploy() {
  await using stack = new AsyncDisposableStack()
  const cluster = stack.use(await startCluster())
  const { url } = await cluster.newDatabase()
  const start = async () => stack.use(await serveFrom(url))
  const instances = [await start(), await start(), await start()] as const
  const hosts = instances.map(server => new URL(server.url).host)
  const port = await startBalancer(stack, hosts)
  return Object.assign(stack.move(), { cluster, instances, port })
}

describe.skipIf(!programs)('instances behind HAProxy, configured as documented', () => {
  test('while PostgreSQL is down, clients get 503 with our own Error body, and nothing else', async () => {
    await using deployed = await deploy()
    await expectOutageSurvived(deployed.port, deployed.cluster)
  })

  test('of four instances, one alone loses the database: reads succeed, and creations but for a share of one', () =>
    expectOthersReplace(startBalancer))

  test('an instance that stops or freezes fails no read, and without any instance the error is an Error body', async () => {
    await using deployed = await deploy()
    const { port, instances } = deployed
    const [frozen, stopping, last] = instances
    const list = () => fetch(`http://127.0.0.1:${port}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })
    const statuses = async () =>
      new Set((await Promise.all(Array.from({ length: 50 }, list))).map(({ status }) => status))
    process.kill(frozen.pid, 'SIGSTOP')
    expect(await statuses()).toEqual(new Set([200]))
    const stopped = stopping.stop('SIGTERM')
    expect(await statuses()).toEqual(new Set([200]))
    await stopped
    expect(await statuses()).toEqual(new Set([200]))

    await Promise.all([frozen.stop('SIGKILL'), last.stop('SIGTERM')])
    const response = await list()
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

  test('our decisions are followed, and clients do not reach the metrics, however the path is written', async () => {
    await using deployed = await deploy()
    const { port } = deployed
    expect(await failedDecisions(`http://127.0.0.1:${port}/v1`, key)).toEqual([])
    const authorization = `Authorization: Bearer ${key}`
    for (const path of ['/metrics', '/./metrics', '/x/../metrics', '/.\\metrics', '//metrics', '/%2e/metrics']) {
      const bytes = `GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`
      const { replies } = await exchange(port, [bytes], { expected: 1 })
      const { status, text = '{}' } = replies[0] ?? {}
      expect([path, status, JSON.parse(text).code]).toEqual([path, 404, 'not_found'])
    }
  })
})
