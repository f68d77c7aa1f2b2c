import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KeepAliveClient, type Reply } from '../support/connections.ts'
import { programs as findPrograms } from '../support/debian.ts'
import { allAnimals, key, Ledger, Load } from '../support/load.ts'
import { ask, newDatabase } from '../support/postgres.ts'
import { freePort, projectFolder, run, startServer, until } from '../support/process.ts'
import { PatroniCluster, type Role, ttlSeconds } from './patroni.ts'
import { ProcessFolder } from './process-folder.ts'

const packages = { patroni: 'patroni', etcd: 'etcd-server', haproxy: 'haproxy', pg_rewind: 'postgresql' }
const programs = await findPrograms('the tests of failovers', packages)

const clients = 16
/** After each request of a client, so that the machine has time for the failover. */
const restMs = 10
/** For a failover, or for a node to join again. */
const recoveryMsMax = 60_000

/** Also measures how long no animal was acknowledged. */
class TimedLoad extends Load {
  #lastAt = performance.now()
  #longestMs = 0

  override acknowledge(body: string, reply: Reply): void {
    super.acknowledge(body, reply)
    this.#longestMs = Math.max(this.#longestMs, performance.now() - this.#lastAt)
    this.#lastAt = performance.now()
  }

  /** The longest time without an acknowledged animal since the last call. */
  takeLongestMs(): number {
    const longestMs = this.#longestMs
    this.#longestMs = 0
    return longestMs
  }
}

/** HAProxy as documented, in front of the cluster. Gives the ports for its primary and for its replicas. */
function startHaproxy(folder: ProcessFolder, cluster: PatroniCluster, program: string) {
  const ports = { primary: freePort(), replicas: freePort() }
  let text = readFileSync(join(projectFolder, 'deploy/haproxy-patroni.cfg'), 'utf8')
    .replace(':5000', `:${ports.primary}`)
    .replace(':5001', `:${ports.replicas}`)
  for (const { name, port, restPort } of cluster.nodes) {
    text = text.replaceAll(`${name}.example.com:5432 check port 8008`, `127.0.0.1:${port} check port ${restPort}`)
  }
  writeFileSync(join(folder.folder('haproxy'), 'haproxy.cfg'), text)
  folder.start('haproxy', program, '-db', '-f', 'haproxy.cfg')
  return ports
}

/** The beginning of a table of results, in Markdown. */
async function heading(paths: Readonly<Record<keyof typeof packages, string>>): Promise<string> {
  const versionOf = async (...command: string[]) => {
    const { stdout } = await run(command, { cwd: '/' })
    return /\d+(\.\d+)+/.exec(stdout)?.[0]
  }
  const versions = [
    `Patroni ${await versionOf(paths.patroni, '--version')} (ttl ${ttlSeconds} s)`,
    `etcd ${await versionOf(paths.etcd, '--version')}`,
    `HAProxy ${await versionOf(paths.haproxy, '-v')}`,
    `PostgreSQL ${await versionOf(paths.pg_rewind, '--version')}`,
  ]
  return `${new Date().toISOString().slice(0, 10)}: ${versions.join(', ')}

| Event | Animals acknowledged | No creation, all hosts named | No creation, through HAProxy |
|---|---|---|---|`
}

/** Everything that runs, with one database in the cluster. */
async function deploy(paths: NonNullable<typeof programs>) {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(new ProcessFolder())
  const cluster = new PatroniCluster(folder, paths)
  const ports = startHaproxy(folder, cluster, paths.haproxy)
  await cluster.complete()
  const through = (port: number, database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}`
  for (const port of [ports.primary, ports.replicas]) {
    const isUp = () => ask(through(port), 'SELECT 1').then(() => true)
    await until('HAProxy', () => isUp().catch(() => undefined))
  }
  const database = new URL((await newDatabase(through(ports.primary))).url).pathname.slice(1)
  const owned = stack.move()
  return {
    folder,
    cluster,
    urls: {
      hosts: cluster.url(database),
      primary: through(ports.primary, database),
      replicas: through(ports.replicas, database),
    },
    /** Starts an instance, and gives its port. */
    async serve(name: string, url: string, ...flags: string[]): Promise<number> {
      const env = { PETSTORE_API_KEY: key, DATABASE_URL: url }
      const args = ['serve', '--port', '0', ...flags]
      return owned.use(await startServer({ cwd: folder.folder(name), env, args })).port
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

setDefaultTimeout(3 * recoveryMsMax)

describe.skipIf(!programs)('two instances on a Patroni cluster, one with all hosts named, one through HAProxy', () => {
  const report: string[] = []
  let deployed: Awaited<ReturnType<typeof deploy>>
  let loads: readonly TimedLoad[]

  beforeAll(async () => {
    if (!programs) return
    report.push(await heading(programs))
    deployed = await deploy(programs)
    const { serve, urls } = deployed
    const ports = [await serve('named-hosts', urls.hosts), await serve('through-haproxy', urls.primary)]
    loads = ports.map((port, index) => new TimedLoad(port, key, clients, { made: index * 10_000_000, restMs }))
  })
  afterAll(async () => {
    await deployed?.[Symbol.asyncDispose]()
    process.stdout.write(`\n${report.join('\n')}\n\n`)
  })

  const acknowledged = () => loads.reduce((sum, load) => sum + load.acknowledged.size, 0)
  const progress = () => Promise.all(loads.map(load => load.makesProgress(50, recoveryMsMax)))

  /** Lets something happen to the node that has this role, and waits until the cluster is complete again. */
  function testEvent(
    event: string,
    role: Role,
    happen: (node: string) => Promise<void> | void,
    end?: (node: string) => void,
  ) {
    test(`${event}: clients get only 200, 201 and 503, and are served again`, async () => {
      const { cluster } = deployed
      try {
        await progress()
        const node = (await cluster.complete())[role]
        for (const load of loads) load.takeLongestMs()
        const before = acknowledged()
        await happen(node)
        await cluster.replaces(node, role)
        await progress()
        end?.(node)
        await cluster.complete()
        await progress()
        const seconds = loads.map(load => `${(load.takeLongestMs() / 1_000).toFixed(1)} s`)
        report.push(`| ${[event, acknowledged() - before, ...seconds].join(' | ')} |`)
      } finally {
        for (const { wrong } of loads) expect(wrong.slice(0, 5)).toEqual([])
      }
    })
  }

  testEvent('Planned switchover', 'leader', node => deployed.cluster.switchover(node))
  testEvent(
    'Primary and its Patroni killed',
    'leader',
    async node => {
      // Animals that are acknowledged while no standby receives them would be lost.
      deployed.folder.signal(node, 'SIGSTOP', 'walsender')
      await Bun.sleep(500)
      deployed.folder.signal(node, 'SIGKILL')
    },
    node => deployed.cluster.start(node),
  )
  for (const [event, role] of [
    ['Primary and its Patroni frozen', 'leader'],
    ['Synchronous standby and its Patroni frozen', 'sync_standby'],
  ] as const) {
    testEvent(
      event,
      role,
      node => deployed.folder.signal(node, 'SIGSTOP'),
      node => deployed.folder.signal(node, 'SIGCONT'),
    )
  }

  test('at the end each acknowledged animal is there once, ids have no gaps, and replicas have the same animals', async () => {
    const { serve, urls } = deployed
    await Promise.all(loads.map(load => load.stop()))
    const ledger = new Ledger()
    for (const load of loads) ledger.include(load)
    using client = new KeepAliveClient(await serve('reads-primary', urls.hosts), key)
    const found = await ledger.expectEachOnce(client)
    expect([...found.keys()]).toEqual(Array.from(found, (_, index) => `${index + 1}`))
    using reader = new KeepAliveClient(await serve('reads-replicas', urls.hosts, '--read-url', urls.replicas), key)
    expect(await allAnimals(reader)).toEqual(found)
    report.push('', `${acknowledged()} animals acknowledged, none missing or duplicated`)
  })
})
