import { expect, test } from 'bun:test'
import { animalBody, createStoreKey, key, serveFrom } from '../support/load.ts'
import { ask, describeWithOwnPostgres, newDatabase, startPair, switchOver, withHosts } from '../support/postgres.ts'
import { until } from '../support/process.ts'

/** A primary and its standby, and the service on both of them; the database goes with its servers. */
async function startAll() {
  await using stack = new AsyncDisposableStack()
  const pair = stack.use(await startPair())
  const { primary, standby } = pair
  const { url } = await newDatabase(primary.url())
  const serving = stack.use(await serveFrom(withHosts(url, primary, standby)))
  const owned = stack.move()
  return { pair, serving, url, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

describeWithOwnPostgres('two PostgreSQL servers exchange their roles', () => {
  test.concurrent('the primary hangs and the standby is promoted: it goes on there, also when the former primary wakes up, and nothing acknowledged is lost', async () => {
    await using all = await startAll()
    const { primary, standby } = all.pair
    const logged = await all.serving.underLoad(async load => {
      await load.makesProgress(100)
      primary.freeze()
      await standby.promote()
      await all.serving.readyIs(503)
      await all.serving.readyIs(200)
      await load.makesProgress(100)
      primary.thaw()
      // Lost connections are what makes it look around.
      await ask(standby.url(), endSessions)
      await load.makesProgress(500)
    })
    expect(logged).toContain(`warn Now using PostgreSQL at ${standby.host} for writing`)
    expect(logged).not.toContain(`warn Now using PostgreSQL at ${primary.host} for writing`)
  })

  test.concurrent('at a moment when nobody asks: then, too, animals and keys come from the new primary, and not from its standby', async () => {
    await using all = await startAll()
    const { pair, serving, url } = all
    const { server } = serving
    const add = async () => {
      const response = await server.fetch('/pets', key, { method: 'POST', body: animalBody(1) })
      const location = response.headers.get('location')
      return response.status === 201 ? location?.replace(/^.*\/v1/, '') : undefined
    }
    const first = await until('an animal', add)
    expect((await server.fetch(first, key)).status).toBe(200)

    await switchOver(pair)
    await ask(withHosts(url, pair.primary), 'SELECT pg_wal_replay_pause()')
    expect((await server.fetch(first, key)).status).toBeOneOf([200, 503])
    const second = await until('another animal', add)
    const young = await createStoreKey(withHosts(url, pair.standby))
    const seen = async () => [(await server.fetch(second, key)).status, (await server.fetch('/pets', young)).status]
    await until('both', async () => String(await seen()) === '200,200' || undefined, 3_000).catch(() => {})
    expect(await seen()).toEqual([200, 200])
  })
})

const endSessions = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'petstore'`
