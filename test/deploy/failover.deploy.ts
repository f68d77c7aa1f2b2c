import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KeepAliveClient } from '../support/connections.ts'
import { programs as findPrograms } from '../support/debian.ts'
import { allAnimals, key, Ledger, Load } from '../support/load.ts'
import { ask, newDatabase } from '../support/postgres.ts'
import { freePort, readProjectFile, startServer, until } from '../support/process.ts'
import { extractFromDebian13 } from './debian-13.ts'
import { PatroniCluster, type Role } from './patroni.ts'
import { ProcessFolder } from './process-folder.ts'

const packages = { patroni: 'patroni', etcd: 'etcd-server', haproxy: 'haproxy', pg_rewind: 'postgresql' }
const programs = await findPrograms('the tests of failovers', packages)

const clients = 16
/** After each request of a client, so that the machine has time for the failover. */
const restMs = 10
/** For a failover, or for a node to join again. */
const recoveryMsMax = 60_000

/** HAProxy as documented, in front of the cluster. Gives the ports for its primary and for its replicas. */
function startHaproxy(folder: ProcessFolder, cluster: PatroniCluster, program: string) {
  const ports = { primary: freePort(), replicas: freePort() }
  let text = readProjectFile('deploy/haproxy-patroni.cfg')
    .replace(':5000', `:${ports.primary}`)
    .replace(':5001', `:${ports.replicas}`)
  for (const { name, port, restPort } of cluster.nodes) {
    text = text.replaceAll(`${name}.example.com:5432 check port 8008`, `127.0.0.1:${port} check port ${restPort}`)
  }
  writeFileSync(join(folder.folder('haproxy'), 'haproxy.cfg'), text)
  folder.start('haproxy', program, '-db', '-f', 'haproxy.cfg')
  return ports
}

/** Everything that runs, with one database in the cluster. */
async function deploy(paths: NonNullable<typeof programs>) {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(new ProcessFolder())
  // Until 3.0.2, which Debian 12 has, a node that was frozen could take the leader's key from the new primary.
  const newer = folder.folder('debian-13')
  await extractFromDebian13('patroni', newer)
  const cluster = new PatroniCluster(folder, paths, join(newer, 'usr/lib/python3/dist-packages'))
  const ports = startHaproxy(folder, cluster, paths.haproxy)
  await cluster.complete()
  const through = (port: number, database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}`
  for (const port of [ports.primary, ports.replicas]) {
    const isUp = () => ask(through(port), 'SELECT 1').then(() => true)
    await until('HAProxy', () => isUp().catch(() => undefined))
  }
  const database = new URL((await newDatabase(through(ports.primary))).url).pathname.slice(1)
  const [primary, replicas] = [through(ports.primary, database), through(ports.replicas, database)]
  const owned = stack.move()
  /** Starts an instance, and gives its port. */
  async function serve(name: string, url: string, ...flags: string[]): Promise<number> {
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: url }
    const args = ['serve', '--port', '0', ...flags]
    return owned.use(await startServer({ cwd: folder.folder(name), env, args })).port
  }
  return Object.assign(owned, { folder, cluster, serve, urls: { primary, replicas } })
}

setDefaultTimeout(3 * recoveryMsMax)

describe.skipIf(!programs)('two instances on a Patroni cluster through HAProxy', () => {
  let deployed: Awaited<ReturnType<typeof deploy>>
  let loads: readonly Load[]

  beforeAll(async () => {
    if (!programs) return
    deployed = await deploy(programs)
    const { serve, urls } = deployed
    const ports = [await serve('first', urls.primary), await serve('second', urls.primary)]
    loads = ports.map(port => new Load(port, key, clients, { restMs }))
  })
  afterAll(() => deployed?.[Symbol.asyncDispose]())

  const progress = () => Promise.all(loads.map(load => load.makesProgress(50, recoveryMsMax)))

  /** Animals that are acknowledged while no standby receives them would be lost. */
  async function kill(node: string): Promise<void> {
    deployed.folder.signal(node, 'SIGSTOP', 'walsender')
    await Bun.sleep(500)
    deployed.folder.signal(node, 'SIGKILL')
  }
  const freeze = (node: string) => deployed.folder.signal(node, 'SIGSTOP')
  const thaw = (node: string) => deployed.folder.signal(node, 'SIGCONT')

  // What happens to the node that has this role, and what ends it before the cluster can be complete again.
  test.each<[string, Role, happen: (node: string) => Promise<void> | void, end?: (node: string) => void]>([
    ['Planned switchover', 'leader', node => deployed.cluster.switchover(node)],
    ['Primary and its Patroni killed', 'leader', kill, node => deployed.cluster.start(node)],
    ['Primary and its Patroni frozen', 'leader', freeze, thaw],
    ['Synchronous standby and its Patroni frozen', 'sync_standby', freeze, thaw],
  ])('%s: clients get only 200, 201 and 503, and are served again', async (event, role, happen, end = () => {}) => {
    const { cluster } = deployed
    try {
      await progress()
      const node = (await cluster.complete())[role]
      for (const load of loads) load.longestPauseMs = 0
      await happen(node)
      await cluster.replaces(node, role)
      await progress()
      end(node)
      await cluster.complete()
      await progress()
      const pauses = loads.map(({ longestPauseMs }) => `${(longestPauseMs / 1_000).toFixed(1)} s`)
      process.stdout.write(`${event}: no creation for ${pauses.join(' and ')}\n`)
    } finally {
      for (const { wrong } of loads) expect(wrong.slice(0, 5)).toEqual([])
    }
  })

  test('at the end each acknowledged animal is there once, ids have no gaps, and replicas have the same animals', async () => {
    const { serve, urls } = deployed
    await Promise.all(loads.map(load => load.stop()))
    const ledger = new Ledger()
    for (const load of loads) ledger.include(load)
    using client = new KeepAliveClient(await serve('reads-primary', urls.primary), key)
    const found = await ledger.expectEachOnce(client)
    process.stdout.write(`${ledger.acknowledged.size} animals acknowledged, none lost\n`)
    expect([...found.keys()]).toEqual(Array.from(found, (_, index) => `${index + 1}`))
    using reader = new KeepAliveClient(await serve('reads-replicas', urls.primary, '--read-url', urls.replicas), key)
    expect(await allAnimals(reader)).toEqual(found)
  })
})
