import { expect } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exchange, KeepAliveClient, withClients } from '../support/connections.ts'
import { nginx as findNginx } from '../support/debian.ts'
import { key, Load, serveFrom } from '../support/load.ts'
import { type Cluster, sharedDatabase } from '../support/postgres.ts'
import { outputFile, readProjectFile, temporaryFolder, until } from '../support/process.ts'
import { startProxy } from '../support/tcp-proxy.ts'

/** The path of the program; undefined if it is not installed. */
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

const restartScript = readProjectFile('deploy/rolling-restart.sh')
/** How long the script waits between the restarts of two instances. */
export const restartPauseMs = Number(/^ {2}sleep (\d+)$/m.exec(restartScript)?.[1]) * 1_000

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

/** Through this port, a database outage of `downMs` gives clients only our own 503, and loses no animal. */
export async function expectOutageSurvived(port: number, cluster: Cluster, downMs: number): Promise<void> {
  const load = new Load(port, key)
  await load.makesProgress(100)
  await cluster.stop('SIGQUIT')
  await Bun.sleep(downMs)
  await until('503 for each client', () => load.unavailable > 16 || undefined)
  await cluster.start()
  await load.makesProgress(100)
  await load.stop()
  using client = new KeepAliveClient(port, key)
  await load.expectEachOnce(client)
}

/**
 * One of four instances of a database loses it, behind the balancer that `start` starts in front of these hosts: no read
 * fails, and of the creations at most the share of one instance.
 */
export async function expectOthersReplace(
  start: (stack: AsyncDisposableStack, hosts: readonly string[]) => Promise<number>,
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await sharedDatabase())
  const { host, port: databasePort } = new URL(url)
  const link = stack.use(await startProxy(Number(databasePort)))
  const servers = [stack.use(await serveFrom(url.replace(host, link.host)))]
  while (servers.length < 4) servers.push(stack.use(await serveFrom(url)))
  const port = await start(
    stack,
    servers.map(server => new URL(server.url).host),
  )
  await link[Symbol.asyncDispose]()
  const outcomes: Record<string, number> = {}
  await withClients({ port, key, count: 8 }, async client => {
    for (let requests = 0; requests < 200; requests++) {
      const isRead = Math.random() < 0.5
      const request = isRead
        ? ({ method: 'GET' } as const)
        : ({ method: 'POST', body: '{"name":"Rex","categoryId":7}' } as const)
      const outcome = await client.send({ path: '/v1/pets', ...request })
      const shown = outcome.kind === 'answered' ? `${request.method} ${outcome.reply.status}` : outcome.kind
      outcomes[shown] = (outcomes[shown] ?? 0) + 1
    }
  })
  // The first is broken, but answers.
  expect((await servers[0]?.fetch('/pets', key))?.status).toBe(503)
  const { 'GET 200': _, 'POST 201': created = 0, 'POST 503': refused = 0, ...others } = outcomes
  expect(others).toEqual({})
  // By turns. Each client may have begun one turn early.
  expect(refused).toBeLessThanOrEqual((created + refused) / servers.length + 8)
}

/** Requests that the runtime drops or refuses itself, and those whose response can be lost; none adds an animal. */
function oddRequests(key: string): readonly string[] {
  const big = 'x'.repeat(900_000)
  const request = (line: string, headers = '', body = '', version = 'HTTP/1.1') => {
    const length = body ? `Content-Length: ${body.length}\r\n` : ''
    return `${line} ${version}\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${headers}${length}\r\n${body}`
  }
  const get = request('GET /v1/pets')
  const invalid = request('POST /v1/pets', '', '{"name":"Odd"}')
  const chunked = request('POST /v1/pets', 'Transfer-Encoding: chunked\r\n')
  const refused = [
    ...['FOO /v1/pets', 'get /v1/pets', 'PRI * ', 'OPTIONS *', 'GET x', 'CONNECT x:80', 'GET gopher://x/v1/pets'],
    ...['GET /v1/pe\x07ts', 'GET /v1/pets and more'],
  ].map(line => request(line))
  const badHeaders = ['X: 1\r\n'.repeat(300), `X: ${'a'.repeat(5_000)}\r\n`.repeat(4), 'X: \x07\r\n', 'X: 1\r2\r\n']
  const twoLengths = 'Content-Length: 3\r\nContent-Length: 4\r\n'
  return [
    ...refused,
    request('FOO /v1/pets', '', big),
    ...badHeaders.flatMap(headers => [request('GET /v1/pets', headers), request('POST /v1/pets', headers, big)]),
    ...['GET', 'POST', 'DELETE'].map(method => request(`${method} /v1/pets`, 'Connection: close\r\n', big)),
    ...['/v1/pets', '/metrics', '/livez'].map(path => request(`GET ${path}`, '', big)),
    ...['/v1/pets', '/metrics'].map(path => request(`POST ${path}`, '', big, 'HTTP/1.0')),
    ...['zz\r\n', '5\r\nhello', '1\r\n \r\n'.repeat(20_000), '2\r\n{}\r\n0\r\nX: 1\r\n\r\n'].map(
      body => chunked + body,
    ),
    request('POST /v1/pets', 'Transfer-Encoding: gzip\r\n'),
    request('POST /v1/pets', 'Transfer-Encoding: chunked\r\n', '{}'),
    request('POST /v1/pets', twoLengths),
    request('GET /v1/pets', '', '', 'HTTP/3.0'),
    `${invalid}\r\n`,
    invalid + get,
    invalid.repeat(20),
    get.slice(0, 30),
    invalid.slice(0, -5),
    '\0'.repeat(64),
    '\x16\x03\x01\x00\xa5\x01',
  ]
}

/** Sends every odd request several times through a proxy, and leaves when a response has come or after a while. */
export async function sendOddRequests(port: number, key: string): Promise<void> {
  for (let round = 0; round < 3; round++) {
    for (const request of oddRequests(key)) await exchange(port, [request], { expected: 1, quietMs: 1, waitMs: 250 })
  }
}
