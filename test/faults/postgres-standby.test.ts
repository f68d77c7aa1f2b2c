import { afterAll, beforeAll, expect, test } from 'bun:test'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { issueApiKey } from '../../src/api-key.ts'
import { openStores } from '../../src/store/open.ts'
import { advance, eventually, standingClock } from '../support/clock.ts'
import { ask, type Cluster, describeWithOwnPostgres, startCluster } from '../support/postgres.ts'
import { createKey, loggedBy, refusal, until } from '../support/process.ts'
import { animalBody, key, type Serving, serveFrom } from './load.ts'
import { serveOnClock } from './serve-on-clock.ts'
import { startProxy } from './tcp-proxy.ts'

const sessionsOfOurs = `FROM pg_stat_activity WHERE application_name = 'petstore'`
/** Sessions that have asked for animals, unlike those that only ask a server who it is. */
const readers = `SELECT 1 ${sessionsOfOurs} AND datname = current_database() AND query LIKE '%FROM pets%'`

/** The address of the same database at another host. */
const at = ({ host }: { readonly host: string }, url: string) => url.replace(/127\.0\.0\.1:\d+/, host)

/** Makes a server follow another one when it starts next. */
function follow(standby: Cluster, primary: Cluster): void {
  writeFileSync(join(standby.data, 'standby.signal'), '')
  const { hostname, port } = new URL(primary.url())
  const source = `host=${hostname} port=${port} user=postgres application_name=standby`
  // By default, it waits 5 s after a lost connection.
  const lines = `primary_conninfo = '${source}'\nwal_retrieve_retry_interval = 100ms\n`
  appendFileSync(join(standby.data, 'postgresql.auto.conf'), lines)
}

/** It stops following and accepts writes. */
const promote = (standby: Cluster) => ask(standby.url(), 'SELECT pg_promote()')

/** A primary that acknowledges a commit only after its hot standby has it, and the address of a database on it. */
async function startPair() {
  await using stack = new AsyncDisposableStack()
  const primary = stack.use(await startCluster())
  await primary.stop('SIGINT')
  const standby = stack.use(await primary.copy())
  follow(standby, primary)
  await primary.start()
  await standby.start()
  await using sql = new SQL(primary.url(), { max: 1 })
  const isInState = (state: string) => async () => {
    const rows = await sql`SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = ${state}`
    return rows.length > 0 || undefined
  }
  await until('the standby to follow', isInState('async'))
  await sql`ALTER SYSTEM SET synchronous_standby_names = 'standby'`
  await sql`SELECT pg_reload_conf()`
  await until('the primary to wait for it', isInState('sync'))
  const { url } = await primary.newDatabase()
  return Object.assign(stack.move(), { primary, standby, url })
}

type Addressed = Pick<Serving, 'url'>

/** Adds the animal of this number, under an Idempotency-Key if there is one. */
async function add(server: Addressed, number: number, idempotencyKey?: string) {
  const { status, headers } = await fetch(`${server.url}/pets`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...(idempotencyKey && { 'idempotency-key': idempotencyKey }) },
    body: animalBody(number),
  })
  const replayed = headers.get('idempotency-replayed') === 'true'
  const path = headers.get('location')?.replace(/^.*\/v1/, '') ?? ''
  return { status, replayed, path }
}

const addOnce = (serving: Addressed, number: number) => add(serving, number, `animal-${number}`)

const get = (server: Addressed, path: string, sentKey = key) =>
  fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${sentKey}` } })
const statusOf = async (serving: Addressed, path = '/pets', sentKey = key) => (await get(serving, path, sentKey)).status

/** How many animals like this one there are. */
async function countOf(serving: Addressed, number: number): Promise<number> {
  const text = await (await get(serving, '/pets?limit=100')).text()
  return text.split(animalBody(number).slice(1)).length - 1
}

/** Well-formed, so that it is looked up. */
const unknownKey = issueApiKey({ name: 'nobody', permission: 'read-write', createdAt: new Date() }).key

const createdKey = (server: Serving, url: string) => createKey(server.cwd, 'till', '--database-url', url)

describeWithOwnPostgres('a PostgreSQL primary and its standby', () => {
  let primary: Cluster
  let standby: Cluster
  let url: string
  const stack = new AsyncDisposableStack()

  beforeAll(async () => {
    ;({ primary, standby, url } = stack.use(await startPair()))
    await (await openStores(url, { create: true })).close()
    const hasTables = () => ask(at(standby, url), 'SELECT 1 FROM pets').then(() => true)
    await until('the standby to have the tables', () => hasTables().catch(() => undefined))
  })
  afterAll(() => stack.disposeAsync())

  test('with the address of a standby it does not start, and says why', async () => {
    const env = { DATABASE_URL: at(standby, url) }
    expect(await refusal(['serve', '--port', '0'], { cwd: '/', env })).toContain('it takes no writes')
  })

  /** Moves the clock a little for each statement that the primary answers, until the work is done. */
  async function whileServed<T>(served: { advance(ms: number): unknown }, work: Promise<T>): Promise<T> {
    while (Bun.peek.status(work) === 'pending') {
      await served.advance(100)
      await ask(url, 'SELECT 1')
    }
    return work
  }

  /** Waits until a commit on the primary waits for the standby, on a clock that stands still. Gives its process. */
  async function commitWaits(other = 0): Promise<number> {
    await using admin = new SQL(primary.url(), { max: 1 })
    const commits = `SELECT pid ${sessionsOfOurs} AND wait_event = 'SyncRep' AND pid <> ${other}`
    return await eventually('the commit', async () => (await admin.unsafe<{ pid: number }[]>(commits))[0]?.pid)
  }

  test('with PETSTORE_READ_URL animals come from the standby, a little late; keys and Idempotency-Keys never do', async () => {
    const readUrl = at(standby, url)
    await using serving = await serveFrom(url, '--read-url', readUrl)
    await ask(readUrl, 'SELECT pg_wal_replay_pause()')
    try {
      const { status, path } = await addOnce(serving, 100)
      expect([status, path]).toEqual([201, expect.stringMatching(/^\/pets\/\d+$/)])
      expect([await statusOf(serving, path), await countOf(serving, 100)]).toEqual([404, 0])
      expect(await addOnce(serving, 100)).toMatchObject({ status: 201, replayed: true, path })
      expect(await statusOf(serving, '/pets', await createdKey(serving, url))).toBe(200)
      await ask(readUrl, 'SELECT pg_wal_replay_resume()')
      await until('the animal', async () => (await statusOf(serving, path)) === 200 || undefined)
      expect(await countOf(serving, 100)).toBe(1)
    } finally {
      await ask(readUrl, 'SELECT pg_wal_replay_resume()')
    }
  })

  const remove = async ({ url }: Addressed, path: string) =>
    (await fetch(`${url}${path}`, { method: 'DELETE', headers: { authorization: `Bearer ${key}` } })).status

  test.each<[string, number, (served: Addressed, path: string) => Promise<number>]>([
    ['a creation', 201, async served => (await addOnce(served, 201)).status],
    ['a removal', 404, remove],
  ])(
    '%s that the standby has not got is not acknowledged, nor is its repetition: 503 after 5 s, and %d once the standby is back',
    async (_, status, send) => {
      await using served = await serveOnClock({ PETSTORE_API_KEY: key, DATABASE_URL: url })
      const { path } = await add(served, 200)
      {
        using _ = standby.freeze()
        // The second time, the first is committed on the primary.
        for (let pid = 0, round = 0; round < 2; round++) {
          const sending = send(served, path)
          pid = await commitWaits(pid)
          await served.advance(4_500)
          expect(Bun.peek.status(sending)).toBe('pending')
          await served.advance(500)
          expect(await sending).toBe(503)
          expect(await statusOf(served)).toBe(200)
        }
      }
      const isDone = async () => (await whileServed(served, send(served, path))) === status || undefined
      await eventually('the answer', isDone)
      expect(await countOf(served, 201)).toBeLessThan(2)
    },
  )

  async function servesReads(cluster: Cluster): Promise<boolean> {
    await using sql = new SQL(at(cluster, url), { max: 1 })
    return (await sql.unsafe(readers)).length > 0
  }

  test('with PETSTORE_READ_URL reads go to DATABASE_URL while the standby is away, and return when one of them succeeds', async () => {
    await using served = await serveOnClock({
      PETSTORE_API_KEY: key,
      DATABASE_URL: url,
      PETSTORE_READ_URL: at(standby, url),
    })
    const statuses = new Set<number>()
    const read = async () => {
      const reading = statusOf(served)
      // The clock moves a little for each statement that both answer: on a busy machine, either may be slow.
      while (Bun.peek.status(reading) === 'pending') {
        await served.advance(50)
        await Promise.all([ask(url, 'SELECT 1'), ask(at(standby, url), 'SELECT 1').catch(() => {})])
      }
      statuses.add(await reading)
    }
    await read()
    expect([await servesReads(standby), await servesReads(primary)]).toEqual([true, false])

    await standby.stop('SIGINT')
    await read()
    expect(await servesReads(primary)).toBe(true)
    // An attempt that fails changes nothing.
    await served.advance(5_000)
    await read()

    await standby.start(eventually)
    await eventually('reads on the standby', async () => {
      await served.advance(500)
      await read()
      return (await servesReads(standby)) || undefined
    })
    await ask(url, `SELECT pg_terminate_backend(pid) ${sessionsOfOurs} AND query LIKE '%FROM pets%'`)
    await read()
    expect(await servesReads(primary)).toBe(false)
    expect([...statuses]).toEqual([200])
    // The log is written every 100 ms.
    await served.advance(100)
    expect(loggedBy(served).filter(line => line.startsWith('error Reading from'))).toHaveLength(1)
  })

  test('with PETSTORE_READ_URL a standby that does not answer delays a read by 1 s, and later ones not at all', async () => {
    using _ = standingClock()
    const stores = await openStores(url, { create: false, readUrl: at(standby, url) })
    await stores.pets.list({ limit: 1 })
    {
      using _ = standby.freeze()
      const early = Promise.resolve(stores.pets.list({ limit: 1 }))
      await advance(500)
      expect(Bun.peek.status(early)).toBe('pending')
      await advance(500)
      await early
      await stores.pets.list({ limit: 1 })
    }
    const closing = Promise.resolve(stores.close())
    while (Bun.peek.status(closing) === 'pending') await advance(100)
  })

  test('with PETSTORE_READ_URL but without the primary, stored keys still read, creations get 503 at once, and /healthz says read-only', async () => {
    await using serving = await serveFrom(url, '--read-url', at(standby, url))
    const stored = await createdKey(serving, url)
    const health = async () => {
      const answer = await fetch(new URL('/healthz', serving.url))
      return `${answer.status} ${await answer.text()}`
    }
    const healthIs = (text: string) => until(text, async () => (await health()) === text || undefined)
    await primary.stop('SIGINT')
    // The first request after the loss, too, although its key is looked up.
    expect(await statusOf(serving, '/pets', stored)).toBe(200)
    await healthIs('200 read-only')
    expect(await statusOf(serving, '/pets', stored)).toBe(200)
    expect(await statusOf(serving, '/pets', unknownKey)).toBe(401)
    expect((await add(serving, 300)).status).toBe(503)
    // It has not waited for as long as a request may wait.
    expect(serving.stderr).not.toMatch(/within \d+ ms/)
    await primary.start()
    // The last write has failed.
    expect(await health()).toBe('200 read-only')
    await until('an animal', async () => (await addOnce(serving, 303)).status === 201 || undefined)
    await healthIs('200 ok')
  })
})

describeWithOwnPostgres('a failover behind a proxy', () => {
  test('the primary hangs, the proxy leads to the standby, and that is promoted: reads go on, then creations, and nothing acknowledged is lost', async () => {
    await using pair = await startPair()
    const { primary, standby, url } = pair
    await using proxy = await startProxy(Number(new URL(url).port))
    await using serving = await serveFrom(at(proxy, url))
    await serving.underLoad(/25006/, async load => {
      await load.makesProgress(100)
      primary.freeze()
      await serving.healthIs(503)
      // If all connections were open, each would otherwise be replaced at the first attempt: nothing connects again.
      const attempt = `Cannot connect to PostgreSQL at ${proxy.host} for reading`
      await until('an attempt to connect', () => serving.stderr.includes(attempt) || undefined)
      proxy.leadTo(Number(new URL(standby.url()).port))
      // A standby at the address.
      await serving.healthIs(200)
      expect(await statusOf(serving)).toBe(200)
      expect(await add(serving, 500)).toMatchObject({ status: 503 })
      await promote(standby)
      await load.makesProgress(100)
    })
  })
})
