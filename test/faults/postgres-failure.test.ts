import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { writesWaitingMax } from '../../src/store/commit-queue.ts'
import { workMax } from '../../src/store/postgres/pool.ts'
import { KeepAliveClient, type Outcome, type Sent, withClients } from '../support/connections.ts'
import { allAnimals, animalBody, answerMsMax, key, Load, problemIn, type Serving, serveFrom } from '../support/load.ts'
import { type Cluster, describeWithOwnPostgres, startCluster } from '../support/postgres.ts'
import { createKey, loggedBy, until } from '../support/process.ts'

const restarts = 3
const killsMin = 40
/** Longer than any request waits for the store. */
const frozenMs = 6_000

const lost = /^PostgreSQL: (ERR_POSTGRES_CONNECTION_\w+|57P0\d)$/
const silent = /^PostgreSQL did not answer within 5000 ms$/
const locked = /^PostgreSQL: 55P03$/

/** On an empty database that goes with the cluster. */
const serveOn = async (cluster: Cluster, ...flags: string[]) => serveFrom((await cluster.newDatabase()).url, ...flags)

/** Something that happens to the server while clients keep the service busy. */
type Trouble = (cluster: Cluster, load: Load, serving: Serving) => Promise<void>

/** The log names the cause of the trouble, clients are served again, and every acknowledged animal is stored once. */
async function expectToGoOn(cluster: Cluster, cause: RegExp, trouble: Trouble): Promise<void> {
  await using serving = await serveOn(cluster)
  await serving.underLoad(cause, async load => {
    await load.makesProgress()
    await trouble(cluster, load, serving)
    await serving.healthIs(200)
    await load.makesProgress()
  })
}

const killOne = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database() ORDER BY random() LIMIT 1`

describeWithOwnPostgres('PostgreSQL fails', () => {
  test.concurrent.each<[string, Trouble]>([
    [
      `after ${restarts} restarts as after a crash, with 503 meanwhile and lines in the log`,
      async (cluster, load, serving) => {
        for (let round = 0; round < restarts; round++) {
          await load.makesProgress(100)
          await cluster.stop('SIGQUIT')
          await serving.healthIs(503)
          await cluster.start()
          await serving.healthIs(200)
        }
        const now = `Now using PostgreSQL at ${cluster.host} for writing"`
        for (const start of ['No PostgreSQL for writing: ', now]) {
          await until(start, () => serving.server.stderr.includes(`"message":"${start}`) || undefined)
        }
      },
    ],
    [
      'after connections were killed at random, with clients still served',
      async (_, load, { url }) => {
        await using admin = new SQL(url, { max: 1 })
        // Reads are repeated: only a creation that loses its connection gets 503.
        for (let killed = 0; killed < killsMin || load.unavailable === 0; ) {
          killed += (await admin.unsafe(killOne)).length
          await Bun.sleep(Math.random() * 40)
        }
        expect(load.acknowledged.size).toBeGreaterThan(killsMin)
      },
    ],
  ])('%s, it goes on, and every acknowledged animal is stored once', async (_, trouble) => {
    await using cluster = await startCluster()
    await expectToGoOn(cluster, lost, trouble)
  })

  // Frozen, its limits add up to 10 s: 1 and 2 to drain, 5 to record uses of keys, 2 to close connections.
  test.concurrent.each([
    ['gone', 3_000],
    ['frozen', 12_000],
  ])('with the server %s and clients waiting, it still stops within %p ms, with exit code 0', async (how, msMax) => {
    await using cluster = await startCluster()
    await using serving = await serveOn(cluster)
    const { server, url } = serving
    const load = new Load(server.port, await createKey(server.cwd, 'till', '--database-url', url))
    await load.makesProgress()
    if (how === 'gone') await cluster.stop('SIGQUIT')
    else cluster.freeze()
    const startedAt = performance.now()
    const ended = await server.stop('SIGTERM')
    const ms = performance.now() - startedAt
    await load.stop()
    expect([ended.exitCode, loggedBy(ended)]).toEqual([0, expect.arrayContaining(['info Stopping'])])
    expect(ms).toBeLessThan(msMax)
  })
})

const list: Sent = { method: 'GET', path: '/v1/pets?limit=100' }
const create = (number: number): Sent => ({
  method: 'POST',
  path: '/v1/pets',
  headers: { 'Idempotency-Key': `animal-${number}` },
  body: animalBody(number),
})
const lists = (count: number) => Array<Sent>(count).fill(list)
/** The same animals each time, so that a second attempt repeats the first. */
const creates = (count: number) => Array.from({ length: count }, (_, number) => create(number))

/** Sends each on a connection of its own, one every `everyMs`. */
async function sendAll({ server }: Serving, requests: readonly Sent[], everyMs = 0): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = []
  const allConnected = Promise.withResolvers<void>()
  let connected = 0
  await withClients({ port: server.port, key, count: requests.length }, async (client, index) => {
    // On a slow machine, a crowd takes seconds to connect.
    await client.send({ method: 'GET', path: '/livez' })
    if (++connected === requests.length) allConnected.resolve()
    await allConnected.promise
    await Bun.sleep(index * everyMs)
    outcomes[index] = await client.send(requests[index] ?? list)
  })
  return outcomes
}

/** Each gets this status, within the limit. */
async function expectAll(sent: Promise<readonly Outcome[]>, status: number): Promise<void> {
  const seen = (await sent).map(outcome => [
    outcome.kind === 'answered' ? outcome.reply.status : outcome.kind,
    problemIn(outcome, status === 503 ? undefined : status),
  ])
  expect(seen).toEqual(Array(seen.length).fill([status, undefined]))
}

/** Another program holds a lock until it is disposed of. */
async function lockedBy(url: string, statement: string): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  const sql = stack.adopt(new SQL(url, { max: 1 }), connection => connection.close({ timeout: 0 }))
  await sql.unsafe('BEGIN')
  await sql.unsafe(statement)
  return stack.move()
}

describeWithOwnPostgres('PostgreSQL does not answer', () => {
  let cluster: Cluster
  let freezing: Cluster
  const stack = new AsyncDisposableStack()

  // Both before the tests: what they measure must not include a start.
  beforeAll(async () => {
    cluster = stack.use(await startCluster())
    freezing = stack.use(await startCluster())
  })
  afterAll(() => stack.disposeAsync())

  test.concurrent('after it was frozen for longer than any request waits, with 503 within the limit and later at once, it goes on, and every acknowledged animal is stored once', () =>
    expectToGoOn(freezing, silent, async (_, _load, serving) => {
      freezing.freeze()
      await serving.healthIs(503)
      await Bun.sleep(frozenMs)
      const [late] = await sendAll(serving, lists(1))
      freezing.thaw()
      // Nobody waits for a server that is known not to answer.
      expect(late?.ms).toBeLessThan(1_000)
    }))

  test.concurrent.each([
    ['the animals', 503, answerMsMax, 'LOCK TABLE pets IN ACCESS EXCLUSIVE MODE'],
    ['creation', 200, 1_000, 'SELECT petstore_lock_ids()'],
  ] as const)(
    'with a lock on %s, lists get %p within %p ms, and creations 503',
    async (_, status, msMax, statement) => {
      await using serving = await serveOn(cluster)
      {
        await using _ = await lockedBy(serving.url, statement)
        const adding = expectAll(sendAll(serving, creates(8), 400), 503)
        const listing = sendAll(serving, lists(8), 400)
        await Promise.all([expectAll(listing, status), serving.healthIs(status), adding])
        expect(Math.max(...(await listing).map(({ ms }) => ms))).toBeLessThan(msMax)
      }
      await serving.healthIs(200)
      await expectAll(sendAll(serving, creates(8)), 201)
      using client = new KeepAliveClient(serving.server.port, key)
      const stored = await allAnimals(client)
      expect([...stored.values()].toSorted()).toEqual(
        creates(8)
          .map(({ body = '' }) => body)
          .toSorted(),
      )
      await serving.expectStopped(locked)
    },
  )

  // Alone, because so many clients would delay those of other tests.
  test('a crowd that needs the only connection gets 503 within the limit, and requests beyond the queue get it at once', async () => {
    await using serving = await serveOn(cluster, '--database-pool', '1')
    const surplus = 50
    {
      await using _ = await lockedBy(serving.url, 'LOCK TABLE pets IN ACCESS EXCLUSIVE MODE')
      const crowds = [lists(workMax + surplus), creates(writesWaitingMax + surplus)] as const
      const sent = sendAll(serving, crowds.flat())
      await expectAll(sent, 503)
      const areAtOnce = (await sent).map(({ ms }) => ms < 2_500)
      const counts = [areAtOnce.slice(0, crowds[0].length), areAtOnce.slice(crowds[0].length)]
      expect(counts.map(crowd => crowd.filter(Boolean).length)).toEqual([surplus, surplus])
    }
    await serving.healthIs(200)
    await expectAll(sendAll(serving, lists(1)), 200)
    await expectAll(sendAll(serving, [create(1)]), 201)
    await expectAll(sendAll(serving, lists(1)), 200)
  })
})
