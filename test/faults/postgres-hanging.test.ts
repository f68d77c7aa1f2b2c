import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { SQL } from 'bun'
import { writesWaitingMax } from '../../src/store/commit-queue.ts'
import { workMax } from '../../src/store/postgres/pool.ts'
import { animalBody, animalOf } from '../support/animals.ts'
import { keepAliveClient, type Outcome, withClients } from '../support/keep-alive.ts'
import { type Cluster, startCluster } from '../support/postgres.ts'
import { testMsMax } from '../support/process.ts'
import { expectToldWithoutPassword, key, type Serving, serveOn, underLoad } from '../support/store-failure.ts'
import { makesProgress, problemWith, readyIs, timed } from '../support/store-load.ts'
import { describeWithOwnPostgres } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

/** Longer than anybody waits for an answer of the store. */
const frozenMs = 6_000

/** Of those that are refused because too many wait already. */
const atOnceMs = 2_500

const list = { method: 'GET', path: '/v1/pets' } as const
const create = (number: number) => ({
  method: 'POST' as const,
  path: '/v1/pets',
  headers: { 'Idempotency-Key': `animal-${number}` },
  body: animalBody(number),
})
type Request = typeof list | ReturnType<typeof create>

/** Sends each on a connection of its own, one every `everyMs`. */
async function sendAll({ port }: Serving, requests: readonly Request[], everyMs = 0) {
  const outcomes: { readonly outcome: Outcome; readonly ms: number }[] = []
  await withClients({ port, key, count: requests.length }, async (client, index) => {
    await Bun.sleep(index * everyMs)
    outcomes[index] = await timed(client, requests[index] ?? list)
  })
  return outcomes
}

const statusOf = ({ outcome }: { outcome: Outcome }) =>
  outcome.kind === 'answered' ? outcome.reply.status : outcome.kind

const problemsWith = (answers: readonly { outcome: Outcome; ms: number }[], expected: number) =>
  answers.flatMap(({ outcome, ms }) => problemWith(outcome, ms, expected) ?? []).slice(0, 5)

/** Another program holds a lock until it is disposed of. */
async function lockedBy(url: string, statement: string): Promise<AsyncDisposable> {
  const sql = new SQL(url, { max: 1 })
  const other = await sql.reserve()
  await other.unsafe('BEGIN')
  await other.unsafe(statement)
  return {
    async [Symbol.asyncDispose]() {
      await other.unsafe('ROLLBACK')
      other.release()
      await sql.close({ timeout: 0 })
    },
  }
}

const lockTable = 'LOCK TABLE pets IN ACCESS EXCLUSIVE MODE'
const lockCounter = 'SELECT last_id FROM pet_ids FOR UPDATE'

describeWithOwnPostgres('PostgreSQL hangs', () => {
  let cluster: Cluster

  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  function frozen(): Disposable {
    cluster.freeze()
    return { [Symbol.dispose]: () => cluster.thaw() }
  }

  test.concurrent('while another program locks the animals, whoever lists or adds gets 503 within the limit, and is served once it lets go', async () => {
    await using serving = await serveOn(cluster.url())
    const { server, url } = serving
    {
      await using _ = await lockedBy(url, lockTable)
      const [lists, adds] = await Promise.all([
        sendAll(
          serving,
          Array.from({ length: 8 }, () => list),
          400,
        ),
        sendAll(
          serving,
          Array.from({ length: 8 }, (_, number) => create(number)),
          400,
        ),
        readyIs(server, 503),
      ])
      expect([...lists, ...adds].map(statusOf)).toEqual(Array(16).fill(503))
      expect([...problemsWith(lists, 200), ...problemsWith(adds, 201)]).toEqual([])
    }
    await readyIs(server, 200)
    const again = await sendAll(
      serving,
      Array.from({ length: 8 }, (_, number) => create(number)),
    )
    expect(again.map(statusOf)).toEqual(Array(8).fill(201))
    expect((await sendAll(serving, [list])).map(statusOf)).toEqual([200])
    expectToldWithoutPassword((await server.stop('SIGTERM')).stderr)
  })

  test.concurrent('while another program holds the counter of ids, animals are listed as ever, and whoever adds one gets 503 within the limit, however late they came', async () => {
    await using serving = await serveOn(cluster.url())
    {
      await using _ = await lockedBy(serving.url, lockCounter)
      const adding = sendAll(
        serving,
        Array.from({ length: 8 }, (_, number) => create(number)),
        300,
      )
      const lists = await sendAll(
        serving,
        Array.from({ length: 8 }, () => list),
        300,
      )
      expect(lists.map(statusOf)).toEqual(Array(8).fill(200))
      expect(Math.max(...lists.map(({ ms }) => ms))).toBeLessThan(1_000)
      const adds = await adding
      expect(adds.map(statusOf)).toEqual(Array(8).fill(503))
      expect(problemsWith(adds, 201)).toEqual([])
    }
    const again = await sendAll(
      serving,
      Array.from({ length: 8 }, (_, number) => create(number)),
    )
    expect(again.map(statusOf)).toEqual(Array(8).fill(201))
    using client = keepAliveClient(serving.port, key)
    const { outcome } = await timed(client, list)
    if (outcome.kind !== 'answered') throw new Error(outcome.kind)
    const kept = outcome.reply.text.slice(1, -1).split(/,(?=\{"id":)/)
    expect(kept.map(animal => animalOf(animal).body).sort()).toEqual(
      Array.from({ length: 8 }, (_, number) => animalBody(number)).sort(),
    )
  })

  test.concurrent('a crowd that wants the only connection gets 503 within the limit, and those beyond the queue at once', async () => {
    await using serving = await serveOn(cluster.url(), '--database-pool', '1')
    const surplus = 50
    {
      await using _ = await lockedBy(serving.url, lockTable)
      const [lists, adds] = await Promise.all([
        sendAll(
          serving,
          Array.from({ length: workMax + surplus }, () => list),
        ),
        sendAll(
          serving,
          Array.from({ length: writesWaitingMax + surplus }, (_, n) => create(n)),
        ),
      ])
      for (const answers of [lists, adds]) {
        expect(problemsWith(answers, 0)).toEqual([])
        expect(answers.filter(({ ms }) => ms < atOnceMs)).toHaveLength(surplus)
      }
    }
    await readyIs(serving.server, 200)
    const again = await sendAll(serving, [list, create(1), list])
    expect(again.map(statusOf)).toEqual([200, 201, 200])
  })

  test('frozen for longer than anybody waits: 503 within the limit, then it goes on, and every acknowledged animal is there once', async () => {
    await using serving = await serveOn(cluster.url())
    await underLoad(serving, async (load, server) => {
      await makesProgress(load)
      {
        using _ = frozen()
        await readyIs(server, 503)
        await Bun.sleep(frozenMs)
      }
      await readyIs(server, 200)
      await makesProgress(load)
    })
  })
})
