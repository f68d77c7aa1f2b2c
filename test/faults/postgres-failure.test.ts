import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { createStoreKey, drainMs, type Load, type Serving, serveFrom, serveOn, startLoad } from '../support/load.ts'
import { type Cluster, describeWithOwnPostgres, startCluster } from '../support/postgres.ts'
import { loggedBy, until } from '../support/process.ts'

const restarts = 3
const killsMin = 40
const goneMs = 3_000

/** Something that happens to the server while clients keep the service busy. */
type Trouble = (cluster: Cluster, load: Load, serving: Serving) => Promise<void>

const troubles: readonly (readonly [string, Trouble])[] = [
  [
    `after ${restarts} restarts as after a crash, with 503 meanwhile`,
    async (cluster, load, serving) => {
      for (let round = 0; round < restarts; round++) {
        await load.makesProgress(100)
        await cluster.stop('SIGQUIT')
        await serving.readyIs(503)
        await cluster.start()
        await serving.readyIs(200)
      }
    },
  ],
  [
    'after connections were killed at random, with clients still served',
    async (_, load, { url }) => {
      await using admin = new SQL(url, { max: 1 })
      for (let killed = 0; killed < killsMin; ) {
        killed += (await admin.unsafe(killOne)).length
        await Bun.sleep(Math.random() * 40)
      }
      expect(load.acknowledged.size).toBeGreaterThan(killsMin)
    },
  ],
  [
    `after ${goneMs / 1_000} s without a server, with 503 at once and a line in the log`,
    async (cluster, load, serving) => {
      await load.makesProgress()
      await cluster.stop('SIGQUIT')
      await serving.readyIs(503)
      await Bun.sleep(goneMs)
      await serving.readyIs(503)
      await cluster.start()
      const now = `Now using PostgreSQL at ${cluster.host} for writing"`
      for (const start of ['No PostgreSQL for writing: ', now]) {
        await until(start, () => serving.server.stderr.includes(`"message":"${start}`) || undefined)
      }
    },
  ],
]

describeWithOwnPostgres('PostgreSQL fails under load', () => {
  test.concurrent.each(troubles)('%s, it goes on, and every acknowledged animal is stored once', async (_, trouble) => {
    await using cluster = await startCluster()
    await using serving = await serveOn(cluster.url())
    await serving.underLoad(async load => {
      await trouble(cluster, load, serving)
      await serving.readyIs(200)
      await load.makesProgress()
    })
  })
})

describeWithOwnPostgres('PostgreSQL is away when the service stops', () => {
  // A server that does not respond is given up after 5 s; the rest is for a busy machine.
  test.concurrent.each([
    ['gone', drainMs + 3_000],
    ['frozen', drainMs + 5_000 + 8_000],
  ])('with the server %s and clients waiting, it still stops within %p ms, with exit code 0', async (how, msMax) => {
    await using cluster = await startCluster()
    await using serving = await serveFrom(cluster.url())
    const load = startLoad(serving.port, await createStoreKey(serving.url))
    await load.makesProgress()
    if (how === 'gone') await cluster.stop('SIGQUIT')
    else cluster.freeze()
    const startedAt = performance.now()
    const ended = await serving.server.stop('SIGTERM')
    const ms = performance.now() - startedAt
    await load.stop()
    expect([ended.exitCode, loggedBy(ended)]).toEqual([0, expect.arrayContaining(['info Stopping'])])
    expect(ms).toBeLessThan(msMax)
  })
})

const killOne = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database() ORDER BY random() LIMIT 1`
