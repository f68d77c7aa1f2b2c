import { expect } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { key, Load, serveFrom } from '../faults/load.ts'
import { startProxy } from '../faults/tcp-proxy.ts'
import { exchange, KeepAliveClient, withClients } from '../support/connections.ts'
import { nginx as findNginx } from '../support/debian.ts'
import { type Cluster, sharedDatabase } from '../support/postgres.ts'
import { freePort, outputFile, readProjectFile, temporaryFolder, until } from '../support/process.ts'

export const nginx = await findNginx()

/** deploy/nginx.conf on `port` of 127.0.0.1, in front of these instances. */
export function documentedConfiguration(port: number, ...instances: readonly string[]): string {
  const text = readProjectFile('deploy/nginx.conf')
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
    .replace(/^.*petstore-1:8080(.*)\n.*petstore-2:8080.*\n/gm, (_, options) =>
      instances.map(host => `  server ${host}${options}\n`).join(''),
    )
  // A single instance needs one line, as documented.
  return instances.length > 1 ? text : text.replace(/^.*backup;\n/gm, '')
}

/** Serves until it is disposed of. Resolves when it answers. */
export async function startNginx(server: string, port: number): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder())
  const file = join(folder.path, 'nginx.conf')
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const temporary = kinds.map(kind => `${kind}_temp_path ${folder.path}/${kind};`)
  const configuration = `daemon off; master_process off; pid ${folder.path}/nginx.pid; error_log stderr; events {}
    http { access_log off; ${temporary.join(' ')} ${server} }`
  writeFileSync(file, configuration)
  const output = Bun.file(outputFile('nginx'))
  const proxy = Bun.spawn([nginx ?? '', '-p', folder.path, '-c', file], { stdout: 'ignore', stderr: output })
  stack.defer(async () => {
    proxy.kill('SIGTERM')
    await proxy.exited
  })
  const isUp = () => fetch(`http://127.0.0.1:${port}/livez`).then(({ ok }) => ok || undefined)
  await until('nginx', () => isUp().catch(() => undefined))
  return stack.move()
}

/** Through this port, a database outage gives clients only our own 503, and loses no animal. */
export async function expectOutageSurvived(port: number, cluster: Cluster): Promise<void> {
  const load = new Load(port, key)
  await load.makesProgress(100)
  await cluster.stop('SIGQUIT')
  // The clients pause after each: this takes longer than nginx leaves out an instance that failed.
  await until('many 503 for each client', () => load.unavailable > 600 || undefined)
  await cluster.start()
  await load.makesProgress(100)
  await load.stop()
  using client = new KeepAliveClient(port, key)
  await load.expectEachOnce(client)
}

/** Starts a balancer as documented in front of these hosts, but for its time-out. Gives its port. */
type StartBalancer = (stack: AsyncDisposableStack, hosts: readonly string[], timeout?: string) => Promise<number>

/** One of four instances of a database loses it, behind a balancer: no read fails, and few creations do. */
export async function expectOthersReplace(start: StartBalancer): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await sharedDatabase())
  const { host, port: databasePort } = new URL(url)
  const link = stack.use(await startProxy(Number(databasePort)))
  const servers = [stack.use(await serveFrom(url.replace(host, link.host)))]
  while (servers.length < 4) servers.push(stack.use(await serveFrom(url)))
  const hosts = servers.map(server => new URL(server.url).host)
  const port = await start(stack, hosts)
  await link[Symbol.asyncDispose]()
  const outcomes: Record<string, number> = {}
  await withClients({ port, key, count: 8 }, async client => {
    for (let requests = 0; requests < 200; requests++) {
      const body = Math.random() < 0.5 ? undefined : '{"name":"Rex","categoryId":7}'
      const sent = { method: body ? 'POST' : 'GET', path: '/v1/pets', ...(body && { body }) } as const
      const outcome = await client.send(sent)
      const shown = outcome.kind === 'answered' ? `${sent.method} ${outcome.reply.status}` : outcome.kind
      outcomes[shown] = (outcomes[shown] ?? 0) + 1
    }
  })
  // The first is broken, but answers.
  expect((await servers[0]?.fetch('/pets', key))?.status).toBe(503)
  const { 'GET 200': _, 'POST 201': created = 0, 'POST 503': refused = 0, ...others } = outcomes
  expect(others).toEqual({})
  // Its share is a quarter: the balancer must not prefer an instance because it fails quickly.
  expect(refused).toBeLessThan((created + refused) / 3)
}

/** How often an instance gets a read from the balancer if it does this after it has read the request. */
const upstreams: readonly [string, (response: ServerResponse) => unknown, reads: number, timeout?: string][] = [
  ['succeeds', response => response.end(), 1],
  ['responds with 503', response => response.writeHead(503).end(), 2],
  ['closes the connection', ({ socket }) => socket?.destroy(), 2],
  ['does not respond', () => {}, 2, '1s'],
]

/** A balancer repeats a read that fails once, and sends each change to one instance only. */
export async function expectChangesSentOnce(start: StartBalancer): Promise<void> {
  const counting = upstreams.map(async ([name, answer, _, timeout]) => {
    await using stack = new AsyncDisposableStack()
    const received: Record<string, number> = {}
    const server = createServer((request, response) => {
      const { url = '', method = '' } = request
      if (!url.startsWith('/v1/')) return void response.setHeader('Connection', 'close').end()
      request.resume().on('end', () => {
        received[method] = (received[method] ?? 0) + 1
        answer(response)
      })
    })
    stack.defer(() => void server.close().closeAllConnections())
    const own = freePort()
    await new Promise(resolve => server.listen(own, '127.0.0.1', () => resolve(undefined)))
    const host = `127.0.0.1:${own}`
    // For the balancer, these are two instances.
    const port = await start(stack, [host, host], timeout)
    // Without `keepalive`, because a client repeats a request itself if its reused connection is closed.
    const send = (method: string, body: string | null = null) =>
      fetch(`http://127.0.0.1:${port}/v1/pets/7`, { method, body, keepalive: false })
    await Promise.all([send('GET'), send('HEAD'), send('POST', '{}'), send('PATCH', '{}'), send('DELETE')])
    return [name, received]
  })
  const once = { POST: 1, PATCH: 1, DELETE: 1 }
  const expected = upstreams.map(([name, , reads]) => [name, { GET: reads, HEAD: reads, ...once }])
  expect(await Promise.all(counting)).toEqual(expected)
}

/** Requests that the runtime drops or refuses itself, and those whose response can be lost; none adds an animal. */
function oddRequests(key: string) {
  const big = 'x'.repeat(900_000)
  const request = (line: string, headers = '', body = '', version = 'HTTP/1.1') => {
    const length = body ? `Content-Length: ${body.length}\r\n` : ''
    return `${line} ${version}\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${headers}${length}\r\n${body}`
  }
  const invalid = request('POST /v1/pets', '', '{"name":"Odd"}')
  const chunked = request('POST /v1/pets', 'Transfer-Encoding: chunked\r\n')
  const lines = ['FOO /v1/pets', 'PRI * ', 'OPTIONS *', 'GET x', 'CONNECT x:80', 'GET gopher://x/', 'GET /v1/pe\x07ts']
  const headers = ['X: 1\r\n'.repeat(300), `X: ${'a'.repeat(5_000)}\r\n`.repeat(4), 'X: \x07\r\n', 'X: 1\r2\r\n']
  const complete = [
    ...lines.map(line => request(line)),
    ...headers.flatMap(odd => [request('GET /v1/pets', odd), request('POST /v1/pets', odd, big)]),
    ...['zz\r\n', '2\r\n{}\r\n0\r\nX: 1\r\n\r\n'].map(body => chunked + body),
    ...['FOO', 'GET', 'POST', 'DELETE'].map(method => request(`${method} /v1/pets`, 'Connection: close\r\n', big)),
    ...['/metrics', '/livez'].map(path => request(`GET ${path}`, '', big)),
    request('POST /v1/pets', 'Transfer-Encoding: gzip\r\n'),
    request('POST /v1/pets', 'Transfer-Encoding: chunked\r\n', '{}'),
    request('POST /v1/pets', 'Content-Length: 3\r\nContent-Length: 4\r\n'),
    request('GET /v1/pets', '', '', 'HTTP/3.0'),
    invalid.repeat(20),
  ]
  return { complete, incomplete: [invalid.slice(0, -5), `${chunked}5\r\nhello`, chunked + '1\r\n \r\n'.repeat(20_000)] }
}

export async function sendOddRequests(port: number, key: string): Promise<void> {
  const { complete, incomplete } = oddRequests(key)
  for (let round = 0; round < 3; round++) {
    for (const request of complete) await exchange(port, [request], { expected: 1, quietMs: 0 })
    for (const request of incomplete) await exchange(port, [request], { expected: 0 })
  }
}
