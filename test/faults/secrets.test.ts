import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateApiKey, hashSecret } from '../../src/api-key.ts'
import { exchange, openCrowd } from '../support/connections.ts'
import { createKey, startServer, temporaryFolder, until } from '../support/process.ts'

const environmentKey = 'a-key-from-outside-0123456789-secret'

/** Valid and invalid requests, with a key in the right and in wrong places. */
function requestsWith(key: string): readonly string[] {
  const sent = (line: string, ...headers: string[]) =>
    [`${line} HTTP/1.1`, 'Host: x', 'Connection: close', ...headers, '\r\n'].join('\r\n')
  const bearer = `Authorization: Bearer ${key}`
  const post = (body: string, ...headers: string[]) =>
    sent('POST /v1/pets', bearer, ...headers, `Content-Length: ${body.length}`) + body
  const petsWith = (...headers: string[]) => sent('GET /v1/pets', ...headers)
  const lines = ['GET /v1/pets', 'HEAD /v1/pets', 'GET /v1/pets/99', 'GET /v1/nowhere', 'DELETE /v1/pets']
  const bodies = ['{"name":"Rex","categoryId":7}', '{"name":"","categoryId":"seven"}', '{"name":', ' '.repeat(70_000)]
  const credentials = [`Bearer  ${key} ${key}`, `Basic ${key}`, key, `Bearer ${key}x`]
  return [
    ...[...lines, 'GET /v1/pets?limit=0&status=lost&cursor=none'].map(line => sent(line, bearer)),
    ...bodies.map(body => post(body)),
    post('plain', 'Content-Type: text/plain'),
    ...credentials.map(value => petsWith(`Authorization: ${value}`)),
    petsWith(bearer, bearer),
    petsWith(`X-Api-Key: ${key}`, `Cookie: key=${key}`),
    sent(`GET /v1/pets?api_key=${key}&access_token=${key}`),
    sent(`GET /v1/pets?api_key=${key}`, bearer),
    sent(`GET /openapi.json?api_key=${key}`),
    petsWith(`X-Request-Id: ${key}`),
    petsWith(bearer, `X-Request-Id: id-${key}`),
    post(`{"api_key":"${key}"}`),
    post('{"name":"Rex","categoryId":7}', `Idempotency-Key: ${key}`),
    // Never whole, or no HTTP at all.
    `GET /v1/pets HTTP/9.9\r\n${bearer}\r\n\r\n`,
    `GET /v1/pets HTTP/1.1\r\n${bearer}\r\nbroken\r\n\r\n`,
    `POST /v1/pets HTTP/1.1\r\nHost: x\r\n${bearer}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    `FOO ${key}\r\n\r\n`,
  ]
}

/** How many bytes the process on this port of 127.0.0.1 was sent and has not read, on all of its connections. */
function unreadBytes(port: number): number {
  const rows = readFileSync('/proc/net/tcp', 'utf8').matchAll(/:(\w{4}) \w{8}:(\w{4}) \w\w (\w{8}):(\w{8})/g)
  const isPort = (text = '') => Number.parseInt(text, 16) === port
  let bytes = 0
  for (const [, own, other, unsent = '', unread = ''] of rows) {
    if (isPort(own)) bytes += Number.parseInt(unread, 16)
    if (isPort(other)) bytes += Number.parseInt(unsent, 16)
  }
  return bytes
}

/** The rest of a key after the characters that `keys list` shows: it must appear nowhere. */
const secretOf = (key: string) => key.slice(9)

const read = (folder: string, names = readdirSync(folder)) =>
  names.map(name => readFileSync(join(folder, name), 'latin1')).join('\n')

test('no key shows in responses, logs, process titles or files; the first key only in the greeting of the first start', async () => {
  using folder = temporaryFolder()
  const data = join(folder.path, 'data')
  await using first = await startServer({ cwd: folder.path })
  const greeting = first.stdout
  const [, firstKey = ''] = /^ +API key +(\w+) \(.*shown only this once\)$/m.exec(greeting) ?? []
  expect(firstKey).toMatch(/^pets_\w{36}$/)
  const firstEnded = await first.stop('SIGTERM')
  expect(firstEnded.stdout).toBe(greeting)

  const storeKey = await createKey(folder.path, 'till')
  const keys = [environmentKey, storeKey, firstKey, generateApiKey()]
  await using server = await startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: environmentKey } })
  /** Sends each on a connection of its own, and gives everything that came back. */
  async function responsesTo(requests: readonly string[]): Promise<string> {
    const exchanges = await Promise.all(requests.map(bytes => exchange(server.port, [bytes], { expected: 1 })))
    return exchanges.map(({ received }) => received).join('\n')
  }
  const requests = keys.flatMap(requestsWith)
  const responses = await responsesTo(requests)
  for (const status of [200, 201, 400, 401, 404, 405, 413, 415]) expect(responses).toContain(`HTTP/1.1 ${status}`)

  // Without the animals' table every operation fails inside the service.
  using database = new Database(join(data, 'petstore.db'), { readwrite: true, strict: true })
  database.run('PRAGMA busy_timeout = 60000')
  database.run('ALTER TABLE pets RENAME TO pets_away')
  const failures = await responsesTo(requests)
  database.run('ALTER TABLE pets_away RENAME TO pets')
  database.close()
  expect(failures).toContain('"code":"internal_error"')

  for (const key of keys) {
    const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: 99\r\n\r\n`
    using _brokenOff = await openCrowd(server.port, 5, `${head}{"name":"${key}`)
    await until('the beginning to be read', () => unreadBytes(server.port) === 0 || undefined)
  }
  // The response may repeat a path to the client that sent it, the log may not.
  const paths = ['a', ...keys].flatMap(key => [key, `v1/${key}`, `v1/pets/${key}`, `v1/${key}/x`])
  await responsesTo(paths.map(path => `GET /${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`))
  // What every user of the machine can read.
  const title = read(`/proc/${server.pid}`, ['cmdline', 'comm', 'status'])
  expect(title).toContain('serve')
  const storedWhileServing = read(data)
  const { exitCode, stdout, stderr } = await server.stop('SIGTERM')
  expect(exitCode).toBe(0)
  // Paths were logged, so a key had a place to show.
  expect(stderr).toContain('"path":"/a"')

  const stored = read(data)
  const places = { responses, failures, title, stdout, stderr, firstLog: firstEnded.stderr, storedWhileServing, stored }
  for (const [place, text] of Object.entries(places)) {
    for (const key of keys) expect([place, text.includes(secretOf(key))]).toEqual([place, false])
  }
  for (const key of [storeKey, firstKey]) expect(stored).toContain(hashSecret(key))
})
