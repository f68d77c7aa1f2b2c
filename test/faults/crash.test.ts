import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KeepAliveClient, withClients } from '../support/connections.ts'
import { describeWithOwnPostgres, startCluster } from '../support/postgres.ts'
import { loggedBy, startServer, temporaryFolder } from '../support/process.ts'
import { inspectStore, Ledger, readAnimal } from './load.ts'

const kills = Number(process.env['PETSTORE_TEST_CRASH_ROUNDS'] ?? 20)
const clients = 32
const key = 'a-key-for-crashes-0123456789'

type Creation = ReturnType<Ledger['next']>

/** Whether there was a response, which the ledger then has. */
async function create(client: KeepAliveClient, { body, idempotencyKey }: Creation, ledger: Ledger, keyed: boolean) {
  const headers = keyed ? { 'Idempotency-Key': idempotencyKey } : {}
  const outcome = await client.send({ method: 'POST', path: '/v1/pets', headers, body })
  if (outcome.kind === 'answered') ledger.acknowledge(body, outcome.reply)
  return outcome.kind === 'answered' ? readAnimal(outcome.reply.text).id : undefined
}

/**
 * Clients of two processes add animals, change each twice and remove every second one, while one process is killed, and
 * then, when the clients of the other have gone on for a while, that one, too.
 */
async function expectNothingLost(url: string, kills: number, afterKills: () => Promise<void>): Promise<void> {
  using folder = temporaryFolder()
  const start = () => startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: key, DATABASE_URL: url } })
  const ledger = new Ledger()
  const { acknowledged, uncertain, wrong } = ledger
  /** Creations with an Idempotency-Key but without a response: each may be stored or not. */
  const unanswered: Creation[] = []
  /** By id: the animal before and after a change without a response. */
  const possible = new Map<string, readonly (string | undefined)[]>()
  let answers = 0

  for (let round = 0; ; round++) {
    await using first = await start()
    using checking = new KeepAliveClient(first.port, key)
    for (const creation of unanswered.splice(0)) expect(await create(checking, creation, ledger, true)).toBeDefined()
    const found = await ledger.expectEachOnce(checking)
    for (const [id, bodies] of possible) expect(bodies).toContain(found.get(id))
    possible.clear()
    // An animal that a list has shown must not vanish, acknowledged or not.
    for (const [id, body] of found) acknowledged.set(id, body)
    if (2 * round >= kills) return

    await using second = await start()
    // Different in each round.
    const killAt = [first, second].map((_, index) => answers + 1 + ((round * 37) % 200) + index * 300)
    const countAnswer = () => {
      answers += 1
      const index = killAt.indexOf(answers)
      // The other clients wait for their responses now: their writes are sent, queued, being committed or committed.
      if (index >= 0) process.kill([first, second][index]?.pid ?? 0, 'SIGKILL')
      return true
    }
    /** Without a body it removes the animal. */
    const change = async (client: KeepAliveClient, id: string, body: string | undefined): Promise<boolean> => {
      const path = `/v1/pets/${id}`
      // Without a status, the animal has none afterwards.
      const patch = body?.replace(/(?<!"(available|pending|sold)")\}$/, ',"status":null}')
      const outcome = await client.send(patch ? { method: 'PATCH', path, body: patch } : { method: 'DELETE', path })
      const before = acknowledged.get(id)
      acknowledged.delete(id)
      if (outcome.kind !== 'answered') {
        possible.set(id, [before, body])
        for (const each of [before, body]) if (each) uncertain.add(each)
        return false
      }
      const { status, text } = outcome.reply
      if (`${status} ${text}` !== (body ? `200 {"id":${id},${body.slice(1)}` : '204 ')) wrong.push(`${status} ${text}`)
      if (body !== undefined) acknowledged.set(id, body)
      return countAnswer()
    }
    const write = async (client: KeepAliveClient, index: number) => {
      const keyed = index % 2 === 0
      for (let animals = index; ; animals++) {
        const creation = ledger.next()
        const id = await create(client, creation, ledger, keyed)
        if (id === undefined && keyed) unanswered.push(creation)
        if (id === undefined) return void uncertain.add(creation.body)
        countAnswer()
        const bodies = [ledger.next().body, ledger.next().body]
        for (const body of animals % 4 < 2 ? bodies : [...bodies, undefined])
          if (!(await change(client, id, body))) return
        // A wrong response ends the test, which shows it.
        expect(wrong).toEqual([])
      }
    }
    await Promise.all([first, second].map(({ port }) => withClients({ port, key, count: clients / 2 }, write)))
    for (const server of [first, second]) await server.ended()
    await afterKills()
  }
}

const nothingLost = (kills: number) =>
  `after each of ${kills} kill -9 under ${clients} writing clients, no acknowledged creation, change or removal is lost`

test(`SQLite: ${nothingLost(kills)}`, async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  await expectNothingLost(`sqlite:${file}`, kills, async () => expect(inspectStore(file).integrity).toBe('ok'))
})

describeWithOwnPostgres('PostgreSQL that crashes, too', () => {
  test(nothingLost(4), async () => {
    await using cluster = await startCluster()
    const { url } = await cluster.newDatabase()
    await expectNothingLost(url, 4, async () => {
      await cluster.stop('SIGQUIT')
      await cluster.start()
    })
  })
})

test('if the writer thread ends during a commit, the server exits with 1, and no acknowledged animal is lost', async () => {
  using folder = temporaryFolder()
  const env = { PETSTORE_API_KEY: key, DATABASE_URL: 'sqlite:pets.db' }
  const preload = { BUN_OPTIONS: `--preload=${fileURLToPath(new URL('ending-writer-thread.ts', import.meta.url))}` }
  await using server = await startServer({ cwd: folder.path, env: { ...env, ...preload } })
  const ledger = new Ledger()
  await withClients({ port: server.port, key, count: clients }, async (client, index) => {
    for (let animals = 0; ; animals++) {
      const body = index === 0 && animals === 20 ? '{"name":"End the thread","categoryId":1}' : ledger.next().body
      const outcome = await client.send({ method: 'POST', path: '/v1/pets', body })
      if (outcome.kind === 'answered' && outcome.reply.status !== 503) ledger.acknowledge(body, outcome.reply)
      else ledger.uncertain.add(body)
      if (outcome.kind !== 'answered') return
    }
  })
  const ended = await server.ended()
  expect(ended.exitCode).toBe(1)
  expect(loggedBy(ended)).toContainEqual(expect.stringMatching(/^error .*writer thread/))
  await using next = await startServer({ cwd: folder.path, env })
  using checking = new KeepAliveClient(next.port, key)
  await ledger.expectEachOnce(checking)
  expect(await create(checking, ledger.next(), ledger, false)).toBeDefined()
})
