import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { type Crowd, KeepAliveClient, openCrowd, repliesIn, withClients } from '../support/connections.ts'
import { loggedBy, program, residentBytes, startServer, until } from '../support/process.ts'

const key = 'a-key-for-hostile-connections-01'
const head = `Host: pets.example\r\nAuthorization: Bearer ${key}\r\n`

/** Runs the work against a server of its own, which then has no animals and stops as usual. */
async function withServer(work: (port: number) => Promise<void>): Promise<void> {
  await using server = await startServer({ env: { PETSTORE_API_KEY: key } })
  await work(server.port)
  const stopped = await server.stop('SIGTERM')
  expect([stopped.exitCode, loggedBy(stopped)]).toEqual([0, ['info Stopping']])
}

/** Each crowd sends its bit every second, while new clients are served, until the server has closed all connections. */
async function dribble(port: number, ...crowds: readonly (readonly [Crowd, string])[]): Promise<void> {
  const open = () => crowds.reduce((sum, [crowd]) => sum + crowd.open, 0)
  let servedBeside = 0
  await until('the end of all connections', async () => {
    for (const [crowd, bit] of crowds) crowd.send(bit)
    using client = new KeepAliveClient(port, key)
    const reply = { status: 200, text: '[]' }
    expect(await client.send({ method: 'GET', path: '/v1/pets' })).toMatchObject({ reply })
    if (open() === 0) return true
    servedBeside++
    await Bun.sleep(1_000)
    return undefined
  })
  expect(servedBeside).toBeGreaterThan(0)
}

test.concurrent.each([
  [500, 'that send their headers a byte a second', `GET /v1/pets HTTP/1.1\r\n${head}X-Slow: `, 'a'],
  [2_000, 'that are silent', '', ''],
])('%d connections %s do not block others, and are closed', (count, _, start, bit) =>
  withServer(async port => {
    using crowd = await openCrowd(port, count, start)
    await dribble(port, [crowd, bit])
    // None of these requests was ever whole, so none was answered.
    expect(new Set(crowd.received)).toEqual(new Set(['']))
  }),
)

test.concurrent('500 connections that send a body a byte a second do not block others, and get 408', () =>
  withServer(async port => {
    const start = `POST /v1/pets HTTP/1.1\r\n${head}`
    using withLength = await openCrowd(port, 250, `${start}Content-Length: 60000\r\n\r\n`)
    using inChunks = await openCrowd(port, 250, `${start}Transfer-Encoding: chunked\r\n\r\n`)
    await dribble(port, [withLength, ' '], [inChunks, '1\r\n \r\n'])
    for (const text of [...withLength.received, ...inChunks.received]) {
      const text408 = expect.stringContaining('"code":"request_timeout"')
      expect(repliesIn(text)).toMatchObject([{ status: 408, text: text408 }])
    }
  }))

const descriptorsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length
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
    await until('the descriptors to run out', () => descriptorsOf(server.pid) >= 255 || undefined)
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
  async function load(): Promise<void> {
    for (let round = 0; round < 30; round++) {
      await withClients({ port, key, count }, async (client, index) => {
        for (let i = 0; i < 25; i++) {
          const headers = { 'Idempotency-Key': crypto.randomUUID() }
          const request = mixed[(index + i) % mixed.length] ?? mixed[0]
          outcomes.add((await client.send({ ...request, headers })).kind)
        }
      })
    }
  }
  // The first ones fill the caches. A leak of 1 KiB for each request takes 12 MiB every time.
  await until('a load that leaves nothing', async () => {
    const [bytes, descriptors] = [residentBytes(pid), descriptorsOf(pid)]
    await load()
    expect([...outcomes]).toEqual(['answered'])
    // The last connections may not be closed yet.
    const closed = descriptorsOf(pid) <= descriptors + count
    return (closed && residentBytes(pid) < bytes + 12 * 1024 ** 2) || undefined
  })
})
