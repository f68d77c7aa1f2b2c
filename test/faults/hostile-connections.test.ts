import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { type Crowd, KeepAliveClient, openCrowd, repliesIn, withClients } from '../support/connections.ts'
import { loggedBy, program, residentBytes, startServer, until } from '../support/process.ts'

const key = 'a-key-for-hostile-connections-01'
const head = `Host: pets.example\r\nAuthorization: Bearer ${key}\r\n`
const growthBytesMax = 100 * 1024 ** 2

/** Runs the work against a server of its own, whose memory must not grow much and which must stop as usual. */
async function withServer(work: (port: number) => Promise<void>): Promise<void> {
  await using server = await startServer({ env: { PETSTORE_API_KEY: key } })
  await expectOthersServed(server.port)
  const before = residentBytes(server.pid)
  await work(server.port)
  expect(residentBytes(server.pid) - before).toBeLessThan(growthBytesMax)
  const stopped = await server.stop('SIGTERM')
  expect([stopped.exitCode, loggedBy(stopped)]).toEqual([0, ['info Stopping']])
}

/** A new client is served, and the catalogue is still empty. */
async function expectOthersServed(port: number): Promise<void> {
  using client = new KeepAliveClient(port, key)
  const reply = { status: 200, text: '[]' }
  expect(await client.send({ method: 'GET', path: '/v1/pets' })).toMatchObject({ reply })
}

/** Each crowd sends its bit every second, while others are served, until the server has closed all connections. */
async function dribble(port: number, ...crowds: readonly (readonly [Crowd, string])[]): Promise<void> {
  const open = () => crowds.reduce((sum, [crowd]) => sum + crowd.open, 0)
  const size = open()
  await expectOthersServed(port)
  // Others were served while none of these had been closed.
  expect(open()).toBe(size)
  const end = async () => {
    for (const [crowd, bit] of crowds) crowd.send(bit)
    await expectOthersServed(port)
    if (open() === 0) return true
    await Bun.sleep(1_000)
    return undefined
  }
  await until('the end of all connections', end, 50_000)
}

test.concurrent.each([
  [500, 'that send their headers a byte a second', `GET /v1/pets HTTP/1.1\r\n${head}X-Slow: `, 'a'],
  [2_000, 'that are silent', '', ''],
])('%d connections %s delay no one, cost little and are closed', (count, _, start, bit) =>
  withServer(async port => {
    using crowd = await openCrowd(port, count, start)
    expect(crowd.open).toBe(count)
    await dribble(port, [crowd, bit])
    // None of these requests was ever whole, so none was answered.
    expect(new Set(crowd.received)).toEqual(new Set(['']))
  }),
)

test.concurrent('500 connections that send a body a byte a second delay no one, and get 408', () =>
  withServer(async port => {
    const start = `POST /v1/pets HTTP/1.1\r\n${head}`
    using withLength = await openCrowd(port, 250, `${start}Content-Length: 60000\r\n\r\n`)
    using inChunks = await openCrowd(port, 250, `${start}Transfer-Encoding: chunked\r\n\r\n`)
    expect([withLength.open, inChunks.open]).toEqual([250, 250])
    await dribble(port, [withLength, ' '], [inChunks, '1\r\n \r\n'])
    for (const text of [...withLength.received, ...inChunks.received]) {
      const text408 = expect.stringContaining('"code":"request_timeout"')
      expect(repliesIn(text)).toMatchObject([{ status: 408, text: text408 }])
    }
  }))

const gets = '/v1/pets /openapi.json / /docs /assets/web/docs/docs.css /readyz'.split(' ')
const requests = [
  ...gets.map(path => ({ method: 'GET', path }) as const),
  { method: 'POST', path: '/v1/pets', body: '{"name":"Rex","categoryId":7}' } as const,
]

test('without file descriptors, requests on open connections are answered; with them again, all works', async () => {
  const command = ['sh', '-c', `ulimit -n 256; exec "${program}" serve --port 0`]
  await using server = await startServer({ env: { PETSTORE_API_KEY: key }, command })
  const clients = requests.map(request => ({ request, client: new KeepAliveClient(server.port, key) }))
  // A first request makes sure that the server has accepted each connection, and asks for nothing that it prepares.
  for (const { client } of clients) {
    expect(await client.send({ method: 'GET', path: '/livez' })).toMatchObject({ reply: { status: 200 } })
  }
  const expectAllServed = async () => {
    for (const { request, client } of clients) {
      const status = request.method === 'POST' ? 201 : 200
      expect([request, await client.send(request)]).toMatchObject([request, { reply: { status } }])
    }
  }
  {
    using _ = await openCrowd(server.port, 400)
    await until('the descriptors to run out', async () => {
      const { exited } = Bun.spawn(['sh', '-c', `test "$(ls /proc/${server.pid}/fd | wc -l)" -ge 255`])
      return (await exited) === 0 || undefined
    })
    await expectAllServed()
  }
  for (const { client } of clients) client[Symbol.dispose]()
  await until('connections to be accepted again', () => server.fetch('/pets', key).then(() => true))
  await expectAllServed()
})

const mixed = [
  ...requests,
  { method: 'GET', path: '/v1/pets/1' },
  { method: 'GET', path: '/v1/none' },
  { method: 'POST', path: '/v1/pets', body: '{"name":"","categoryId":7}' },
] as const

test('12,000 requests on 480 connections leave no descriptor open, and take no more memory', async () => {
  const args = ['serve', '--port', '0', '--log-level', 'error']
  await using server = await startServer({ env: { PETSTORE_API_KEY: key }, args })
  const { port, pid } = server
  const count = 16
  const outcomes = new Set<string>()
  async function load(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      await withClients({ port, key, count }, async (client, index) => {
        for (let i = 0; i < 25; i++) {
          const headers = { 'Idempotency-Key': crypto.randomUUID() }
          const request = mixed[(index + i) % mixed.length] ?? mixed[0]
          outcomes.add((await client.send({ ...request, headers })).kind)
        }
      })
    }
  }
  const used = () => ({ bytes: residentBytes(pid), descriptors: readdirSync(`/proc/${pid}/fd`).length })
  // Fills the caches.
  await load(20)
  const before = used()
  await load(30)
  const after = used()
  expect([...outcomes]).toEqual(['answered'])
  // 1 KiB for each request; without a leak, 3 MiB were the most.
  expect(after.bytes - before.bytes).toBeLessThan(12 * 1024 ** 2)
  // The last connections may not be closed yet.
  expect(after.descriptors - before.descriptors).toBeLessThanOrEqual(count)
})
