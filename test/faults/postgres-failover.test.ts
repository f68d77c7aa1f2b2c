import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { animalBody, answerMsMax, createStoreKey, key, serveFrom } from '../support/load.ts'
import { ask, describeWithOwnPostgres, newDatabase, type Pair, startPair, withHosts } from '../support/postgres.ts'
import { petstore, type Server, temporaryFolder, until } from '../support/process.ts'

async function answered(server: Server, path: string, sentKey = key) {
  const response = await server.fetch(path, sentKey)
  return { status: response.status, text: await response.text() }
}

async function added({ url }: Server, number: number, idempotencyKey?: string) {
  const startedAt = performance.now()
  const { status, headers } = await fetch(`${url}/pets`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...(idempotencyKey && { 'idempotency-key': idempotencyKey }) },
    body: animalBody(number),
    signal: AbortSignal.timeout(15_000),
  })
  const replayed = headers.get('idempotency-replayed') === 'true'
  return { status, replayed, location: headers.get('location') ?? '', ms: performance.now() - startedAt }
}

const addedOnce = (server: Server, number: number) => added(server, number, `animal-${number}`)

/** How many animals like this one there are. */
async function countOf(server: Server, number: number): Promise<number> {
  const { text } = await answered(server, '/pets?limit=100')
  return text.split(animalBody(number).slice(1)).length - 1
}

describeWithOwnPostgres('a PostgreSQL primary and its standby', () => {
  let pair: Pair
  /** The address of a database that goes with the servers. */
  let url: string

  beforeAll(async () => {
    pair = await startPair()
    url = (await newDatabase(pair.primary.url())).url
  })
  afterAll(() => pair[Symbol.asyncDispose]())

  test('whichever of them is named first, animals are added on the primary', async () => {
    const { primary, standby } = pair
    for (const hosts of [
      [primary, standby],
      [standby, primary],
    ]) {
      await using serving = await serveFrom(withHosts(url, ...hosts))
      expect(await added(serving.server, 1)).toMatchObject({ status: 201 })
    }
  })

  test('with only the standby named it does not start, and says why in one line', async () => {
    using folder = temporaryFolder()
    const env = { DATABASE_URL: withHosts(url, pair.standby) }
    const stderr = expect.stringMatching(/^petstore: Cannot use 127\.0\.0\.1:\d+: it takes no writes [^\n]*\n$/)
    const ended = await petstore(['serve', '--port', '0'], { cwd: folder.path, env })
    expect(ended).toEqual({ exitCode: 1, stdout: '', stderr })
  })

  test('with PETSTORE_READ_URL animals come from the standby, a little late; keys and Idempotency-Keys never do', async () => {
    const { standby } = pair
    const readUrl = withHosts(url, standby)
    await using serving = await serveFrom(url, '--read-url', readUrl)
    const { server } = serving
    await ask(readUrl, 'SELECT pg_wal_replay_pause()')
    try {
      const { status, location } = await addedOnce(server, 100)
      expect(status).toBe(201)
      const path = location.replace(/^.*\/v1/, '')
      expect(path).toMatch(/^\/pets\/\d+$/)
      expect(await answered(server, path)).toMatchObject({ status: 404 })
      expect((await answered(server, '/pets?limit=100')).text).not.toContain(animalBody(100).slice(1))
      expect(await addedOnce(server, 100)).toMatchObject({ status: 201, replayed: true, location })
      const young = await createStoreKey(serving.url)
      expect(await answered(server, '/pets', young)).toMatchObject({ status: 200 })
      await ask(readUrl, 'SELECT pg_wal_replay_resume()')
      await until('the animal', async () => (await answered(server, path)).status === 200 || undefined)
      expect((await answered(server, '/pets?limit=100')).text).toContain(animalBody(100).slice(1))
    } finally {
      await ask(readUrl, 'SELECT pg_wal_replay_resume()')
    }
  })

  test('an animal that the standby has not got is not acknowledged: 503 within the limit, and it is added once the standby is back', async () => {
    await using serving = await serveFrom(withHosts(url, pair.primary, pair.standby))
    const { server } = serving
    expect(await added(server, 200)).toMatchObject({ status: 201 })
    pair.standby.freeze()
    try {
      const early = await Promise.all([addedOnce(server, 201), addedOnce(server, 202)])
      expect(early.map(({ status }) => status)).toEqual([503, 503])
      expect(Math.max(...early.map(({ ms }) => ms))).toBeLessThan(answerMsMax)
      expect(await answered(server, '/pets')).toMatchObject({ status: 200 })
    } finally {
      pair.standby.thaw()
    }
    await until('animals again', async () => (await addedOnce(server, 201)).status === 201 || undefined)
    expect(await addedOnce(server, 202)).toMatchObject({ status: 201 })
    expect([await countOf(server, 201), await countOf(server, 202)]).toEqual([1, 1])
  })

  test('an animal that was committed on a connection lost before it could say so gets 503, and is there once, also when it is sent again', async () => {
    await using serving = await serveFrom(withHosts(url, pair.primary, pair.standby))
    const { server } = serving
    await using admin = new SQL(pair.primary.url(), { max: 1 })
    pair.standby.freeze()
    try {
      const early = Promise.all([addedOnce(server, 300), added(server, 301)])
      // By now it is committed on the primary, and waits for the standby.
      await until('the commit', async () => (await admin.unsafe(endCommits)).length > 0 || undefined)
      expect((await early).map(({ status }) => status)).toEqual([503, 503])
    } finally {
      pair.standby.thaw()
    }
    await until('animals again', async () => (await addedOnce(server, 302)).status === 201 || undefined)
    expect(await addedOnce(server, 300)).toMatchObject({ status: 201, replayed: true })
    expect([await countOf(server, 300), await countOf(server, 301)]).toEqual([1, 1])
  })

  test('when the primary is killed and the standby promoted, it goes on there by itself, and nothing acknowledged is lost', async () => {
    const { primary, standby } = pair
    const other = await newDatabase(primary.url())
    await using serving = await serveFrom(withHosts(other.url, primary, standby))
    const logged = await serving.underLoad(async load => {
      await load.makesProgress(200)
      await primary.stop('SIGKILL')
      await serving.readyIs(503)
      await standby.promote()
      await serving.readyIs(200)
      await load.makesProgress(200)
    })
    expect(logged).toContain(`warn Now using PostgreSQL at ${standby.host} for writing`)
  })
})

const endCommits = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'petstore' AND wait_event = 'SyncRep'`
