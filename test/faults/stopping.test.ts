import { expect, test } from 'bun:test'
import { copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { KeepAliveClient, type Outcome, openCrowd, withClients } from '../support/connections.ts'
import { allAnimals, animalBody, inspectStore, Ledger } from '../support/load.ts'
import { type Ended, loggedBy, program, startServer, temporaryFolder, until } from '../support/process.ts'

const clients = 64
const key = 'a-key-for-stopping-0123456789'

class Sightings extends Ledger {
  /** How many responses have said `Connection: close`: after the first, the server is known to be stopping. */
  closing = 0
  /** Responses that left the connection open although the server was known to be stopping. */
  readonly leftOpen: string[] = []
  readonly lost: Extract<Outcome, { kind: 'lost' }>[] = []

  /** Lists on even turns, adds on odd ones, and records the outcome. */
  async takeTurn(client: KeepAliveClient, turn: number): Promise<Outcome> {
    const body = turn % 2 === 0 ? undefined : this.next().body
    const knownToStop = this.closing > 0
    const sent = body === undefined ? ({ method: 'GET' } as const) : ({ method: 'POST', body } as const)
    const outcome = await client.send({ ...sent, path: '/v1/pets' })
    if (outcome.kind === 'lost') this.lost.push(outcome)
    if (outcome.kind !== 'answered') return outcome
    const { status, text, closes } = outcome.reply
    if (knownToStop && !closes) this.leftOpen.push(text)
    if (closes) this.closing += 1
    if (body !== undefined) this.acknowledge(body, outcome.reply)
    else if (status !== 200) this.wrong.push(text)
    return outcome
  }
}

const expectStopped = (ended: Ended) => expect([ended.exitCode, loggedBy(ended)]).toEqual([0, ['info Stopping']])

/** Stops a server under 64 busy connections, and gives what their clients saw and what was in the store then. */
async function stopUnderLoad(signal: NodeJS.Signals, afterClose: 'leave' | 'come back') {
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:pets.db', PETSTORE_DRAIN_TIME: '15s' }
  await using server = await startServer({ env })
  const seen = new Sightings()
  const working = withClients({ port: server.port, key, count: clients }, async (client, index) => {
    for (let turn = index; ; turn++) {
      const outcome = await seen.takeTurn(client, turn)
      if (outcome.kind !== 'answered' || (outcome.reply.closes && afterClose === 'leave')) return
    }
  })
  await until('animals', () => seen.acknowledged.size > 2 * clients || undefined)
  const startedAt = performance.now()
  const ended = await server.stop(signal)
  // Not even clients that keep coming back use up the drain time.
  expect(performance.now() - startedAt).toBeLessThan(8_000)
  await working
  expectStopped(ended)
  expect(readdirSync(server.cwd)).toEqual(['pets.db'])
  return { seen, stored: await animalsInCopyOf(join(server.cwd, 'pets.db')) }
}

/** What a server shows that is started elsewhere with a copy of this one file. */
async function animalsInCopyOf(file: string): Promise<Map<string, string>> {
  using folder = temporaryFolder()
  copyFileSync(file, join(folder.path, 'copy.db'))
  expect(inspectStore(join(folder.path, 'copy.db')).integrity).toBe('ok')
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:copy.db' }
  await using server = await startServer({ cwd: folder.path, env })
  using client = new KeepAliveClient(server.port, key)
  return await allAnimals(client)
}

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  `%s under ${clients} busy connections loses no request, tells each of them to close, and leaves one file with every animal`,
  async signal => {
    const { seen, stored } = await stopUnderLoad(signal, 'leave')
    expect(seen).toMatchObject({ closing: clients, lost: [], leftOpen: [], wrong: [] })
    expect(stored).toEqual(seen.acknowledged)
  },
)

test('clients that come back while it stops are answered, refused, or turned away before anything was done', async () => {
  const { seen, stored } = await stopUnderLoad('SIGTERM', 'come back')
  expect(seen).toMatchObject({ leftOpen: [], wrong: [] })
  expect(seen.closing).toBeGreaterThan(clients)
  expect(stored).toEqual(seen.acknowledged)
  // Closing the port turns away clients that have just connected: never one that was served before, nor with half a response.
  for (const lost of seen.lost) expect(lost).toMatchObject({ requestsBefore: 0, received: '' })
})

/** A client that has sent the beginning of an animal, and waits. */
async function beginAnimal({ url, port }: { readonly url: string; readonly port: number }) {
  const length = Buffer.byteLength(animalBody(1))
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${length}\r\n\r\n{`
  const crowd = await openCrowd(port, 1, head)
  const headers = { authorization: `Bearer ${key}` }
  await until('the request to begin', async () => {
    const metrics = await (await fetch(new URL('/metrics', url), { headers })).text()
    return metrics.includes('\npetstore_http_requests_in_flight 2\n') || undefined
  })
  return crowd
}

const startWithDrainTime = (time: string) =>
  startServer({ args: ['serve', '--port', '0', '--drain-time', time], env: { PETSTORE_API_KEY: key } })

test('a request that is in progress when it is told to stop is answered, though its body takes longer', async () => {
  await using server = await startWithDrainTime('3s')
  using slow = await beginAnimal(server)
  const stopping = server.stop('SIGTERM')
  await Bun.sleep(600)
  slow.send(animalBody(1).slice(1))
  expectStopped(await stopping)
  await until('the end of the connection', () => slow.open === 0 || undefined)
  expect(slow.received[0]).toMatch(/^HTTP\/1\.1 201 [\s\S]*^connection: close\r$/im)
  const stored = await animalsInCopyOf(join(server.cwd, 'data/petstore.db'))
  expect([...stored.values()]).toEqual([animalBody(1)])
})

test('a body that never ends does not keep it from stopping once the drain time is over', async () => {
  await using server = await startWithDrainTime('1s')
  using _ = await beginAnimal(server)
  const startedAt = performance.now()
  const { exitCode, stderr } = await server.stop('SIGTERM')
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringMatching(/unanswered/i) })
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

test('with nothing in progress it stops at once, however long the drain time is', async () => {
  await using server = await startWithDrainTime('15s')
  const startedAt = performance.now()
  expectStopped(await server.stop('SIGTERM'))
  expect(performance.now() - startedAt).toBeLessThan(3_000)
})

test.skipIf(process.platform !== 'linux')('under nohup it goes on after a SIGHUP', async () => {
  const command = ['nohup', program, 'serve', '--port', '0']
  await using server = await startServer({ command, env: { PETSTORE_API_KEY: key } })
  process.kill(server.pid, 'SIGHUP')
  await Bun.sleep(500)
  expect((await server.fetch('/pets', key)).status).toBe(200)
  expectStopped(await server.stop('SIGTERM'))
})
