import { expect, setDefaultTimeout, test } from 'bun:test'
import { type Cluster, startCluster } from '../support/postgres.ts'
import { loggedBy, testMsMax } from '../support/process.ts'
import { createStoreKey, drainMs, serveFrom } from '../support/store-failure.ts'
import { makesProgress, startLoad } from '../support/store-load.ts'
import { describeWithOwnPostgres } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

/** A server that says nothing is given up after 5 s; closing connections and a busy machine take their time, too. */
const stopMsMax = { gone: drainMs, frozen: drainMs + 5_000 + 3_000 } as const

const takeAway = {
  gone: (cluster: Cluster) => cluster.stop('SIGQUIT'),
  frozen: async (cluster: Cluster) => cluster.freeze(),
} as const

describeWithOwnPostgres('PostgreSQL is away when the service is told to stop', () => {
  test.concurrent.each(['gone', 'frozen'] as const)(
    'with the server %s and clients waiting, it still stops in time, with exit code 0',
    async how => {
      await using cluster = await startCluster()
      await using serving = await serveFrom(cluster.url())
      const { server, port } = serving
      const load = startLoad(port, await createStoreKey(serving))
      await makesProgress(load)
      await takeAway[how](cluster)
      const startedAt = performance.now()
      const ended = await server.stop('SIGTERM')
      const ms = Math.round(performance.now() - startedAt)
      await load.stop()
      process.stdout.write(`${how}: stopped after ${ms} ms\n`)
      expect(ended.exitCode).toBe(0)
      expect(loggedBy(ended)).toContain('info Stopping')
      expect(ms).toBeLessThan(stopMsMax[how])
    },
  )
})
