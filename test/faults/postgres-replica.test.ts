import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { key, serveFrom } from '../support/load.ts'
import {
  ask,
  type Cluster,
  describeWithOwnPostgres,
  newDatabase,
  type Pair,
  startPair,
  withHosts,
} from '../support/postgres.ts'
import { loggedBy, type Server, until } from '../support/process.ts'

/** What asks for animals, unlike what only asks a server who it is. */
const readers = `
  SELECT 1 FROM pg_stat_activity
  WHERE application_name = 'petstore' AND datname = current_database() AND query LIKE '%FROM pets%'`

const statusOf = async (server: Server) => (await server.fetch('/pets', key)).status

describeWithOwnPostgres('with PETSTORE_READ_URL', () => {
  let pair: Pair
  /** The address of a database that goes with the servers. */
  let url: string

  beforeAll(async () => {
    pair = await startPair()
    url = (await newDatabase(pair.primary.url())).url
  })
  afterAll(() => pair[Symbol.asyncDispose]())

  async function servesReads(cluster: Cluster): Promise<boolean> {
    await using sql = new SQL(withHosts(url, cluster), { max: 1 })
    return (await sql.unsafe(readers)).length > 0
  }

  test('a standby that was away is read from again once it is back, and meanwhile the primary is', async () => {
    const { primary, standby } = pair
    await using serving = await serveFrom(url, '--read-url', withHosts(url, standby, primary))
    const { server } = serving
    await until('reads', async () => (await statusOf(server)) === 200 || undefined)
    expect([await servesReads(standby), await servesReads(primary)]).toEqual([true, false])

    await standby.stop('SIGINT')
    await until('reads again', async () => (await statusOf(server)) === 200 || undefined)
    expect(await servesReads(primary)).toBe(true)

    await standby.start()
    const statuses = new Set<number>()
    const isBack = async () => {
      statuses.add(await statusOf(server))
      return (await servesReads(standby)) || undefined
    }
    await until('reads on the standby', isBack, 20_000)
    for (let i = 0; i < 20; i++) statuses.add(await statusOf(server))
    // No client has noticed.
    expect([...statuses]).toEqual([200])
    await until('the primary to be left alone', async () => !(await servesReads(primary)) || undefined)
    const told = loggedBy(await server.stop('SIGTERM')).filter(line => line.includes('Now using'))
    const hosts = [primary.host, standby.host]
    expect(told).toEqual(hosts.map(host => `warn Now using PostgreSQL at ${host} for reading animals`))
  })

  test('without the primary nobody is served, although the standby is there: /readyz says 503, and 200 once it is back', async () => {
    const { primary, standby } = pair
    await using serving = await serveFrom(url, '--read-url', withHosts(url, standby))
    const { server } = serving
    await serving.readyIs(200)
    await primary.stop('SIGINT')
    await serving.readyIs(503)
    await ask(withHosts(url, standby), 'SELECT 1 FROM pets')
    const answer = await fetch(new URL('/readyz', server.url))
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringMatching(/^store\s*$/)])
    await primary.start()
    await serving.readyIs(200)
  })
})
