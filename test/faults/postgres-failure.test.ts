import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { SQL } from 'bun'
import { issueApiKey } from '../../src/api-key.ts'
import { App } from '../../src/http/app.ts'
import type { Log } from '../../src/log.ts'
import { openStores } from '../../src/store/open.ts'
import type { OnStoreEvent } from '../../src/store-contract.ts'
import { plainParts } from '../http/service.ts'
import { advance, eventually, settle, standingClock } from '../support/clock.ts'
import type { Outcome, Sent } from '../support/connections.ts'
import { ask, type Cluster, describeWithOwnPostgres, startCluster, type TestDatabase } from '../support/postgres.ts'
import { animalBody, key, problemIn, serveFrom } from './load.ts'
import { serveOnClock } from './serve-on-clock.ts'
import { startProxy } from './tcp-proxy.ts'

const sessionsOfOurs = `FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()`

const lost = /^PostgreSQL: (ERR_POSTGRES_CONNECTION_\w+|57P0\d): ./

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

describeWithOwnPostgres('PostgreSQL fails', () => {
  test('if it restarts twice as after a crash, clients get 503, it goes on, and every acknowledged animal is stored once', async () => {
    await using cluster = await startCluster()
    await using serving = await serveFrom((await cluster.newDatabase()).url)
    const logged = await serving.underLoad(lost, async load => {
      for (let round = 0; round < 2; round++) {
        await load.makesProgress(100)
        await cluster.stop('SIGQUIT')
        await load.getsUnavailable()
        await serving.healthIs(503)
        await cluster.start()
        await serving.healthIs(200)
      }
      await load.makesProgress()
    })
    for (const line of [/^error Cannot connect/, /^warn Connected again/])
      expect(logged).toContainEqual(expect.stringMatching(line))
  })
})

/** The service's own time limits, which this clock shows exactly. PostgreSQL has a clock of its own. */
describeWithOwnPostgres('on a clock that stands still', () => {
  let cluster: Cluster
  let database: TestDatabase
  beforeAll(async () => {
    cluster = await startCluster()
    database = await cluster.newDatabase()
  })
  afterAll(() => cluster[Symbol.asyncDispose]())

  /** As if over HTTP, from an app of its own. */
  async function startApp(url = database.url) {
    const causes: string[] = []
    const onEvent: OnStoreEvent = (_, { message }) => void causes.push(message)
    const stores = await openStores(url, { create: true, onEvent })
    await stores.startWriting()
    const log: Log = {
      isOn: () => true,
      write: (_, message, { cause } = {}) => causes.push(`${message}: ${cause}`),
    }
    const app = new App({ ...plainParts, stores, log, environmentKey: key })
    const send = async ({ path, ...sent }: Sent): Promise<Outcome> => {
      const headers = { ...sent.headers, authorization: `Bearer ${key}` }
      const response = await app.fetch(new Request(`http://pets.example${path}`, { ...sent, headers }))
      const reply = { status: response.status, headers: response.headers, text: await response.text(), closes: false }
      return { kind: 'answered', reply }
    }
    // Opens the connections for reads: a connection that is not answered is given up after 2 s.
    await Promise.all(lists(100).map(send))
    const close = async () => {
      const closing = stores.close()
      while (Bun.peek.status(closing) === 'pending') await advance(100)
    }
    return { send, causes, stores, [Symbol.asyncDispose]: close }
  }

  const answered = (sent: readonly Promise<Outcome>[]) => sent.map(each => Bun.peek.status(each) === 'fulfilled')

  /** Moves the clock a little for each statement that PostgreSQL answers, until the work is done. */
  async function completed<T>(work: Promise<T>): Promise<T> {
    while (Bun.peek.status(work) === 'pending') {
      await advance(100)
      await ask(database.url, 'SELECT 1')
    }
    return work
  }

  const expectAgain = (send: (sent: Sent) => Promise<Outcome>, sent: Sent, status: number) =>
    eventually('success', async () => {
      const outcome = await completed(send(sent))
      return (outcome.kind === 'answered' && outcome.reply.status === status) || undefined
    })

  test('a server that does not answer is waited for 5 s by each request, and no more once two attempts have failed', async () => {
    using _ = standingClock()
    await using app = await startApp()
    using _frozen = cluster.freeze()
    const early = [list, { ...list, path: '/v1/pets/1' }, create(1), { ...create(2), headers: {} }].map(app.send)
    await settle()
    await advance(2_000)
    const late = app.send(create(3))
    await advance(2_500)
    expect(answered([...early, late])).toEqual([false, false, false, false, false])
    await advance(500)
    await expectAll(Promise.all(early), 503)
    const later = app.send(list)
    await settle()
    await advance(5_000)
    await expectAll(Promise.all([late, later]), 503)
    // Those of the connections for writing begin later.
    for (let attempts = 0; attempts < 2; attempts++) await advance(5_000)
    const known = [list, create(5)].map(app.send)
    await settle()
    expect(answered(known)).toEqual([true, true])
    await expectAll(Promise.all(known), 503)
    cluster.thaw()
    await expectAgain(app.send, list, 200)
    await expectAgain(app.send, create(4), 201)
  })

  test('connections that fall silent are replaced after 5 s, the unused ones too; nothing is sent twice', async () => {
    await using proxy = await startProxy(Number(new URL(database.url).port))
    using _ = standingClock()
    await using app = await startApp(database.url.replace(cluster.host, proxy.host))
    proxy.silence()
    const [reading, adding] = [app.send(list), app.send({ ...create(99), headers: {} })]
    await settle()
    await advance(4_500)
    expect(answered([reading, adding])).toEqual([false, false])
    await advance(500)
    await expectAll(Promise.all([adding]), 503)
    await reading
    // Far more at once than connections: none of them may lead nowhere.
    const crowd = await completed(Promise.all([...lists(200), ...creates(50)].map(app.send)))
    expect(crowd.map(outcome => outcome.kind === 'answered' && outcome.reply.status)).toEqual([
      ...Array(200).fill(200),
      ...Array(50).fill(201),
    ])
    await using sql = new SQL(database.url, { max: 1 })
    const [found] = await sql`SELECT count(*)::int AS count FROM pets WHERE name = ${JSON.parse(animalBody(99)).name}`
    expect(found.count).toBeLessThan(2)
  })

  test('if it becomes read-only, reads go on, also on new connections, and creations get 503 until it takes writes again', async () => {
    using _ = standingClock()
    await using app = await startApp()
    await using admin = new SQL(database.url, { max: 1 })
    const pids = new Set<number>()
    const setReadOnly = async (value: string) => {
      const name = new URL(database.url).pathname.slice(1)
      await admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`)
    }
    // For sessions that begin later.
    await setReadOnly('on')
    await admin.unsafe(`SELECT pg_terminate_backend(pid) ${sessionsOfOurs}`)
    await expectAll(completed(Promise.all(lists(200).map(app.send))), 200)
    await expectAgain(app.send, create(0), 503)
    for (let number = 0; number < 100; number++) {
      await expectAll(Promise.all([app.send(create(number))]), 503)
      for (const { pid } of await admin.unsafe<{ pid: number }[]>(`SELECT pid ${sessionsOfOurs}`)) pids.add(pid)
    }
    // The clock stands still: not a new connection for each write.
    expect(pids.size).toBeLessThan(20)
    expect(app.stores.activity().isWritable).toBe(false)
    await setReadOnly('off')
    await expectAgain(app.send, create(200), 201)
    expect(app.stores.activity().isWritable).toBe(true)
    await expectAll(completed(Promise.all(lists(100).map(app.send))), 200)
  })

  test('with more work than the database can do, requests get 503, no connection is replaced, and then it works at once', async () => {
    using _ = standingClock()
    await using app = await startApp()
    await using admin = new SQL(database.url, { max: 1 })
    const active = `SELECT 1 ${sessionsOfOurs} AND state = 'active'`
    {
      await using _ = await lockedBy(database.url, 'LOCK TABLE pets IN ACCESS EXCLUSIVE MODE')
      const crowd = Promise.all([...lists(2_000), ...creates(2_000)].map(app.send))
      await eventually('all connections', async () => (await admin.unsafe(active)).length === 11 || undefined)
      await advance(4_500)
      const [{ now }] = await admin`SELECT now()::text`
      await eventually('each connection to get an answer and begin its next statement', async () => {
        const old = await admin.unsafe(`${active} AND query_start < $1::timestamptz`, [now])
        return old.length === 0 || undefined
      })
      await settle()
      await advance(500)
      await expectAll(crowd, 503)
      // The log says that creations waited for a lock.
      expect(app.causes).toContainEqual(expect.stringMatching(/55P03/))
    }
    await expectAll(completed(Promise.all(lists(100).map(app.send))), 200)
    await expectAll(completed(Promise.all(creates(100).map(app.send))), 201)
    expect(app.causes.filter(cause => cause.includes('replacing connections'))).toEqual([])
  })

  test('changes of an animal that another program has locked get 503 after 5 s, all others go on, and then it can be changed', async () => {
    using _ = standingClock()
    await using app = await startApp()
    await expectAll(completed(Promise.all(creates(2).map(app.send))), 201)
    await using admin = new SQL(database.url, { max: 1, bigint: true })
    const [{ id }] = await admin`SELECT max(id) AS id FROM pets`
    const change = (id: bigint): Sent => ({ method: 'PATCH', path: `/v1/pets/${id}`, body: '{"name":"Mia"}' })
    const remove: Sent = { method: 'DELETE', path: `/v1/pets/${id}` }
    {
      await using _ = await lockedBy(database.url, `SELECT 1 FROM pets WHERE id = ${id} FOR UPDATE`)
      const waiting = [change(id), remove].map(app.send)
      for (const ms of [0, 4_900]) {
        await advance(ms)
        await expectAll(Promise.all(creates(100).map(app.send)), 201)
        await expectAll(Promise.all([app.send(change(id - 1n))]), 200)
        expect(answered(waiting)).toEqual([false, false])
      }
      await expectAll(completed(Promise.all(waiting)), 503)
    }
    await expectAll(completed(Promise.all([app.send(change(id))])), 200)
    await expectAll(completed(Promise.all([app.send(remove)])), 204)
  })

  test('a frozen server delays a stop by its limits, which add up to 10 s', async () => {
    const { key: stored, record } = issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date() })
    const stores = await openStores(database.url, { create: true })
    await stores.keys.create(record)
    await stores.close()
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: database.url, PETSTORE_DRAIN_TIME: '2s' }
    await using served = await serveOnClock(env)
    const headers = { authorization: `Bearer ${stored}` }
    const send = (sent: RequestInit) => fetch(`${served.url}/pets`, { headers, ...sent }).catch(() => {})
    // The stop records the use of the stored key.
    await send({})
    using _frozen = cluster.freeze()
    using received = spyOn(App.prototype, 'fetch')
    for (const sent of [{}, { method: 'POST', body: animalBody(1) }]) void send(sent)
    await eventually('both requests', () => received.mock.calls.length === 2 || undefined)
    await served.signal()
    let ms = 0
    while ((await served.advance(100)) === undefined) ms += 100
    // 1 and 2 to drain, 5 to record uses of keys, 2 to close connections.
    expect(ms).toBeWithin(5_000, 10_001)
    expect(await served.ended()).toBe(0)
  })
})
