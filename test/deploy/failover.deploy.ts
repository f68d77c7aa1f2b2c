import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { allAnimals, key, Ledger, Load } from '../faults/load.ts'
import { KeepAliveClient } from '../support/connections.ts'
import { programs as findPrograms } from '../support/debian.ts'
import { newDatabase } from '../support/postgres.ts'
import { freePort, readProjectFile, startServer, until } from '../support/process.ts'
import { PatroniCluster, type Role } from './patroni.ts'

const packages = { patroni: 'patroni', etcd: 'etcd-server', haproxy: 'haproxy', pg_rewind: 'postgresql' }
const programs = await findPrograms('the tests of failovers', packages)

/** The cluster behind HAProxy as documented, with one database. */
async function deploy(paths: NonNullable<typeof programs>) {
  await using stack = new AsyncDisposableStack()
  const cluster = stack.use(new PatroniCluster())
  await cluster.run(paths)
  const [primaryPort, replicasPort] = [freePort(), freePort()]
  let text = readProjectFile('deploy/haproxy-patroni.cfg')
    .replace(':5000', `:${primaryPort}`)
    .replace(':5001', `:${replicasPort}`)
  for (const { name, port, restPort } of cluster.nodes) {
    text = text.replaceAll(`${name}.example.com:5432 check port 8008`, `127.0.0.1:${port} check port ${restPort}`)
  }
  cluster.start('haproxy', { 'haproxy.cfg': text }, paths.haproxy, '-db', '-f', 'haproxy.cfg')
  await cluster.complete()
  const addresses = [primaryPort, replicasPort].map(port => `postgres://postgres@127.0.0.1:${port}/postgres`)
  // Until HAProxy has asked Patroni, it takes every node for the primary.
  const { pathname } = new URL((await cluster.until('haproxy', () => newDatabase(addresses[0] ?? ''))).url)
  const [primary = '', replicas = ''] = addresses.map(url => url.replace(/\/postgres$/, pathname))
  const owned = stack.move()
  /** Starts an instance, and gives its port. */
  async function serve(name: string, url: string, ...flags: string[]): Promise<number> {
    const env = { PETSTORE_API_KEY: key, DATABASE_URL: url }
    const args = ['serve', '--port', '0', ...flags]
    return owned.use(await startServer({ cwd: cluster.folder(name), env, args })).port
  }
  return Object.assign(owned, { cluster, serve, urls: { primary, replicas } })
}

describe.skipIf(!programs)('two instances on a Patroni cluster through HAProxy', () => {
  let deployed: Awaited<ReturnType<typeof deploy>>
  let loads: readonly Load[]

  beforeAll(async () => {
    if (!programs) return
    deployed = await deploy(programs)
    const { serve, urls } = deployed
    const ports = [await serve('first', urls.primary), await serve('second', urls.primary)]
    loads = ports.map(port => new Load(port, key))
  })
  afterAll(() => deployed?.[Symbol.asyncDispose]())

  const progress = () => Promise.all(loads.map(load => load.makesProgress(50)))

  /** Animals that are acknowledged while no standby receives them would be lost. */
  async function kill(node: string): Promise<void> {
    deployed.cluster.signal(node, 'SIGSTOP', 'walsender')
    // Nothing happens meanwhile unless commits do not wait for the standby.
    await Bun.sleep(500)
    deployed.cluster.signal(node, 'SIGKILL')
  }
  const freeze = (node: string) => deployed.cluster.signal(node, 'SIGSTOP')
  const thaw = (node: string) => deployed.cluster.signal(node, 'SIGCONT')

  // What happens to the node that has this role, and what ends it before the cluster can be complete again.
  test.each<[string, Role, happen: (node: string) => Promise<void> | void, end?: (node: string) => void]>([
    ['Planned switchover', 'leader', node => deployed.cluster.switchover(node)],
    ['Primary and its Patroni killed', 'leader', kill, node => deployed.cluster.startNode(node)],
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

  test('at the end each acknowledged animal is there once, and replicas have the same animals', async () => {
    const { serve, urls } = deployed
    await Promise.all(loads.map(load => load.stop()))
    const ledger = new Ledger()
    for (const load of loads) ledger.include(load)
    using client = new KeepAliveClient(await serve('reads-primary', urls.primary), key)
    const found = await ledger.expectEachOnce(client)
    process.stdout.write(`${ledger.acknowledged.size} animals acknowledged, none lost\n`)
    using reader = new KeepAliveClient(await serve('reads-replicas', urls.primary, '--read-url', urls.replicas), key)
    await until('the same animals', async () => Bun.deepEquals(await allAnimals(reader), found) || undefined)
  })
})
