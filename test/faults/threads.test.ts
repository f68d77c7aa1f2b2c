import { describe, expect, test } from 'bun:test'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeCursor } from '../../src/page.ts'
import { KeepAliveClient, type Reply, withClients } from '../support/connections.ts'
import { animalOf, Ledger } from '../support/load.ts'
import { freePort, loggedBy, projectFolder, Server, startServer, temporaryFolder, until } from '../support/process.ts'

const key = 'a-key-for-threads-0123456789'
/** Ends the further threads on request. */
const preload = join(projectFolder, 'test/faults/dying-serving-thread.ts')
const dyingThreads = [process.execPath, '--no-env-file', '--preload', preload, join(projectFolder, 'src/cli/main.ts')]
const env = { PETSTORE_API_KEY: key, PETSTORE_THREADS: '3' }
const clients = 32
/** 10,000, or 100,000 in `npm run test:faults`. */
const trials = 1_000 * Number(process.env['PETSTORE_TEST_CRASH_ROUNDS'] ?? 10)

/** How many sockets listen on the port. */
function listeners(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
  return lines.map(line => line.trim().split(/\s+/)).filter(([, at, , state]) => at?.endsWith(local) && state === '0A')
    .length
}

async function reply(client: KeepAliveClient, ...sent: Parameters<KeepAliveClient['send']>): Promise<Reply> {
  const outcome = await client.send(...sent)
  if (outcome.kind !== 'answered') throw new Error(`${sent[0].path}: ${outcome.kind}`)
  return outcome.reply
}

/** The value of a metric, over all its labels. */
async function metric(client: KeepAliveClient, name: string): Promise<number> {
  const { text } = await reply(client, { method: 'GET', path: '/metrics' })
  const lines = text.matchAll(new RegExp(`^${name}(?:{.*})? (\\S+)$`, 'gm'))
  return Array.from(lines, ([, value]) => Number(value)).reduce((sum, value) => sum + value, 0)
}

describe.skipIf(process.platform !== 'linux')('with several threads', () => {
  test(`an animal is seen by every read that starts after its 201, on whichever thread: ${trials} trials`, async () => {
    await using server = await startServer({ env })
    const ledger = new Ledger()
    const stale: string[] = []
    let left = trials
    await withClients({ port: server.port, key, count: clients }, async writing => {
      using reading = new KeepAliveClient(server.port, key)
      while (left-- > 0) {
        const { body } = ledger.next()
        const { text } = await reply(writing, { method: 'POST', path: '/v1/pets', body })
        const { id } = animalOf(text)
        // This page is requested again and again while it fills, so it is mostly cached.
        const cursor = writeCursor(BigInt(Math.floor((Number(id) - 1) / 100) * 100), undefined)
        const page = await reply(reading, { method: 'GET', path: `/v1/pets?limit=100&cursor=${cursor}` })
        if (!page.text.includes(`{"id":${id},`)) stale.push(`page without ${id}`)
        const { status } = await reply(reading, { method: 'GET', path: `/v1/pets/${id}` })
        if (status !== 200) stale.push(`${status} for ${id}`)
      }
    })
    expect(stale).toEqual([])
    expect(await metric(new KeepAliveClient(server.port, key), 'petstore_page_cache_hits_total')).toBeGreaterThan(0)
  }, 120_000)

  test('it is one server: one greeting, one log, the metrics of all threads, one limit for a key', async () => {
    const settings = { PETSTORE_RATE_LIMIT: '500/h', PETSTORE_TRUSTED_PROXIES: '192.0.2.1' }
    await using server = await startServer({ env: { ...env, ...settings } })
    expect(listeners(server.port)).toBe(3)
    const statuses: number[] = []
    const ledger = new Ledger()
    await withClients({ port: server.port, key, count: clients }, async client => {
      for (let i = 0; i < 20; i++) {
        const { status } = await reply(client, { method: 'POST', path: '/v1/pets', body: ledger.next().body })
        statuses.push(status)
      }
    })
    expect(statuses.filter(status => status === 201)).toHaveLength(500)
    expect(statuses.filter(status => status === 429)).toHaveLength(20 * clients - 500)
    await withClients({ port: server.port, key, count: 8 }, async client => {
      expect(await metric(client, 'petstore_pets_created_total')).toBe(500)
      expect(await metric(client, 'petstore_commit_writes_sum')).toBe(500)
      expect(await metric(client, 'petstore_writes_waiting')).toBe(0)
      expect(await metric(client, 'petstore_build_info')).toBe(1)
      expect(await metric(client, 'process_start_time_seconds')).toBeCloseTo(Date.now() / 1_000, -2)
    })
    const ended = await server.stop('SIGTERM')
    expect(ended.exitCode).toBe(0)
    expect(ended.stdout.match(/serves/g)).toHaveLength(1)
    expect(loggedBy(ended)).toEqual(['info Stopping'])
    const isCreation = (line: string) => line.includes('"method":"POST"') && line.includes('"client":"127.0.0.1"')
    const requests = ended.stderr.split('\n').filter(isCreation)
    expect(requests).toHaveLength(20 * clients)
  })

  test('of two servers that start on one port at once, one is refused; so is a third, with any number of threads', async () => {
    for (let round = 0; round < 3; round++) {
      await using stack = new AsyncDisposableStack()
      const port = freePort()
      const outcome = async (threads: string) => {
        const { path: cwd } = stack.use(temporaryFolder())
        const command = [join(projectFolder, 'bin/petstore'), 'serve', '--port', `${port}`, '--threads', threads]
        const server = stack.use(new Server(command, { cwd, env }))
        await server.says('its address or its end', () => server.isSettled || undefined)
        return server.stderr.includes('the port is in use') ? 'refused' : server.stdout.split(' ')[2]
      }
      expect((await Promise.all([outcome('2'), outcome('2')])).toSorted()).toEqual(['refused', 'serves'])
      expect(await Promise.all([outcome('2'), outcome('1')])).toEqual(['refused', 'refused'])
      expect(listeners(port)).toBe(2)
    }
  })

  test.each([
    ['exits', '/die/exit', ['error A serving thread ended; restarting']],
    ['fails', '/die/throw', ['error A serving thread ended (RangeError: out of luck); restarting']],
  ])(
    'a thread that %s is replaced within a second; the others go on, and nothing acknowledged is lost',
    async (_, path, lines) => {
      await using server = await startServer({ command: [...dyingThreads, 'serve', '--port', '0'], env })
      using observer = new KeepAliveClient(server.port, key)
      const ledger = new Ledger()
      let lost = 0
      let stopping = false
      const working = withClients({ port: server.port, key, count: clients }, async client => {
        while (!stopping) {
          const { body } = ledger.next()
          const outcome = await client.send({ method: 'POST', path: '/v1/pets', body })
          // When a thread exits, Bun answers some of its requests with 503 and no body.
          const isAnswered = outcome.kind === 'answered' && outcome.reply.text !== ''
          if (isAnswered) ledger.acknowledge(body, outcome.reply)
          else {
            lost++
            ledger.uncertain.add(body)
          }
        }
      })
      await until('animals', () => ledger.acknowledged.size > 200 || undefined)
      const createdBefore = await metric(observer, 'petstore_pets_created_total')
      // The main thread answers 404 and lives.
      await until('a thread that dies', async () => {
        using killer = new KeepAliveClient(server.port, key)
        const outcome = await killer.send({ method: 'GET', path })
        return outcome.kind !== 'answered' || outcome.reply.status !== 404 || undefined
      })
      const diedMs = performance.now()
      await until('its end', () => server.stderr.includes('serving thread ended') || undefined)
      await until('three listeners', () => listeners(server.port) === 3 || undefined)
      expect(performance.now() - diedMs).toBeLessThan(1_000)
      const before = ledger.acknowledged.size
      await until('more animals', () => ledger.acknowledged.size > before + 1_000 || undefined)
      stopping = true
      await working
      // About a third of the connections belonged to the thread.
      expect(lost).toBeWithin(0, clients)
      using checking = new KeepAliveClient(server.port, key)
      await ledger.expectEachOnce(checking)
      expect(await metric(checking, 'petstore_pets_created_total')).toBeGreaterThanOrEqual(createdBefore)
      expect(await metric(checking, 'petstore_http_requests_in_flight')).toBe(1)
      expect(loggedBy(await server.stop('SIGTERM'))).toEqual([...lines, 'info Stopping'])
    },
  )

  /** Sends requests until a further thread has ended. The main thread answers 404 and lives. */
  const endThread = (server: Server) =>
    until('a thread that dies', async () => {
      using killer = new KeepAliveClient(server.port, key)
      await killer.send({ method: 'GET', path: '/die/exit' })
      await Bun.sleep(100)
      return server.stderr.includes('serving thread ended') || undefined
    })

  test('a thread does not start again with a file that has taken the place of the store', async () => {
    await using server = await startServer({ command: [...dyingThreads, 'serve', '--port', '0'], env })
    const file = join(server.cwd, 'data/petstore.db')
    renameSync(file, `${file}.old`)
    writeFileSync(file, '')
    await endThread(server)
    await server.says('the reason', () => server.stderr.includes('was moved, replaced or deleted') || undefined)
    expect(listeners(server.port)).toBe(2)
    renameSync(`${file}.old`, file)
    await until('three listeners', () => listeners(server.port) === 3 || undefined)
  })

  test('a stop while a thread starts again does not wait for it', async () => {
    await using server = await startServer({
      command: [...dyingThreads, 'serve', '--port', '0'],
      env: { ...env, PETSTORE_DRAIN_TIME: '20s', PETSTORE_THREADS: '2' },
    })
    await until('a thread that dies', async () => {
      using client = new KeepAliveClient(server.port, key)
      const outcome = await client.send({ method: 'GET', path: '/die/exit' })
      return outcome.kind === 'lost' || (outcome.kind === 'answered' && outcome.reply.status !== 404) || undefined
    })
    const stoppedMs = performance.now()
    expect((await server.stop('SIGTERM')).exitCode).toBe(0)
    expect(performance.now() - stoppedMs).toBeLessThan(10_000)
  })
})
