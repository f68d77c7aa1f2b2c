import { expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type KeepAliveClient, keepAliveClient, type Outcome, withClients } from '../support/connections.ts'
import { allAnimals, animalBody, animalOf, inspectStore } from '../support/load.ts'
import {
  loggedBy,
  portOf,
  projectFolder,
  type Server,
  startServer,
  temporaryFolder,
  testMsMax,
  until,
} from '../support/process.ts'

setDefaultTimeout(testMsMax)

const clients = 64
const key = 'a-key-for-stopping-0123456789'

type Lost = Extract<Outcome, { kind: 'lost' }> & { readonly body: string | undefined }

interface Sightings {
  made: number
  /** Some answer has said `Connection: close`: the server is stopping. */
  stopping: boolean
  told: number
  /** Answers that left the connection open although the server was known to be stopping. */
  readonly leftOpen: string[]
  readonly unexpected: string[]
  readonly lost: Lost[]
  readonly acknowledged: Map<string, string>
}

const nothingSeen = (): Sightings => ({
  made: 0,
  stopping: false,
  told: 0,
  leftOpen: [],
  unexpected: [],
  lost: [],
  acknowledged: new Map(),
})

/** Lists on even turns, adds on odd ones, and records the outcome. */
async function takeTurn(client: KeepAliveClient, turn: number, seen: Sightings): Promise<Outcome> {
  const body = turn % 2 === 0 ? undefined : animalBody(++seen.made)
  const knownToStop = seen.stopping
  const outcome = await client.send(
    body === undefined ? { method: 'GET', path: '/v1/pets?limit=20' } : { method: 'POST', path: '/v1/pets', body },
  )
  if (outcome.kind === 'lost') seen.lost.push({ ...outcome, body })
  if (outcome.kind !== 'answered') return outcome
  const { status, text, closes } = outcome.reply
  if (knownToStop && !closes) seen.leftOpen.push(text)
  if (closes) {
    seen.stopping = true
    seen.told += 1
  }
  if (status !== (body === undefined ? 200 : 201)) seen.unexpected.push(text)
  else if (body !== undefined) {
    const animal = animalOf(text)
    if (animal.body !== body || seen.acknowledged.has(animal.id)) seen.unexpected.push(text)
    seen.acknowledged.set(animal.id, body)
  }
  return outcome
}

/** Stops a server under 64 busy connections, and gives what their clients saw and what was in the store then. */
async function stopUnderLoad(signal: NodeJS.Signals, afterClose: 'leave' | 'come back') {
  using folder = temporaryFolder()
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:pets.db', PETSTORE_DRAIN_TIME: '3s' }
  await using server = await startServer({ cwd: folder.path, env })
  const seen = nothingSeen()
  const port = portOf(server)
  const working = withClients({ port, key, count: clients }, async (client, index) => {
    for (let turn = index; ; turn++) {
      const outcome = await takeTurn(client, turn, seen)
      if (outcome.kind !== 'answered' || (outcome.reply.closes && afterClose === 'leave')) return
    }
  })
  await until('animals', () => seen.acknowledged.size > 2 * clients || undefined)
  const ended = await server.stop(signal)
  await working
  expect([ended.exitCode, loggedBy(ended)]).toEqual([0, ['info Stopping']])
  expect(readdirSync(folder.path)).toEqual(['pets.db'])
  return { seen, kept: await animalsInCopyOf(join(folder.path, 'pets.db')) }
}

/** What a server shows that is started elsewhere with a copy of this one file. */
async function animalsInCopyOf(file: string): Promise<Map<string, string>> {
  using folder = temporaryFolder()
  copyFileSync(file, join(folder.path, 'copy.db'))
  expect(inspectStore(join(folder.path, 'copy.db')).integrity).toBe('ok')
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:copy.db' }
  await using server = await startServer({ cwd: folder.path, env })
  using client = keepAliveClient(portOf(server), key)
  return await allAnimals(client)
}

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  `%s under ${clients} busy connections loses no request, tells each of them to close, and leaves one file with every animal`,
  async signal => {
    const { seen, kept } = await stopUnderLoad(signal, 'leave')
    expect(seen).toMatchObject({ told: clients, lost: [], leftOpen: [], unexpected: [] })
    expect(seen.acknowledged.size).toBeGreaterThan(clients)
    expect(kept).toEqual(seen.acknowledged)
  },
)

test('clients that come back while it stops are answered, refused, or turned away before anything was done', async () => {
  const { seen, kept } = await stopUnderLoad('SIGTERM', 'come back')
  expect(seen).toMatchObject({ leftOpen: [], unexpected: [] })
  expect(seen.told).toBeGreaterThan(clients)
  expect(kept).toEqual(seen.acknowledged)
  // Closing the port turns away whoever has just connected: never one that was served before, nor with half an answer.
  for (const lost of seen.lost) expect(lost).toMatchObject({ requestsBefore: 0, received: '' })
})

/** A client that has sent the beginning of an animal, and takes its time. */
async function beginAnimal({ url }: Server) {
  const { port, host } = new URL(url)
  const body = animalBody(1)
  const head = [
    'POST /v1/pets HTTP/1.1',
    `Host: ${host}`,
    `Authorization: Bearer ${key}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  let received = ''
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const socket = connect(Number(port), '127.0.0.1', () => socket.write(`${head.join('\r\n')}\r\n\r\n{`))
  socket.on('data', bytes => {
    received += bytes.toString()
  })
  socket.on('error', () => resolve())
  socket.on('close', () => resolve())
  const headers = { authorization: `Bearer ${key}` }
  await until('the request to begin', async () => {
    const metrics = await (await fetch(new URL('/metrics', url), { headers })).text()
    return metrics.includes('\npetstore_http_requests_in_flight 2\n') || undefined
  })
  return {
    async finish(): Promise<string> {
      socket.write(body.slice(1))
      await closed
      return received
    },
    [Symbol.dispose]: () => socket.destroy(),
  }
}

const startWithDrainTime = (cwd: string, time: string) =>
  startServer({ cwd, args: ['serve', '--port', '0', '--drain-time', time], env: { PETSTORE_API_KEY: key } })

test('a request that is under way when it is told to stop is answered, though its body takes longer', async () => {
  using folder = temporaryFolder()
  await using server = await startWithDrainTime(folder.path, '3s')
  using slow = await beginAnimal(server)
  const [ended, answer] = await Promise.all([server.stop('SIGTERM'), Bun.sleep(600).then(() => slow.finish())])
  expect(answer).toMatch(/^HTTP\/1\.1 201 /)
  expect(answer).toMatch(/^connection: close\r$/im)
  expect([ended.exitCode, loggedBy(ended)]).toEqual([0, ['info Stopping']])
  const kept = await animalsInCopyOf(join(folder.path, 'data/petstore.db'))
  expect([...kept.values()]).toEqual([animalBody(1)])
})

test('a body that never ends does not keep it from stopping once the drain time is over', async () => {
  using folder = temporaryFolder()
  await using server = await startWithDrainTime(folder.path, '1s')
  using _ = await beginAnimal(server)
  const startedAt = performance.now()
  const { exitCode, stderr } = await server.stop('SIGTERM')
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringMatching(/unanswered/i) })
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

test('with nothing under way it stops at once, however long the drain time is', async () => {
  using folder = temporaryFolder()
  await using server = await startWithDrainTime(folder.path, '15s')
  const startedAt = performance.now()
  const stopped = await server.stop('SIGTERM')
  expect([stopped.exitCode, loggedBy(stopped)]).toEqual([0, ['info Stopping']])
  expect(performance.now() - startedAt).toBeLessThan(3_000)
})

test.skipIf(process.platform !== 'linux')('under nohup it goes on after a SIGHUP', async () => {
  using folder = temporaryFolder()
  const command = ['nohup', join(projectFolder, 'bin/petstore'), 'serve', '--port', '0']
  await using server = await startServer({ cwd: folder.path, command, env: { PETSTORE_API_KEY: key } })
  process.kill(server.pid, 'SIGHUP')
  await Bun.sleep(500)
  expect((await server.fetch('/pets', key)).status).toBe(200)
  const stopped = await server.stop('SIGTERM')
  expect([stopped.exitCode, loggedBy(stopped)]).toEqual([0, ['info Stopping']])
})
