import { join } from 'node:path'
import { SQL } from 'bun'
import { ask, type Cluster } from '../test/support/postgres.ts'
import { freePort, until } from '../test/support/process.ts'
import { type Bench, stop } from './bench.ts'
import { importAnimals } from './catalogue.ts'
import { type Contender, petstore, serveCommand } from './contenders.ts'
import { median, show, table, whole } from './format.ts'
import { type Measured, sendLoad } from './load.ts'
import { type Server, start, startPostgres } from './start.ts'

const counts = [1, 2, 4]
const roundTripsMs = [0, 5]
/** To all instances together. */
const connections = 512
const animals = 1_000

/** Medians over the rounds, for one number of instances and one round trip to the database. */
interface Figures {
  readonly instances: number
  readonly roundTripMs: number
  /** By all instances together. */
  readonly createdPerSecond: number
  /** Of the instance with the highest p99. */
  readonly p50Ms: number
  readonly p99Ms: number
}

/** Without combinations in which requests failed in every round. */
export type InstancesFigures = readonly Figures[]

/** Measures creations by several instances on one PostgreSQL server. Undefined if it cannot run here. */
export async function measureInstances(bench: Bench): Promise<InstancesFigures | undefined> {
  const cluster = await startPostgres(bench)
  if (!cluster) return undefined
  await using server = cluster
  await using stack = new AsyncDisposableStack()
  const proxies: Proxy[] = []
  for (const roundTripMs of roundTripsMs) proxies.push(stack.use(await startProxy(bench, server, roundTripMs)))
  const samples: Figures[] = []
  for (let round = 1; round <= bench.rounds; round++) {
    bench.log(`round ${round} of ${bench.rounds}`)
    for (const proxy of proxies) {
      for (const instances of counts) samples.push(...(await measure(bench, server, proxy, instances)))
    }
  }
  return [...Map.groupBy(samples, each => `${each.roundTripMs} ${each.instances}`).values()].flatMap(mediansOf)
}

interface Proxy extends AsyncDisposable {
  readonly host: string
  readonly roundTripMs: number
}

/** In its own process; also for 0 ms, so that only the delay differs. */
async function startProxy(bench: Bench, cluster: Cluster, roundTripMs: number): Promise<Proxy> {
  const port = freePort()
  const args = [port, new URL(cluster.url()).port, roundTripMs].map(String)
  const child = bench.spawn([process.execPath, '--no-env-file', join(import.meta.dir, 'delay.ts'), ...args], {})
  const host = `127.0.0.1:${port}`
  const url = cluster.url().replace(cluster.host, host)
  const answers = () => ask(url, 'SELECT 1').then(() => true)
  await until('the proxy', () => answers().catch(() => undefined))
  return { host, roundTripMs, [Symbol.asyncDispose]: () => stop(child) }
}

/** Empty if requests failed. */
async function measure(bench: Bench, cluster: Cluster, proxy: Proxy, instances: number): Promise<readonly Figures[]> {
  await using database = await cluster.newDatabase()
  await importAnimals(bench, database.url, animals)
  const { host, roundTripMs } = proxy
  const contender: Contender = {
    ...petstore,
    env: { DATABASE_URL: database.url.replace(cluster.host, host) },
    prepare() {},
    command: serveCommand,
  }
  await using stack = new AsyncDisposableStack()
  const servers: Server[] = []
  while (servers.length < instances) {
    servers.push(stack.use(await start(bench, contender, { catalogue: { file: '', animals } })))
  }
  // The first load warms the instances up.
  await createOnAll(bench, servers, database.url)
  const reports = await createOnAll(bench, servers, database.url)
  const [createdPerSecond, failures] = [sumOf(reports, 'requestsPerSecond'), sumOf(reports, 'failures')]
  const what = `instances: ${instances}, round trip: ${roundTripMs} ms`
  bench.log(`${what}: ${Math.round(createdPerSecond).toLocaleString('en')} creations/s`)
  if (failures > 0) bench.log(`not counted: ${failures} requests failed: ${what}`)
  const { p50Ms, p99Ms } = reports.reduce((slowest, each) => (each.p99Ms > slowest.p99Ms ? each : slowest))
  return failures > 0 ? [] : [{ instances, roundTripMs, createdPerSecond, p50Ms, p99Ms }]
}

function mediansOf(samples: readonly Figures[]): readonly Figures[] {
  const medianOf = (figure: keyof Figures) => median(samples.map(each => each[figure]))
  const figures = { createdPerSecond: medianOf('createdPerSecond'), p50Ms: medianOf('p50Ms'), p99Ms: medianOf('p99Ms') }
  return samples.slice(0, 1).map(first => ({ ...first, ...figures }))
}

/** Sends creations to all instances at once. Throws unless the database has all animals that were acknowledged. */
async function createOnAll(bench: Bench, servers: readonly Server[], url: string): Promise<readonly Measured[]> {
  await using sql = new SQL(url, { max: 1 })
  const count = async () => Number((await sql`SELECT count(*) AS animals FROM pets`)[0].animals)
  const before = await count()
  const reports = await Promise.all(
    servers.map(each => sendLoad(bench, each, 'create', { connections: connections / servers.length, niceness: 0 })),
  )
  const [added, acknowledged] = [(await count()) - before, sumOf(reports, 'requests') - sumOf(reports, 'failures')]
  if (added < acknowledged)
    throw new Error(`${acknowledged} creations returned 201, but the store has ${added} of them`)
  return reports
}

const sumOf = (loads: readonly Measured[], figure: keyof Measured) => loads.reduce((sum, each) => sum + each[figure], 0)

export function instancesTable(figures: InstancesFigures): string {
  const rows = figures.map(({ instances, roundTripMs, createdPerSecond, p50Ms, p99Ms }) => [
    `${instances}, ${roundTripMs} ms`,
    ...[whole(createdPerSecond), show(p50Ms), show(p99Ms)],
  ])
  return table(['Instances, round trip', 'Creations per second', 'p50, ms', 'p99, ms'], rows)
}
