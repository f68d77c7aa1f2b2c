import { expect } from 'bun:test'
import { join } from 'node:path'
import { exchange, KeepAliveClient } from './connections.ts'
import { Load } from './load.ts'

/** What an attacker does on each connection: it sends `first`, and then `endless` again and again, or leaves. */
export interface Attack {
  readonly connections: number
  readonly first: string
  readonly endless?: string
  readonly leaves?: boolean
}

/** Attacks for a while. Gives how many connections got which response, such as `401 missing_api_key`. */
export async function attackFor(ms: number, port: number, attack: Attack): Promise<Record<string, number>> {
  const script = join(import.meta.dir, 'attacker.ts')
  const command = [process.execPath, '--no-env-file', script, JSON.stringify({ port, ...attack })]
  const attacker = Bun.spawn(command, { stdin: 'pipe', stdout: 'pipe' })
  await Bun.sleep(ms)
  await attacker.stdin.end()
  return JSON.parse(await attacker.stdout.text())
}

interface Served {
  readonly port: number
  readonly key: string
  /** The animals that the store had before. */
  readonly stored?: readonly string[]
}

/**
 * Four innocent clients read and add all the time, and get only their own results. Gives how many of their requests
 * completed during the attack, and what the attack gives.
 */
export async function expectOthersServed<T>(
  { port, key, stored = [] }: Served,
  attack: () => Promise<T>,
): Promise<{ readonly completed: number; readonly result: T }> {
  const load = new Load(port, key, 4)
  for (const body of stored) load.uncertain.add(body)
  await load.makesProgress()
  const before = load.completed
  const result = await attack()
  const completed = load.completed - before
  await load.stop()
  expect([load.wrong, load.unavailable]).toEqual([[], 0])
  using client = new KeepAliveClient(port, key)
  await load.expectEachOnce(client)
  return { completed, result }
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
