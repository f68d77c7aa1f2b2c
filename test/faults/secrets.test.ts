import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateApiKey, hashApiKey } from '../../src/api-key.ts'
import { exchange, openCrowd } from '../support/connections.ts'
import {
  createKey,
  portOf,
  type Server,
  startServer,
  temporaryFolder,
  testMsMax,
} from '../support/process.ts'

setDefaultTimeout(testMsMax)

const environmentKey = 'a-key-from-outside-0123456789-secret'

/** Every kind of request, sound and bad, with a key where it belongs and where it does not. */
function requestsWith(key: string): readonly string[] {
  const sent = (line: string, headers: readonly string[], body = '') => {
    const length = body === '' ? [] : [`Content-Length: ${body.length}`]
    return [`${line} HTTP/1.1`, 'Host: x', 'Connection: close', ...headers, ...length, '', body].join('\r\n')
  }
  const bearer = `Authorization: Bearer ${key}`
  const post = (body: string, ...headers: string[]) => sent('POST /v1/pets', [bearer, ...headers], body)
  return [
    sent('GET /v1/pets', [bearer]),
    sent('HEAD /v1/pets', [bearer]),
    sent('GET /v1/pets/99', [bearer]),
    sent('GET /v1/nowhere', [bearer]),
    sent('DELETE /v1/pets', [bearer]),
    sent('GET /v1/pets?limit=0&status=lost&cursor=none', [bearer]),
    post('{"name":"Rex","categoryId":7}'),
    post('{"name":"","categoryId":"seven"}'),
    post('{"name":'),
    post('plain', 'Content-Type: text/plain'),
    post(' '.repeat(70_000)),
    sent('GET /v1/pets', [`Authorization: Bearer  ${key} ${key}`]),
    sent('GET /v1/pets', [bearer, bearer]),
    sent('GET /v1/pets', [`Authorization: Basic ${key}`]),
    sent('GET /v1/pets', [`Authorization: ${key}`]),
    sent('GET /v1/pets', [`Authorization: Bearer ${key}x`]),
    sent('GET /v1/pets', [`X-Api-Key: ${key}`, `Cookie: key=${key}`]),
    sent(`GET /v1/pets?api_key=${key}&access_token=${key}`, []),
    sent(`GET /v1/pets?api_key=${key}`, [bearer]),
    sent(`GET /openapi.json?api_key=${key}`, []),
    sent('GET /v1/pets', [`X-Request-Id: ${key}`]),
    sent('GET /v1/pets', [bearer, `X-Request-Id: id-${key}`]),
    post(`{"api_key":"${key}"}`),
    // Never whole, or no HTTP at all.
    `GET /v1/pets HTTP/9.9\r\n${bearer}\r\n\r\n`,
    `GET /v1/pets HTTP/1.1\r\n${bearer}\r\nbroken\r\n\r\n`,
    `POST /v1/pets HTTP/1.1\r\nHost: x\r\n${bearer}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    `FOO ${key}\r\n\r\n`,
  ]
}

/** A key in a path: the response may repeat it to the client that sent it, the log may not. */
function pathsWith(key: string): readonly string[] {
  const encoded = [...key].map(char => `%${char.charCodeAt(0).toString(16)}`).join('')
  return [
    key,
    `v1/${key}`,
    `v1/pets/${key}`,
    `v1/${key}/x`,
    `v1/${key.replace('_', '%5f')}`,
    `v1/${encoded}`,
  ].map(path => `GET /${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
}

/** What is left of a key after the characters that `keys list` shows: nobody may find this anywhere. */
const secretOf = (key: string) => key.slice(9)

/** Sends them all, each on a connection of its own, and gives back everything that was answered. */
async function answersTo(server: Server, requests: readonly string[]): Promise<string> {
  const port = portOf(server)
  const exchanges = await Promise.all(requests.map(bytes => exchange(port, [bytes], { expected: 1 })))
  return exchanges.map(({ received }) => received).join('\n')
}

/** While the animals' table is away, every operation fails for a reason of the service's own. */
async function withoutTable(folder: string, work: () => Promise<string>): Promise<string> {
  using database = new Database(join(folder, 'data/petstore.db'), { readwrite: true, strict: true })
  database.run('PRAGMA busy_timeout = 5000')
  database.run('ALTER TABLE pets RENAME TO pets_away')
  const answers = await work()
  database.run('ALTER TABLE pets_away RENAME TO pets')
  return answers
}

async function breakOff(server: Server, key: string): Promise<void> {
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: 99\r\n\r\n`
  using _crowd = await openCrowd(portOf(server), 5, `${head}{"name":"${key}`)
  await Bun.sleep(100)
}

/** What every user of the machine can read of a process. */
function processTitle(pid: number): string {
  return ['cmdline', 'comm', 'status'].map(file => readFileSync(`/proc/${pid}/${file}`, 'latin1')).join('\n')
}

/** Every byte of every file of the store. */
function storedIn(folder: string): string {
  const data = join(folder, 'data')
  return readdirSync(data)
    .map(name => readFileSync(join(data, name), 'latin1'))
    .join('\n')
}

test('whatever is sent and goes wrong, no key shows in answers, logs, process titles or files', async () => {
  using folder = temporaryFolder()
  const storeKey = await createKey(folder.path, 'till')
  const unknownKey = generateApiKey()
  const keys = [environmentKey, storeKey, unknownKey]
  const env = { PETSTORE_API_KEY: environmentKey }
  await using server = await startServer({ cwd: folder.path, env })

  const requests = keys.flatMap(requestsWith)
  const answers = await answersTo(server, requests)
  const failures = await withoutTable(folder.path, () => answersTo(server, requests))
  for (const key of keys) await breakOff(server, key)
  for (const status of [200, 201, 400, 401, 404, 405, 413, 415])
    expect(answers).toContain(`HTTP/1.1 ${status}`)
  expect(failures).toContain('"code":"internal_error"')
  const [notFound = ''] = pathsWith('a').map(bytes => bytes.split(' ')[1])
  await answersTo(server, [...keys.flatMap(pathsWith), ...pathsWith('a')])
  const title = processTitle(server.pid)
  expect(title).toContain('serve')
  const storedWhileServing = storedIn(folder.path)
  const { exitCode, stdout, stderr } = await server.stop('SIGTERM')
  expect(exitCode).toBe(0)
  // Paths were logged, so that there was a place for a key to show.
  expect(stderr).toContain(`"path":"${notFound}"`)

  const stored = storedIn(folder.path)
  const places = { answers, failures, title, stdout, stderr, storedWhileServing, stored }
  for (const [place, text] of Object.entries(places)) {
    for (const key of keys) expect([place, text.includes(secretOf(key))]).toEqual([place, false])
  }
  expect(stored).toContain(hashApiKey(storeKey))
})

test('the first key shows in the greeting of the first start, and never again', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path })
  const greeting = server.stdout
  const [, key = ''] = /first API key, shown only this once: (\w+)\n/.exec(greeting) ?? []
  expect(key).toMatch(/^pets_\w{36}$/)
  const answers = await answersTo(server, requestsWith(key))
  const failures = await withoutTable(folder.path, () => answersTo(server, requestsWith(key)))
  expect(failures).toContain('"code":"internal_error"')
  const title = processTitle(server.pid)
  const { stdout, stderr } = await server.stop('SIGTERM')
  expect(stdout).toBe(greeting)

  const stored = storedIn(folder.path)
  for (const [place, text] of Object.entries({ answers, failures, title, stderr, stored })) {
    expect([place, text.includes(secretOf(key))]).toEqual([place, false])
  }
  expect(stored).toContain(hashApiKey(key))
})
