import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/clock.ts'
import { type KeepAliveClient, type Outcome, openCrowd, withClients } from '../support/connections.ts'
import { type Ended, loggedBy, program, startServer, temporaryFolder, until } from '../support/process.ts'
import { animalBody, inspectStore, Ledger } from './load.ts'
import { serveOnClock } from './serve-on-clock.ts'

const clients = 64
const key = 'a-key-for-stopping-0123456789'

class Sightings extends Ledger {
  /** How many responses have said `Connection: close`. */
  closing = 0
  readonly lost: Extract<Outcome, { kind: 'lost' }>[] = []

  /** Lists on even turns, adds on odd ones, and records the outcome. */
  async takeTurn(client: KeepAliveClient, turn: number): Promise<Outcome> {
    const body = turn % 2 === 0 ? undefined : this.next().body
    const sent = body === undefined ? ({ method: 'GET' } as const) : ({ method: 'POST', body } as const)
    const outcome = await client.send({ ...sent, path: '/v1/pets' })
    if (outcome.kind === 'lost') this.lost.push(outcome)
    if (outcome.kind !== 'answered') return outcome
    const { status, text, closes } = outcome.reply
    if (closes) this.closing += 1
    if (body !== undefined) this.acknowledge(body, outcome.reply)
    else if (status !== 200) this.wrong.push(text)
    return outcome
  }
}

const expectStopped = (ended: Ended) => expect([ended.exitCode, loggedBy(ended)]).toEqual([0, ['info Stopping']])

/** Stops a server under 64 busy connections, which leaves one file with every animal. Gives what the clients saw. */
async function stopUnderLoad(signal: NodeJS.Signals, afterClose: 'leave' | 'come back') {
  // Not even clients that keep coming back use up the drain time, which is longer than the test.
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:pets.db', PETSTORE_DRAIN_TIME: '300s' }
  await using server = await startServer({ env })
  const seen = new Sightings()
  const working = withClients({ port: server.port, key, count: clients }, async (client, index) => {
    for (let turn = index; ; turn++) {
      const outcome = await seen.takeTurn(client, turn)
      if (outcome.kind !== 'answered' || (outcome.reply.closes && afterClose === 'leave')) return
    }
  })
  await until('animals', () => seen.acknowledged.size > 2 * clients || undefined)
  const ended = await server.stop(signal)
  await working
  expectStopped(ended)
  expect(readdirSync(server.cwd)).toEqual(['pets.db'])
  expect(inspectStore(join(server.cwd, 'pets.db'))).toEqual({ integrity: 'ok', animals: seen.acknowledged.size })
  return seen
}

test.each(['SIGTERM', 'SIGHUP'] as const)(
  `%s under ${clients} busy connections loses no request, tells each of them to close, and leaves one file with every animal`,
  async signal => {
    const seen = await stopUnderLoad(signal, 'leave')
    expect(seen).toMatchObject({ closing: clients, lost: [], wrong: [] })
  },
)

test('clients that come back while it stops are answered, refused, or turned away before anything was done', async () => {
  const seen = await stopUnderLoad('SIGTERM', 'come back')
  expect(seen.wrong).toEqual([])
  expect(seen.closing).toBeGreaterThan(0)
  // Closing the port turns away clients that have just connected: never one that was served before, nor with half a response.
  for (const lost of seen.lost) expect(lost).toMatchObject({ requestsBefore: 0, received: '' })
})

/** A client that has sent the beginning of an animal, and waits. */
async function beginAnimal({ url, port }: { readonly url: string; readonly port: number }, wait = until<true>) {
  const length = Buffer.byteLength(animalBody(1))
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${length}\r\n\r\n{`
  const crowd = await openCrowd(port, 1, head)
  const headers = { authorization: `Bearer ${key}` }
  await wait('the request to begin', async () => {
    const metrics = await (await fetch(new URL('/metrics', url), { headers })).text()
    return metrics.includes('\npetstore_http_requests_in_flight 2\n') || undefined
  })
  return crowd
}

test('a request that is in progress when it is told to stop is answered, though its body ends after the port is closed', async () => {
  const args = ['serve', '--port', '0', '--drain-time', '300s']
  await using server = await startServer({ args, env: { PETSTORE_API_KEY: key } })
  using slow = await beginAnimal(server)
  const stopping = server.stop('SIGTERM')
  const isOpen = () =>
    fetch(server.url)
      .then(() => true)
      .catch(() => false)
  await until('the port to close', async () => !(await isOpen()) || undefined)
  slow.send(animalBody(1).slice(1))
  expectStopped(await stopping)
  await until('the end of the connection', () => slow.open === 0 || undefined)
  expect(slow.received[0]).toMatch(/^HTTP\/1\.1 201 [\s\S]*^connection: close\r$/im)
  expect(inspectStore(join(server.cwd, 'data/petstore.db')).animals).toBe(1)
})

test.each([
  ['a body that never ends is waited for exactly as long as the drain time', true, '7s'],
  ['with nothing in progress it stops within a second, however long the drain time is', false, '300s'],
])('%s', async (_, hasBody, drainTime) => {
  using folder = temporaryFolder()
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: `sqlite:${join(folder.path, 'pets.db')}` }
  await using served = await serveOnClock(env, '--drain-time', drainTime)
  using _crowd = hasBody ? await beginAnimal(served, eventually) : undefined
  await served.signal()
  // The port stays open for requests that may still come.
  await served.advance(300)
  if (hasBody) {
    expect(await served.advance(6_999)).toBeUndefined()
    await served.advance(1)
  }
  expect([await served.ended(), served.stderr.includes('unanswered')]).toEqual([0, hasBody])
})

test.skipIf(process.platform !== 'linux')('on Linux, under nohup it goes on after a SIGHUP', async () => {
  const command = ['nohup', program, 'serve', '--port', '0']
  await using server = await startServer({ command, env: { PETSTORE_API_KEY: key } })
  // The system drops a signal that is ignored.
  const [, ignored] = /^SigIgn:.*(.)$/m.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8')) ?? []
  expect(Number(`0x${ignored}`) % 2).toBe(1)
  process.kill(server.pid, 'SIGHUP')
  expect((await server.fetch('/pets', key)).status).toBe(200)
  expectStopped(await server.stop('SIGTERM'))
})
