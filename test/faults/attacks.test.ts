import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueApiKey } from '../../src/api-key.ts'
import { openStores } from '../../src/store/open.ts'
import { exchange, KeepAliveClient } from '../support/connections.ts'
import { expectOthersServed } from '../support/load.ts'
import { describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { freePort, loggedBy, type Server, startServer } from '../support/process.ts'
import type { Attack } from './attacker.ts'

const key = 'a-key-for-attacks-0123456789'
const attackMs = 2_000
const floodMs = 8_000
const restMs = 20
const credential = `Authorization: Bearer ${key}\r\n`
const head = (line: string, headers = '') => `${line} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
const chunked = 'Transfer-Encoding: chunked\r\n'
const close = 'Connection: close\r\n'
const chunk = '1\r\n \r\n'
const posted = head('POST /v1/pets', chunked)

/** A page of 100 of them has 405 KB. */
const stored = Array.from({ length: 100 }, (_, index) =>
  JSON.stringify({ name: String(index).padStart(4).padEnd(1_990, '🐕'), categoryId: index, status: 'sold' }),
)

const [first = ''] = stored

/**
 * Four innocent clients complete at least ten requests in each second for which the server has computed. The time that
 * has passed would depend on what else the machine does.
 */
const cpuMsMax = 100

/** Attacks for a while. Gives how many connections got which response, such as `401 missing_api_key`. */
async function attackFor(ms: number, port: number, attack: Attack): Promise<Record<string, number>> {
  const script = join(import.meta.dir, 'attacker.ts')
  const command = [process.execPath, '--no-env-file', script, JSON.stringify({ port, ...attack })]
  const attacker = Bun.spawn(command, { stdin: 'pipe', stdout: 'pipe' })
  await Bun.sleep(ms)
  await attacker.stdin.end()
  return JSON.parse(await attacker.stdout.text())
}

/** The time for which a process has run its first thread, where a server has its event loop. */
function mainThreadCpuMs(pid: number): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
  return Number(nanoseconds) / 1_000_000
}

async function attackWithAnimals<T>(attack: (server: Server) => Promise<T>): Promise<T> {
  await using server = await startServer({ env: { PETSTORE_API_KEY: key } })
  for (const body of stored) expect((await server.fetch('/pets', key, { method: 'POST', body })).status).toBe(201)
  const { completed, result } = await expectOthersServed({ port: server.port, key, stored }, async () => {
    const beforeMs = mainThreadCpuMs(server.pid)
    const attacked = await attack(server)
    return { attacked, cpuMs: mainThreadCpuMs(server.pid) - beforeMs }
  })
  expect(result.cpuMs / completed).toBeLessThan(cpuMsMax)
  const stopped = await server.stop('SIGTERM')
  // This process reads the log, and may be too busy for every line of an attacker's requests.
  const logged = loggedBy(stopped).filter(line => line !== 'warn Dropped log lines: the log was not read')
  expect([stopped.exitCode, logged]).toEqual([0, ['info Stopping']])
  return result.attacked
}

test.each<[string, Attack, string | undefined]>([
  ['endless chunks of one byte', { connections: 16, first: posted, endless: chunk }, '401 missing_api_key'],
  [
    'endless chunks of one byte with a key',
    { connections: 1, first: head('POST /v1/pets', credential + chunked), endless: chunk },
    '413 body_too_large',
  ],
  ['endless chunks behind a GET', { connections: 16, first: head('GET /livez', chunked), endless: chunk }, '200'],
  [
    'a new connection for each empty chunked creation',
    { connections: 64, first: `${head('POST /v1/pets', close + chunked)}0\r\n\r\n` },
    '401 missing_api_key',
  ],
  ['endless requests on one connection', { connections: 16, first: '', endless: head('GET /v1/pets') }, undefined],
  ['random keys', { connections: 32, triesKeys: true }, '401 invalid_api_key'],
  [
    'a new connection for each large page',
    { connections: 32, first: head('GET /v1/pets?limit=100&status=sold', close + credential) },
    '200',
  ],
])('%s do not take the service from others', async (_, attack, response) => {
  const responses = await attackWithAnimals(({ port }) => attackFor(attackMs, port, attack))
  if (response) expect(responses[response]).toBeGreaterThan(0)
})

test('beside 256 new connections at a time, 50 pipelined reads get their responses, or the connection is closed', async () => {
  const reads = head('GET /v1/pets?limit=1', credential).repeat(50)
  const attack = { connections: 256, first: head('GET /', close) }
  await attackWithAnimals(async ({ port }) => {
    const attacking = attackFor(attackMs, port, attack)
    while (Bun.peek.status(attacking) === 'pending') {
      const { replies, closed } = await exchange(port, [reads], { expected: 50, quietMs: 1 })
      for (const { status, text } of replies) expect([status, text]).toEqual([200, `[{"id":1,${first.slice(1)}]`])
      expect(closed || replies.length === 50).toBe(true)
    }
    await attacking
  })
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

/** The responses that four clients get until the flood is over, each with one key after another. */
async function outcomesDuring(flood: Promise<unknown>, port: number, keys: readonly string[]) {
  const outcomes = new Set<string>()
  let next = 0
  const requests = [
    { method: 'GET', path: '/v1/pets' },
    { method: 'POST', path: '/v1/pets', body: first },
  ] as const
  const ask = async () => {
    while (Bun.peek.status(flood) === 'pending') {
      using client = new KeepAliveClient(port, keys[next++ % keys.length] ?? '')
      for (const request of requests) {
        const outcome = await client.send(request)
        outcomes.add(outcome.kind === 'answered' ? `${request.method} ${outcome.reply.status}` : outcome.kind)
      }
      await Bun.sleep(restMs)
    }
  }
  await Promise.all(Array.from({ length: 4 }, ask))
  return outcomes
}

describeWithPostgres('while 2,500 connections try random keys on PostgreSQL, no request fails', () => {
  test.each([
    ['with keys that were verified before', 4, false],
    ['with keys that are used for the first time', 1_000, false],
    ['after a restart of the server', 4, true],
  ])('%s', async (_, keyCount, restarts) => {
    await using database = await sharedDatabase()
    const keys = await storedKeys(database.url, keyCount)
    const port = freePort()
    const options = { env: { DATABASE_URL: database.url }, args: ['serve', '--port', `${port}`] }
    await using stack = new AsyncDisposableStack()
    const server = stack.use(await startServer(options))
    if (keyCount === 4) for (const key of keys) expect((await server.fetch('/pets', key)).status).toBe(200)
    const flood = attackFor(floodMs, port, { connections: 2_500, triesKeys: true })
    if (restarts) {
      await server.says('that keys are tried', () => server.stderr.includes('"status":401') || undefined)
      await server.stop('SIGKILL')
      stack.use(await startServer(options))
    }
    const outcomes = await outcomesDuring(flood, port, keys)
    expect(outcomes).toEqual(new Set(['GET 200', 'POST 201']))
    expect(await flood).toMatchObject({ '401 invalid_api_key': expect.any(Number) })
  })
})
