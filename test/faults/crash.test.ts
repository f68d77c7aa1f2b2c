import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KeepAliveClient, withClients } from '../support/connections.ts'
import { allAnimals, inspectStore, Ledger, readAnimal } from '../support/load.ts'
import { describeWithOwnPostgres, startCluster } from '../support/postgres.ts'
import { loggedBy, startServer, temporaryFolder, until } from '../support/process.ts'

const rounds = Number(process.env['PETSTORE_TEST_CRASH_ROUNDS'] ?? 20)
const clients = 32
const key = 'a-key-for-crashes-0123456789'

/** How many animals of a round are acknowledged when the server is killed: from 1 to 200, different in each round. */
const acknowledgedBefore = (round: number) => 1 + ((round * 37) % 200)

type Creation = ReturnType<Ledger['next']>

/** Whether there was a response, which the ledger then has. */
async function create(client: KeepAliveClient, creation: Creation, ledger: Ledger, keyed = true): Promise<boolean> {
  const { body, idempotencyKey } = creation
  const headers = keyed ? { 'Idempotency-Key': idempotencyKey } : {}
  const outcome = await client.send({ method: 'POST', path: '/v1/pets', headers, body })
  if (outcome.kind === 'answered') ledger.acknowledge(body, outcome.reply)
  return outcome.kind === 'answered'
}

test(
  `after each of ${rounds} kill -9 under ${clients} writing clients, every acknowledged animal is stored once, as it was acknowledged`,
  async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: `sqlite:${file}` }
    const ledger = new Ledger()
    /** Creations with an Idempotency-Key but without a response: each may be stored or not. */
    const unanswered: Creation[] = []
    let listedBefore = new Map<string, string>()

    for (let round = 0; round <= rounds; round++) {
      await using server = await startServer({ cwd: folder.path, env })
      using checking = new KeepAliveClient(server.port, key)
      for (const creation of unanswered.splice(0)) expect(await create(checking, creation, ledger)).toBe(true)
      const listed = await ledger.expectEachOnce(checking)
      // An animal that a list has shown must not vanish, acknowledged or not.
      expect([...listedBefore].filter(([id, body]) => listed.get(id) !== body)).toEqual([])
      listedBefore = listed
      if (round === rounds) break

      const killAt = ledger.acknowledged.size + acknowledgedBefore(round)
      let isKilled = false
      const writing = withClients({ port: server.port, key, count: clients }, async (client, index) => {
        const keyed = index % 2 === 0
        let creation = ledger.next()
        while (await create(client, creation, ledger, keyed)) {
          // The other clients wait for their responses now: their animals are sent, queued, being committed or committed.
          if (!isKilled && ledger.acknowledged.size >= killAt) {
            isKilled = true
            process.kill(server.pid, 'SIGKILL')
          }
          // A wrong response ends the test, which shows it.
          expect(ledger.wrong).toEqual([])
          creation = ledger.next()
        }
        if (keyed) unanswered.push(creation)
        else ledger.uncertain.add(creation.body)
      })
      await writing
      await server.ended()
      expect(inspectStore(file).integrity).toBe('ok')
    }
  },
  rounds * 5_000 + 60_000,
)

const kills = 4
const changesPerKill = 1_250

/** Clients add animals, change each four times and remove every second one, while the server is killed. */
async function expectChangesSurvive(url: string, afterKill: () => Promise<void>): Promise<void> {
  using folder = temporaryFolder()
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: url }
  const ledger = new Ledger()
  const { acknowledged, uncertain, wrong } = ledger
  /** By id: the animal before and after a change without a response. */
  const possible = new Map<string, readonly (string | undefined)[]>()
  let changes = 0

  for (let round = 0; round <= kills; round++) {
    await using server = await startServer({ cwd: folder.path, env })
    using checking = new KeepAliveClient(server.port, key)
    const found = await allAnimals(checking)
    for (const [id, bodies] of possible) {
      const body = found.get(id)
      expect(bodies).toContain(body)
      if (body !== undefined) acknowledged.set(id, body)
    }
    possible.clear()
    await ledger.expectEachOnce(checking)
    if (round === kills) break

    const killAt = changes + changesPerKill
    /** Without a body it removes the animal. Whether there was a response, which the ledger then has. */
    const change = async (client: KeepAliveClient, id: string, body: string | undefined): Promise<boolean> => {
      const path = `/v1/pets/${id}`
      // Without a status, the animal has none afterwards.
      const patch = body?.replace(/(?<!"(available|pending|sold)")\}$/, ',"status":null}')
      const outcome = await client.send(patch ? { method: 'PATCH', path, body: patch } : { method: 'DELETE', path })
      const before = acknowledged.get(id)
      acknowledged.delete(id)
      if (outcome.kind !== 'answered') {
        possible.set(id, [before, body])
        return false
      }
      const { status, text } = outcome.reply
      if (`${status} ${text}` !== (body ? `200 {"id":${id},${body.slice(1)}` : '204 ')) wrong.push(`${status} ${text}`)
      if (body !== undefined) acknowledged.set(id, body)
      changes += 1
      if (changes === killAt) process.kill(server.pid, 'SIGKILL')
      return true
    }
    const writing = withClients({ port: server.port, key, count: clients }, async (client, index) => {
      for (let animals = index; ; animals++) {
        const { body } = ledger.next()
        const outcome = await client.send({ method: 'POST', path: '/v1/pets', body })
        if (outcome.kind !== 'answered') return void uncertain.add(body)
        ledger.acknowledge(body, outcome.reply)
        const { id } = readAnimal(outcome.reply.text)
        const bodies = Array.from({ length: 4 }, () => ledger.next().body)
        for (const next of animals % 2 === 0 ? bodies : [...bodies, undefined])
          if (!(await change(client, id, next))) return
        expect(wrong).toEqual([])
      }
    })
    await writing
    await server.ended()
    await afterKill()
  }
  expect(changes).toBeGreaterThanOrEqual(kills * changesPerKill)
}

const changesSurvive = `after each of ${kills} kill -9, of ${kills * changesPerKill} acknowledged changes and removals none is lost`

test(`SQLite: ${changesSurvive}`, async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  await expectChangesSurvive(`sqlite:${file}`, async () => expect(inspectStore(file).integrity).toBe('ok'))
})

describeWithOwnPostgres('PostgreSQL that crashes, too', () => {
  test(changesSurvive, async () => {
    await using cluster = await startCluster()
    const { url } = await cluster.newDatabase()
    await expectChangesSurvive(url, async () => {
      await cluster.stop('SIGQUIT')
      await cluster.start()
    })
  })
})

test('kill -9 of one of two processes loses no acknowledged animal, and the other one goes on', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  const options = { cwd: folder.path, env: { PETSTORE_API_KEY: key, DATABASE_URL: `sqlite:${file}` } }
  await using killed = await startServer(options)
  await using other = await startServer(options)
  const ledger = new Ledger()
  let isOver = false
  const write = ({ port }: { readonly port: number }) =>
    withClients({ port, key, count: clients }, async client => {
      while (!isOver) {
        const creation = ledger.next()
        if (await create(client, creation, ledger, false)) continue
        return void ledger.uncertain.add(creation.body)
      }
    })
  const more = (animals: number) => {
    const wanted = ledger.acknowledged.size + animals
    return until('more animals', () => ledger.acknowledged.size >= wanted || undefined)
  }
  const writing = [write(killed), write(other)]
  await more(500)
  await killed.stop('SIGKILL')
  await writing[0]
  await more(500)
  isOver = true
  await writing[1]
  using checking = new KeepAliveClient(other.port, key)
  await ledger.expectEachOnce(checking)
  expect((await other.stop('SIGTERM')).exitCode).toBe(0)
  expect(inspectStore(file).integrity).toBe('ok')
})

test.each(['before', 'after'])(
  'if the writer thread ends %s a commit, the server logs it and exits with 1, and no acknowledged animal is lost',
  async when => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'pets.db')
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: `sqlite:${file}` }
    const preload = { BUN_OPTIONS: `--preload=${fileURLToPath(new URL('ending-writer-thread.ts', import.meta.url))}` }
    await using server = await startServer({ cwd: folder.path, env: { ...env, ...preload } })
    const ledger = new Ledger()
    const addOne = async (client: KeepAliveClient, body = ledger.next().body) => {
      const outcome = await client.send({ method: 'POST', path: '/v1/pets', body })
      if (outcome.kind === 'answered' && outcome.reply.status !== 503) ledger.acknowledge(body, outcome.reply)
      else ledger.uncertain.add(body)
      return outcome.kind === 'answered'
    }
    const writing = withClients({ port: server.port, key, count: clients }, async client => {
      while (await addOne(client));
    })
    await until('some animals', () => ledger.acknowledged.size >= 200 || undefined)
    using client = new KeepAliveClient(server.port, key)
    await addOne(client, `{"name":"End ${when} the commit","categoryId":1}`)
    const ended = await server.ended()
    await writing
    expect(ended.exitCode).toBe(1)
    expect(loggedBy(ended).join('\n')).toContain('error The writer thread ended')

    await using next = await startServer({ cwd: folder.path, env })
    using checking = new KeepAliveClient(next.port, key)
    await ledger.expectEachOnce(checking)
    expect(await addOne(checking)).toBe(true)
    expect(inspectStore(file).integrity).toBe('ok')
  },
  60_000,
)
