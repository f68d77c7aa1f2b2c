import { afterAll, beforeAll, expect, test } from 'bun:test'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { issueApiKey } from '../../src/api-key.ts'
import { OutcomeUnknown } from '../../src/errors.ts'
import { openStores } from '../../src/store/open.ts'
import { workMax } from '../../src/store/postgres/pool.ts'
import type { OnStoreEvent } from '../../src/store.ts'
import { advance, eventually, standingClock } from '../support/clock.ts'
import { animalBody, key, type Serving, serveFrom } from '../support/load.ts'
import { ask, type Cluster, describeWithOwnPostgres, startCluster } from '../support/postgres.ts'
import { createKey, loggedBy, petstore, until } from '../support/process.ts'
import { serveOnClock } from './serve-on-clock.ts'

const sessionsOfOurs = `FROM pg_stat_activity WHERE application_name = 'petstore'`
const endSessions = `SELECT pg_terminate_backend(pid) ${sessionsOfOurs}`
/** Sessions that have asked for animals, unlike those that only ask a server who it is. */
const readers = `SELECT 1 ${sessionsOfOurs} AND datname = current_database() AND query LIKE '%FROM pets%'`

/** The address of a database on the first of the hosts, followed by the other hosts. */
function withHosts(url: string, ...hosts: readonly Cluster[]): string {
  return url.replace(/(@|\/\/)127\.0\.0\.1:\d+\//, `$1${hosts.map(({ host }) => host).join(',')}/`)
}

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
const promote = (standby: Cluster) => ask(standby.url(), 'SELECT pg_promote(true, 30)')

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

/** Resolves with the path of the animal when it can be added again. */
const addedOnce = (serving: Addressed, number: number, wait = until<string>) =>
  wait('an animal', async () => {
    const { status, path } = await addOnce(serving, number)
    return status === 201 ? path : undefined
  })

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
    const hasTables = () => ask(withHosts(url, standby), 'SELECT 1 FROM pets').then(() => true)
    await until('the standby to have the tables', () => hasTables().catch(() => undefined))
  })
  afterAll(() => stack.disposeAsync())

  test('a frozen host that is named first delays neither the start nor the search for a primary', async () => {
    await using frozen = await startCluster()
    frozen.freeze()
    using _ = standingClock()
    const opening = Promise.resolve(openStores(withHosts(url, frozen, primary), { create: true }))
    let ms = 0
    // The clock moves a little for each statement that the primary answers.
    for (; Bun.peek.status(opening) === 'pending'; ms += 10) {
      await advance(10)
      await ask(url, 'SELECT 1')
    }
    // A search that asks one host after another would wait 2 s for the frozen one.
    expect(ms).toBeLessThan(1_000)
    const stores = await opening
    await stores.startWriting()
    await ask(url, endSessions)
    const pet = { name: 'Rex', categoryId: 1n }
    await eventually('an animal', async () => {
      await advance(10)
      ms += 10
      await ask(url, 'SELECT 1')
      return Promise.resolve(stores.pets.create(pet)).catch(() => undefined)
    })
    expect(ms).toBeLessThan(2_000)
    const closing = stores.close()
    while (Bun.peek.status(closing) === 'pending') await advance(100)
  })

  test('with only the standby named it does not start, and says why in one line', async () => {
    const env = { DATABASE_URL: withHosts(url, standby) }
    const stderr = expect.stringMatching(/^petstore: Cannot use 127\.0\.0\.1:\d+: it takes no writes [^\n]*\n$/)
    for (const line of ['serve --port 0', 'correct 1 --name Rex'])
      expect(await petstore(line.split(' '), { cwd: '/', env })).toEqual({ exitCode: 1, stdout: '', stderr })
  })

  /** Waits until a commit on the primary waits for the standby, on a clock that stands still. */
  async function commitWaits(): Promise<void> {
    await using admin = new SQL(primary.url(), { max: 1 })
    const commits = `SELECT 1 ${sessionsOfOurs} AND wait_event = 'SyncRep'`
    await eventually('the commit', async () => (await admin.unsafe(commits)).length > 0 || undefined)
  }

  test('the outcome of a correction that the standby has not got is unknown after 5 s, and it can be sent again', async () => {
    using _ = standingClock()
    const stores = await openStores(url, { create: false })
    const { id } = await stores.pets.create({ name: 'Rex', categoryId: 1n })
    const correct = () => stores.catalogue.correct(id, { name: 'Corrected' })
    standby.freeze()
    try {
      const correcting = correct().catch(error => error)
      await commitWaits()
      let ms = 0
      for (; Bun.peek.status(correcting) === 'pending'; ms += 100) await advance(100)
      // 5 to wait, and up to 2 to close the connection.
      expect(ms).toBeWithin(5_000, 7_001)
      expect(await correcting).toBeInstanceOf(OutcomeUnknown)
    } finally {
      standby.thaw()
    }
    expect(await correct()).toMatchObject({ after: { id, name: 'Corrected' } })
    const closing = Promise.resolve(stores.close())
    while (Bun.peek.status(closing) === 'pending') await advance(100)
  })

  test('with PETSTORE_READ_URL animals come from the standby, a little late; keys and Idempotency-Keys never do', async () => {
    const readUrl = withHosts(url, standby)
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

  test('an animal that the standby has not got is not acknowledged: 503 after 5 s, and it is added once the standby is back', async () => {
    await using served = await serveOnClock({ PETSTORE_API_KEY: key, DATABASE_URL: withHosts(url, primary, standby) })
    expect(await add(served, 200)).toMatchObject({ status: 201 })
    standby.freeze()
    try {
      const early = Promise.all([addOnce(served, 201), addOnce(served, 202)])
      await commitWaits()
      await served.advance(4_999)
      expect(Bun.peek.status(early)).toBe('pending')
      await served.advance(1)
      expect((await early).map(({ status }) => status)).toEqual([503, 503])
      expect(await statusOf(served)).toBe(200)
    } finally {
      standby.thaw()
    }
    const wait: typeof eventually<string> = (what, probe) =>
      eventually(what, async () => {
        await served.advance(100)
        await ask(url, 'SELECT 1')
        return probe()
      })
    await addedOnce(served, 201, wait)
    await addedOnce(served, 202, wait)
    expect([await countOf(served, 201), await countOf(served, 202)]).toEqual([1, 1])
  })

  test('an animal that was committed on a connection lost before it could say so gets 503, and is there once, also when it is sent again', async () => {
    await using serving = await serveFrom(withHosts(url, primary, standby))
    await using admin = new SQL(primary.url(), { max: 1 })
    standby.freeze()
    try {
      const early = Promise.all([addOnce(serving, 300), add(serving, 301)])
      // By now it is committed on the primary, and waits for the standby.
      const endCommits = `${endSessions} AND wait_event = 'SyncRep'`
      await until('the commit', async () => (await admin.unsafe(endCommits)).length > 0 || undefined)
      expect((await early).map(({ status }) => status)).toEqual([503, 503])
    } finally {
      standby.thaw()
    }
    await addedOnce(serving, 302)
    expect(await addOnce(serving, 300)).toMatchObject({ status: 201, replayed: true })
    expect([await countOf(serving, 300), await countOf(serving, 301)]).toEqual([1, 1])
  })

  async function servesReads(cluster: Cluster): Promise<boolean> {
    await using sql = new SQL(withHosts(url, cluster), { max: 1 })
    return (await sql.unsafe(readers)).length > 0
  }

  test('with PETSTORE_READ_URL the primary is read from while the standby is away, and until it has replayed all', async () => {
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: url, PETSTORE_READ_URL: withHosts(url, standby) }
    await using served = await serveOnClock(env)
    const statuses = new Set<number>()
    const read = async (path?: string) => statuses.add(await statusOf(served, path))
    const gauges = async () => {
      const text = await (await get({ url: new URL('/', served.url).origin }, '/metrics')).text()
      return ['used', 'lag_bytes'].map(name => new RegExp(`^petstore_replica_${name} (\\d+)$`, 'm').exec(text)?.[1])
    }
    await read()
    expect([await servesReads(standby), await servesReads(primary)]).toEqual([true, false])
    expect(await gauges()).toEqual(['1', expect.stringMatching(/^\d+$/)])

    await standby.stop('SIGINT')
    for (let i = 0; i < 20; i++) await read()
    expect(await servesReads(primary)).toBe(true)
    expect(await gauges()).toEqual(['0', undefined])

    await standby.start(eventually)
    await ask(withHosts(url, standby), 'SELECT pg_wal_replay_pause()')
    const path = await addedOnce(served, 400, eventually)
    // Twice the interval of the check. The clock moves a little for each statement that the primary answers.
    for (let ms = 0; ms < 20_000; ms += 250) {
      await served.advance(250)
      await ask(url, 'SELECT 1')
      await read(path)
    }
    expect((await gauges())[0]).toBe('0')

    await ask(withHosts(url, standby), 'SELECT pg_wal_replay_resume()')
    await eventually('reads on the standby', async () => {
      await served.advance(100)
      await read(path)
      return (await gauges())[0] === '1' || undefined
    })
    for (let i = 0; i < 20; i++) await read(path)
    expect([...statuses]).toEqual([200])
    // The log is written every 100 ms.
    await served.advance(100)
    const told = loggedBy(served).filter(line => line.includes('eading from'))
    const left = `error Reading from the primary, because the replica ${standby.host} fails: `
    expect(told).toEqual([expect.stringContaining(left), `warn Now reading from the replica ${standby.host}`])
  })

  test('with PETSTORE_READ_URL a standby that does not answer delays a read by 2 s, and later ones not at all', async () => {
    using _ = standingClock()
    const stores = await openStores(url, { create: false, readUrl: withHosts(url, standby) })
    await stores.pets.list({ limit: 1 })
    standby.freeze()
    try {
      const early = Promise.resolve(stores.pets.list({ limit: 1 }))
      await advance(1_999)
      expect(Bun.peek.status(early)).toBe('pending')
      await advance(1)
      await early
      await stores.pets.list({ limit: 1 })
    } finally {
      standby.thaw()
    }
    const closing = Promise.resolve(stores.close())
    while (Bun.peek.status(closing) === 'pending') await advance(100)
  })

  test('with PETSTORE_READ_URL but without the primary, stored keys still read, creations get 503 at once, and /healthz says read-only', async () => {
    await using serving = await serveFrom(url, '--read-url', withHosts(url, standby))
    const stored = await createdKey(serving, url)
    const health = async () => {
      const answer = await fetch(new URL('/healthz', serving.url))
      return `${answer.status} ${await answer.text()}`
    }
    const healthIs = (text: string) => until(text, async () => (await health()) === text || undefined)
    await healthIs('200 ok')
    await primary.stop('SIGINT')
    // The first request after the loss, too, although its key is looked up.
    expect(await statusOf(serving, '/pets', stored)).toBe(200)
    expect(await health()).toBeOneOf(['200 ok', '200 read-only'])
    await healthIs('200 read-only')
    expect(await statusOf(serving, '/pets', stored)).toBe(200)
    expect(await statusOf(serving, '/pets', unknownKey)).toBe(401)
    const early = await Promise.all([add(serving, 300), add(serving, 301)])
    expect(early.map(({ status }) => status)).toEqual([503, 503])
    // Neither has waited for as long as a request may wait.
    expect(serving.stderr).not.toMatch(/within \d+ ms/)
    await primary.start()
    await healthIs('200 ok')
    expect(await add(serving, 302)).toMatchObject({ status: 201 })
  })

  test('with PETSTORE_READ_URL and a crowd, a revoked key is not accepted by a standby that does not know it yet', async () => {
    const readUrl = withHosts(url, standby)
    const stores = await openStores(url, { create: false, readUrl })
    const { record } = issueApiKey({ name: 'revoked', permission: 'read-write', createdAt: new Date() })
    const { id } = await stores.keys.create(record)
    await ask(readUrl, 'SELECT pg_wal_replay_pause()')
    try {
      await stores.keys.revoke(id, new Date())
      const crowd = Array.from({ length: workMax + 100 }, () => stores.keys.find(record.hash))
      const found = (await Promise.allSettled(crowd)).flatMap(each => (each.status === 'fulfilled' ? each.value : []))
      expect(found.length).toBeGreaterThan(0)
      expect(found.filter(each => each?.revokedAt === undefined)).toEqual([])
    } finally {
      await ask(readUrl, 'SELECT pg_wal_replay_resume()')
      await stores.close()
    }
  })
})

describeWithOwnPostgres('two PostgreSQL servers exchange their roles', () => {
  test('the primary hangs and the standby is promoted: it goes on there, also when the former primary wakes up, and nothing acknowledged is lost', async () => {
    await using pair = await startPair()
    const { primary, standby, url } = pair
    await using serving = await serveFrom(withHosts(url, primary, standby))
    const logged = await serving.underLoad(/^PostgreSQL did not answer within 5000 ms$/, async load => {
      await load.makesProgress(100)
      primary.freeze()
      await load.getsUnavailable()
      await serving.healthIs(503)
      await promote(standby)
      await serving.healthIs(200)
      await load.makesProgress(100)
    })
    expect(logged).toContain(`warn Now using PostgreSQL at ${standby.host}`)

    // The former primary wakes up. Lost connections are what makes a service look around.
    primary.thaw()
    using _ = standingClock()
    const events: string[] = []
    const onEvent: OnStoreEvent = (level, { message }) => void events.push(`${level} ${message}`)
    /** The clock moves a little for each statement that this server answers. */
    const moving = async <T>(work: T | Promise<T>, answering: Cluster): Promise<T> => {
      const promise = Promise.resolve(work)
      while (Bun.peek.status(promise) === 'pending') {
        await advance(10)
        await ask(withHosts(url, answering), 'SELECT 1')
      }
      return promise
    }
    const stores = await moving(openStores(withHosts(url, standby, primary), { create: true, onEvent }), standby)
    await moving(stores.startWriting(), standby)
    const tryToAdd = () =>
      Promise.resolve(stores.pets.create({ name: 'Rex', categoryId: 1n })).then(() => 'added', String)
    await using admin = new SQL(withHosts(url, standby), { max: 1 })
    await admin.unsafe('BEGIN')
    await admin.unsafe('SELECT petstore_lock_ids()')
    let adding = tryToAdd()
    const blocked = `SELECT 1 ${sessionsOfOurs} AND wait_event_type = 'Lock'`
    await eventually('the lock', async () => {
      // PostgreSQL itself ends an attempt after 3 s.
      if (Bun.peek.status(adding) !== 'pending') adding = tryToAdd()
      await advance(1)
      return (await admin.unsafe(blocked)).length > 0 || undefined
    })
    standby.freezeListener()
    await admin.unsafe(endSessions)
    expect(await adding).toContain('StoreUnavailable')
    await admin.unsafe('ROLLBACK')
    // So long a slow answer of the present primary changes nothing, although the former one has answered.
    for (let ms = 0; ms < 900; ms += 100) {
      await ask(withHosts(url, primary), 'SELECT 1')
      await advance(100)
    }
    standby.thaw()
    await eventually('an animal', () => {
      expect(events.filter(event => event.includes(primary.host))).toEqual([])
      return moving(tryToAdd(), standby).then(outcome => outcome === 'added' || undefined)
    })
    expect(events.filter(event => event.includes(primary.host))).toEqual([])
    await moving(stores.close(), standby)
  }, 150_000)

  test('at a moment when nobody asks: then, too, animals and keys come from the new primary, and not from its standby', async () => {
    await using pair = await startPair()
    const { primary, standby, url } = pair
    await using serving = await serveFrom(withHosts(url, primary, standby))
    const first = await addedOnce(serving, 1)
    expect(await statusOf(serving, first)).toBe(200)

    // A planned switch: the former primary follows the new one.
    await ask(primary.url(), 'ALTER SYSTEM RESET synchronous_standby_names')
    await primary.stop('SIGINT')
    await promote(standby)
    follow(primary, standby)
    await primary.start()
    await ask(withHosts(url, primary), 'SELECT pg_wal_replay_pause()')
    expect(await statusOf(serving, first)).toBeOneOf([200, 503])
    const second = await addedOnce(serving, 2)
    const young = await createdKey(serving, withHosts(url, standby))
    const seen = async () => [await statusOf(serving, second), await statusOf(serving, '/pets', young)]
    await until('both', async () => String(await seen()) === '200,200' || undefined)
  }, 150_000)
})
