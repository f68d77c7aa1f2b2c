import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { writesWaitingMax } from '../../src/store/commit-queue.ts'
import { workMax } from '../../src/store/postgres/pool.ts'
import { type Outcome, withClients } from '../support/connections.ts'
import { animalBody, animalsIn, key, problemWith, type Serving, serveOn, timed } from '../support/load.ts'
import { type Cluster, describeWithOwnPostgres, startCluster } from '../support/postgres.ts'

/** Longer than any request waits for the store. */
const frozenMs = 6_000
/** For requests that are refused because too many wait already. */
const atOnceMs = 2_500

const list = { method: 'GET' as const, path: '/v1/pets' }
const create = (number: number) => ({
  method: 'POST' as const,
  path: '/v1/pets',
  headers: { 'Idempotency-Key': `animal-${number}` },
  body: animalBody(number),
})
/** The same animals each time, so that a second attempt repeats the first. */
const creates = (count: number) => Array.from({ length: count }, (_, number) => create(number))
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

  test.concurrent('while another program locks the animals, lists and creations get 503 within the limit, and work once it lets go', async () => {
    await using serving = await serveOn(cluster.url())
    const { url } = serving
    {
      await using _ = await lockedBy(url, lockTable)
      const [lists, adds] = await Promise.all([
        sendAll(serving, Array(8).fill(list), 400),
        sendAll(serving, creates(8), 400),
        serving.readyIs(503),
      ])
      expect([...lists, ...adds].map(statusOf)).toEqual(Array(16).fill(503))
      expect([...problemsWith(lists, 200), ...problemsWith(adds, 201)]).toEqual([])
    }
    await serving.readyIs(200)
    const again = await sendAll(serving, creates(8))
    expect(again.map(statusOf)).toEqual(Array(8).fill(201))
    expect((await sendAll(serving, [list])).map(statusOf)).toEqual([200])
    await serving.expectStopped()
  })

  test.concurrent('while another program holds the counter of ids, lists work, and creations get 503 within the limit, however late they came', async () => {
    await using serving = await serveOn(cluster.url())
    {
      await using _ = await lockedBy(serving.url, lockCounter)
      const adding = sendAll(serving, creates(8), 300)
      const lists = await sendAll(serving, Array(8).fill(list), 300)
      expect(lists.map(statusOf)).toEqual(Array(8).fill(200))
      expect(Math.max(...lists.map(({ ms }) => ms))).toBeLessThan(1_000)
      const adds = await adding
      expect(adds.map(statusOf)).toEqual(Array(8).fill(503))
      expect(problemsWith(adds, 201)).toEqual([])
    }
    const again = await sendAll(serving, creates(8))
    expect(again.map(statusOf)).toEqual(Array(8).fill(201))
    const [listed] = await sendAll(serving, [{ ...list, path: '/v1/pets?limit=100' }])
    const stored = listed?.outcome.kind === 'answered' ? animalsIn(listed.outcome.reply.text) : []
    expect(new Set(stored.map(({ body }) => body))).toEqual(new Set(creates(8).map(({ body }) => body)))
    expect(stored).toHaveLength(8)
  })

  test.concurrent('a crowd that needs the only connection gets 503 within the limit, and requests beyond the queue get it at once', async () => {
    await using serving = await serveOn(cluster.url(), '--database-pool', '1')
    const surplus = 50
    {
      await using _ = await lockedBy(serving.url, lockTable)
      const [lists, adds] = await Promise.all([
        sendAll(serving, Array(workMax + surplus).fill(list)),
        sendAll(serving, creates(writesWaitingMax + surplus)),
      ])
      for (const answers of [lists, adds]) {
        expect(problemsWith(answers, 0)).toEqual([])
        expect(answers.filter(({ ms }) => ms < atOnceMs)).toHaveLength(surplus)
      }
    }
    await serving.readyIs(200)
    const again = await sendAll(serving, [list, create(1), list])
    expect(again.map(statusOf)).toEqual([200, 201, 200])
  })

  test.concurrent('frozen for longer than any request waits: 503 within the limit, then it goes on, and every acknowledged animal is stored once', async () => {
    await using other = await startCluster()
    await using serving = await serveOn(other.url())
    await serving.underLoad(async load => {
      await load.makesProgress()
      other.freeze()
      await serving.readyIs(503)
      await Bun.sleep(frozenMs)
      other.thaw()
      await serving.readyIs(200)
      await load.makesProgress()
    })
  })
})
