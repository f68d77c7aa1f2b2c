import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { issueApiKey } from '../../src/api-key.ts'
import { openStores } from '../../src/store/open.ts'
import { KeepAliveClient } from '../support/connections.ts'
import { describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { freePort, loggedBy, startServer, until } from '../support/process.ts'
import type { Attack } from './attacker.ts'
import { expectOthersServed } from './load.ts'

const key = 'a-key-for-attacks-0123456789'
const credential = `Authorization: Bearer ${key}\r\n`
const head = (line: string, headers = '') => `${line} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
const chunked = 'Transfer-Encoding: chunked\r\n'
const close = 'Connection: close\r\n'
const chunk = '1\r\n \r\n'

/** A page of 100 of them has 405 KB. */
const stored = Array.from({ length: 100 }, (_, index) =>
  JSON.stringify({ name: String(index).padStart(4).padEnd(1_990, '🐕'), categoryId: index, status: 'sold' }),
)
const [first = ''] = stored

/** Attacks from another process until it is disposed. `sees` waits for a response, such as `401 missing_api_key`. */
async function startAttack(port: number, attack: Attack) {
  const script = join(import.meta.dir, 'attacker.ts')
  const command = [process.execPath, '--no-env-file', script, JSON.stringify({ port, ...attack })]
  await using stack = new AsyncDisposableStack()
  const attacker = stack.use(Bun.spawn(command, { stdin: 'pipe', stdout: 'pipe' }))
  let printed = ''
  const collect = async () => {
    for await (const text of attacker.stdout.pipeThrough(new TextDecoderStream())) printed += text
  }
  void collect()
  const sees = (line: string) => until(line, () => printed.split('\n').includes(line) || undefined)
  await sees('connected')
  return Object.assign(stack.move(), { sees })
}

test.each<[string, Attack, string]>([
  [
    'endless chunks of one byte',
    { connections: 16, first: head('POST /v1/pets', chunked), endless: chunk },
    '401 missing_api_key',
  ],
  [
    'endless chunks of one byte with a key',
    { connections: 1, first: head('POST /v1/pets', credential + chunked), endless: chunk },
    '413 body_too_large',
  ],
  ['endless requests on one connection', { connections: 16, first: '', endless: head('GET /v1/pets') }, 'connected'],
  ['random keys', { connections: 32, triesKeys: true }, '401 invalid_api_key'],
  [
    'a new connection for each large page',
    { connections: 32, first: head('GET /v1/pets?limit=100&status=sold', close + credential) },
    '200',
  ],
  ['256 new connections at a time', { connections: 256, first: head('GET /', close) }, '200'],
])('beside %s, four clients read and add, and get only their own results', async (_, attack, response) => {
  await using server = await startServer({ env: { PETSTORE_API_KEY: key } })
  for (const body of stored) expect((await server.fetch('/pets', key, { method: 'POST', body })).status).toBe(201)
  await expectOthersServed({ port: server.port, key, stored }, async load => {
    await using attacker = await startAttack(server.port, attack)
    await load.makesProgress()
    await attacker.sees(response)
  })
  const stopped = await server.stop('SIGTERM')
  // This process reads the log, and may be too busy for every line of an attacker's requests.
  const logged = loggedBy(stopped).filter(line => line !== 'warn Dropped log lines: the log was not read')
  expect([stopped.exitCode, logged]).toEqual([0, ['info Stopping']])
})

/** Keys that are stored at this address, and that no server has verified yet. */
async function storedKeys(url: string, count: number): Promise<readonly string[]> {
  const stores = await openStores(url, { create: true })
  const issued = Array.from({ length: count }, () =>
    issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date() }),
  )
  for (const { record } of issued) await stores.keys.create(record)
  await stores.close()
  return issued.map(({ key }) => key)
}

/** Four clients send the requests with each key, on a new connection for each. None may fail. */
async function expectServed(port: number, keys: readonly string[]): Promise<void> {
  const requests = [
    [200, { method: 'GET', path: '/v1/pets' }],
    [201, { method: 'POST', path: '/v1/pets', body: first }],
  ] as const
  const remaining = keys.values()
  const ask = async () => {
    for (const key of remaining) {
      using client = new KeepAliveClient(port, key)
      for (const [status, request] of requests) expect(await client.send(request)).toMatchObject({ reply: { status } })
    }
  }
  await Promise.all(Array.from({ length: 4 }, ask))
}

describeWithPostgres('while 2,500 connections try random keys on PostgreSQL, no request fails', () => {
  test('with keys that are used for the first time, with verified ones, and after a restart of the server', async () => {
    await using database = await sharedDatabase()
    const keys = await storedKeys(database.url, 40)
    const port = freePort()
    const start = () => startServer({ env: { DATABASE_URL: database.url }, args: ['serve', '--port', `${port}`] })
    await using server = await start()
    await expectServed(port, keys.slice(0, 20))
    await using attacker = await startAttack(port, { connections: 2_500, triesKeys: true })
    await attacker.sees('401 invalid_api_key')
    await expectServed(port, keys)
    await server.stop('SIGKILL')
    await using _restarted = await start()
    await expectServed(port, keys)
  })
})
