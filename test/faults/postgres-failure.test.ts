import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { SQL } from 'bun'
import { type Cluster, startCluster } from '../support/postgres.ts'
import { testMsMax } from '../support/process.ts'
import { serveOn, underLoad } from '../support/store-failure.ts'
import { makesProgress, readyIs } from '../support/store-load.ts'
import { describeWithOwnPostgres } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

const restarts = 3
const killingMs = 4_000
const goneMs = 10_000

describeWithOwnPostgres('PostgreSQL fails under load', () => {
  let cluster: Cluster

  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  /** Whatever happens meanwhile, the next test finds it running. */
  async function without(meanwhile: () => Promise<void>): Promise<void> {
    await cluster.stop('SIGQUIT')
    try {
      await meanwhile()
    } finally {
      await cluster.start()
    }
  }

  test(`restarted ${restarts} times as after a crash: 503 meanwhile, then it goes on, and every acknowledged animal is there once`, async () => {
    await using serving = await serveOn(cluster.url())
    await underLoad(serving, async (load, server) => {
      for (let round = 0; round < restarts; round++) {
        await makesProgress(load, 100)
        await without(() => readyIs(server, 503))
        await readyIs(server, 200)
      }
      await makesProgress(load)
    })
  })

  test('connections killed at random: clients get 503 at worst, are served all the while, and every acknowledged animal is there once', async () => {
    let killed = 0
    await using serving = await serveOn(cluster.url())
    await underLoad(serving, async (load, server) => {
      await using admin = new SQL(serving.url, { max: 1 })
      const end = performance.now() + killingMs
      while (performance.now() < end) {
        killed += (await admin.unsafe(killOne)).length
        await Bun.sleep(Math.random() * 40)
      }
      await readyIs(server, 200)
      expect(load.acknowledged.size).toBeGreaterThan(killed)
      await makesProgress(load)
    })
    expect(killed).toBeGreaterThan(20)
  })

  test(`gone for ${goneMs / 1_000} s: 503 at once, then it goes on without a restart, and every acknowledged animal is there once`, async () => {
    await using serving = await serveOn(cluster.url())
    const logged = await underLoad(serving, async (load, server) => {
      await makesProgress(load)
      await without(async () => {
        const end = performance.now() + goneMs
        await readyIs(server, 503)
        await Bun.sleep(end - performance.now())
        await readyIs(server, 503)
      })
      await readyIs(server, 200)
      await makesProgress(load)
      // Requests find out at once; the search that tells the log asks every half second.
      await Bun.sleep(1_500)
    })
    expect(logged).toContainEqual(expect.stringMatching(/^error No PostgreSQL for writing: /))
    expect(logged).toContainEqual(`warn Now using PostgreSQL at ${cluster.host} for writing`)
  })
})

const killOne = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database() ORDER BY random() LIMIT 1`
