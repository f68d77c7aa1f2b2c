import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { issueApiKey, type NewApiKey } from '../../src/api-key.ts'
import { openStores } from '../../src/store/open.ts'
import { programs as findPrograms } from '../support/debian.ts'
import { Load } from '../support/load.ts'
import { ask, own, startCluster } from '../support/postgres.ts'
import { createKey, freePort, projectFolder, run, type Server, startServer, until } from '../support/process.ts'
import { ProcessFolder } from './process-folder.ts'

const programs = await findPrograms('the tests of monitoring', { prometheus: 'prometheus', promtool: 'prometheus' })

const key = 'a-key-from-outside-0123456789'
const textOf = (file: string) => readFileSync(join(projectFolder, file), 'utf8')

/** The documented configuration, for these servers. */
function documentedConfiguration(servers: readonly Server[]): string {
  const [, text = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(textOf('docs/operating.md')) ?? []
  const targets = servers.map(({ url }) => new URL(url).host).join("', '")
  return text.replaceAll('/etc/prometheus/', '').replace('127.0.0.1:8080', targets)
}

/** Requests of every kind, for which the server gives every status that the dashboard shows. */
async function sendTraffic(server: Server): Promise<void> {
  const { fetch } = server
  const creation = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }
  const statuses = async (...sent: Parameters<Server['fetch']>[]) => {
    const responses = await Promise.all(sent.map(request => fetch.apply(server, request)))
    return responses.map(({ status }) => status)
  }
  expect(await statuses(['/pets', key, creation], ['/pets', key, { ...creation, body: '{' }])).toEqual([201, 400])
  const reads = await statuses(['/pets', key], ['/pets', key], ['/pets/1', key], ['/none', key], ['/pets', 'wrong'])
  expect(reads).toEqual([200, 200, 200, 404, 401])
  // Without its file, the store refuses to write.
  const file = join(server.cwd, 'data/petstore.db')
  renameSync(file, `${file}.moved`)
  expect(await statuses(['/pets', key, creation])).toEqual([503])
  renameSync(`${file}.moved`, file)
}

type Sample = Readonly<{ metric: Readonly<Record<string, string>>; value: readonly [number, string] }>

type Rule = Readonly<Record<'name' | 'query' | 'health' | 'state', string>> &
  Readonly<Record<'labels' | 'annotations', Readonly<Record<string, string>>>>

/** Prometheus with our rules, scraping these servers. */
async function monitor(
  servers: readonly Server[],
  metricsKey: string,
  configuration = documentedConfiguration(servers),
) {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(new ProcessFolder())
  const path = folder.folder('prometheus')
  writeFileSync(join(path, 'prometheus.yaml'), configuration)
  writeFileSync(join(path, 'petstore.key'), metricsKey)
  copyFileSync(join(projectFolder, 'deploy/alerts.yaml'), join(path, 'petstore-alerts.yaml'))
  const address = `127.0.0.1:${freePort()}`
  const flags = ['--config.file=prometheus.yaml', '--storage.tsdb.path=data', `--web.listen-address=${address}`]
  folder.start('prometheus', programs?.prometheus ?? '', ...flags)
  const ask = async <T>(what: string): Promise<T> => {
    const response = await fetch(`http://${address}/api/v1/${what}`)
    const { data, error } = (await response.json()) as { data: T; error?: string }
    if (error !== undefined) throw new Error(`${what}: ${error}`)
    return data
  }
  const query = async (expression: string) =>
    (await ask<{ result: readonly Sample[] }>(`query?query=${encodeURIComponent(expression)}`)).result
  const isUp = async () => (await query('up == 1')).length === servers.length || undefined
  await until('a scrape', () => isUp().catch(() => undefined)).catch(error => {
    throw new Error(`${error.message}\n${folder.log('prometheus')}`)
  })
  const rules = async () => {
    const { groups } = await ask<{ groups: readonly { rules: readonly Rule[] }[] }>('rules')
    return groups.flatMap(group => group.rules)
  }
  const stateOf = async (alert: string) => (await rules()).find(({ name }) => name === alert)?.state
  return Object.assign(stack.move(), { path, query, rules, stateOf })
}

/** A server on SQLite that is scraped every second. */
async function deploy() {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startServer({ env: { PETSTORE_API_KEY: key } }))
  const metricsKey = await createKey(server.cwd, 'prometheus', '--permission', 'metrics')
  const monitored = stack.use(
    await monitor([server], metricsKey, documentedConfiguration([server]).replaceAll('15s', '1s')),
  )
  const owned = stack.move()
  return { ...monitored, server, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

type Panel = Readonly<{ title: string; targets: readonly { readonly expr: string }[] }>
const { panels }: { panels: readonly Panel[] } = JSON.parse(textOf('deploy/grafana.json'))
const queries = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const))
/** Only PostgreSQL has pools. */
const isOfPools = ([, expression]: readonly [string, string]) => expression.includes('_pool_')

async function expectData(query: (expression: string) => Promise<readonly Sample[]>, expression: string) {
  expect(expression).toContain('instance=~"$instance"')
  const samples = await query(expression.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '1m'))
  const values = samples.map(({ value: [, text] }) => Number(text))
  expect(values).not.toBeEmpty()
  for (const value of values) expect(value).toBeFinite()
}

const scrape = 'job="petstore",instance="pets:8080"'
/** 15 s apart, in promtool's notation. */
const healthy = {
  [`up{${scrape}}`]: '1x240',
  [`petstore_store_up{${scrape}}`]: '1x240',
  [`petstore_store_writable{${scrape}}`]: '1x240',
  [`petstore_http_requests_total{${scrape},operation="createPet",status="201"}`]: '0+990x240',
  [`petstore_http_requests_total{${scrape},operation="createPet",status="503"}`]: '0+10x240',
  [`petstore_http_request_duration_seconds_bucket{${scrape},operation="createPet",le="0.5"}`]: '0+995x240',
  [`petstore_http_request_duration_seconds_bucket{${scrape},operation="createPet",le="1"}`]: '0+1000x240',
  [`petstore_http_request_duration_seconds_bucket{${scrape},operation="createPet",le="+Inf"}`]: '0+1000x240',
  [`petstore_writes_waiting{${scrape}}`]: '500x240',
  [`process_open_fds{${scrape}}`]: '700x240',
  [`process_max_fds{${scrape}}`]: '1000x240',
  // Swept just now; promtool's time begins at 0.
  [`petstore_idempotency_keys_swept_timestamp_seconds{${scrape}}`]: '0+15x240',
  [`petstore_http_request_duration_seconds_count{${scrape},operation="getPet"}`]: '5x240',
}

/** For each alert, the metric that makes it fire, and its values. */
const causes: Readonly<Record<string, readonly [RegExp, string]>> = {
  PetstoreDown: [/^up/, '0x240'],
  PetstoreStoreUnavailable: [/_store_up/, '0x240'],
  PetstoreNotWritable: [/_store_writable/, '0x240'],
  PetstoreErrors: [/"503"/, '0+100x240'],
  PetstoreSlow: [/le="0.5"/, '0+900x240'],
  PetstoreWritesQueue: [/_waiting/, '600x240'],
  PetstoreFileDescriptors: [/_open_fds/, '900x240'],
  PetstoreKeysNotDeleted: [/_swept_/, '-3600x240'],
  PetstoreDeprecatedOperationUsed: [/"getPet"/, '0+1x240'],
}

/** A unit test for promtool: with these values, exactly these alerts fire after half an hour. */
function ruleTest(name: string, firing: readonly string[], [metric, values]: readonly [RegExp, string]) {
  const series = Object.entries(healthy).map(([series, usual]) => ({
    series,
    values: metric.test(series) ? values : usual,
  }))
  const samples = firing.map(alertname => ({ labels: `{alertname="${alertname}"}`, value: 1 }))
  const expr = 'count by (alertname) (ALERTS{alertstate="firing"})'
  const firings = [{ expr, eval_time: '30m', exp_samples: samples }]
  return { name, interval: '15s', input_series: series, promql_expr_test: firings }
}

setDefaultTimeout(60_000)

describe.skipIf(!programs)('Prometheus, configured as documented', () => {
  let deployed: Awaited<ReturnType<typeof deploy>>
  beforeAll(async () => {
    if (!programs) return
    deployed = await deploy()
    // Over several scrapes: a rate needs two values.
    for (let round = 0; round < 10; round++) {
      await sendTraffic(deployed.server)
      await Bun.sleep(500)
    }
  })
  afterAll(() => deployed?.[Symbol.asyncDispose]())

  const check = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await run([programs?.promtool ?? '', ...args], { cwd: deployed.path })
    expect({ exitCode, output: exitCode === 0 ? '' : stdout + stderr }).toEqual({ exitCode: 0, output: '' })
  }

  test('each alert fires for its own cause, and none for healthy values', async () => {
    const rules = await deployed.rules()
    expect(rules.map(({ name }) => name)).toEqual(Object.keys(causes))
    const tests = Object.entries(causes).map(([alert, cause]) => ruleTest(alert, [alert], cause))
    tests.push(ruleTest('healthy', [], [/^$/, '']))
    const file = { rule_files: ['petstore-alerts.yaml'], evaluation_interval: '1m', tests }
    writeFileSync(join(deployed.path, 'rules-test.yaml'), JSON.stringify(file))
    await check('test', 'rules', 'rules-test.yaml')
  })

  test('every rule is evaluated, on metrics that exist, and says how urgent it is and what to do', async () => {
    for (const { name, query, health, labels, annotations } of await deployed.rules()) {
      const severity = expect.stringMatching(/^(critical|warning|info)$/)
      expect([name, health, labels['severity']]).toEqual([name, 'ok', severity])
      expect(Object.keys(annotations).toSorted()).toEqual(['description', 'summary'])
      const metrics = query.match(/\b(up|(petstore|process)_\w+)\b/g) ?? []
      expect(metrics).not.toBeEmpty()
      for (const metric of metrics) expect([metric, await deployed.query(metric)]).not.toEqual([metric, []])
    }
  })

  test.each(queries.filter(query => !isOfPools(query)))('the panel "%s" has data for %s', async (_, expression) => {
    await expectData(deployed.query, expression)
  })

  test('a deprecated call raises an alert, and a server that is gone raises one, too', async () => {
    const { stateOf } = deployed
    const [alert] = await deployed.query('ALERTS{alertname="PetstoreDeprecatedOperationUsed"}')
    expect(alert?.metric).toMatchObject({ alertstate: 'firing', operation: 'getPet' })
    expect(await stateOf('PetstoreDown')).toBe('inactive')
    await deployed.server.stop('SIGTERM')
    await until('the alert', async () => (await stateOf('PetstoreDown')) === 'pending' || undefined)
  })
})

const troubleMs = 150_000
/** Until an alert fires, and until it ends: a scrape and an evaluation, 15 s each; it must last for 60 s before. */
const firingMsMax = 105_000
const endingMsMax = 45_000

/** Two instances on one database, which knows this key. */
async function startPair(stack: AsyncDisposableStack, record: NewApiKey) {
  const cluster = stack.use(await startCluster())
  const { url } = await cluster.newDatabase()
  const stores = await openStores(url, { create: true })
  await stores.keys.create(record)
  await stores.close()
  const start = async (port: number) => {
    const args = ['serve', '--port', String(port), '--log-level', 'error']
    return stack.use(await startServer({ env: { PETSTORE_API_KEY: key, DATABASE_URL: url }, args }))
  }
  return { cluster, url, start, servers: [await start(0), await start(0)] as const }
}

interface Trouble {
  readonly name: string
  /** The only alert that it raises, and how many of the two instances raise it. */
  readonly alert: string
  readonly instances: number
  /** Resolves with the function that ends it. */
  begin(pair: Awaited<ReturnType<typeof startPair>>, stack: AsyncDisposableStack): Promise<() => Promise<unknown>>
}

const troubles: readonly Trouble[] = [
  {
    name: 'PostgreSQL is down',
    alert: 'PetstoreStoreUnavailable',
    instances: 2,
    async begin({ cluster }) {
      await cluster.stop('SIGQUIT')
      return () => cluster.start()
    },
  },
  {
    name: 'another program locks the table',
    alert: 'PetstoreNotWritable',
    instances: 2,
    async begin({ url }) {
      const sql = new SQL(url, { max: 1 })
      await sql.unsafe('BEGIN')
      await sql.unsafe('LOCK TABLE pets IN SHARE MODE')
      return () => sql.close({ timeout: 0 })
    },
  },
  {
    name: "PostgreSQL's disk is full",
    alert: 'PetstoreNotWritable',
    instances: 2,
    async begin({ cluster, url }, stack) {
      const disk = join(cluster.data, '..', 'disk')
      const mount = `mkdir "$0" && mount -t tmpfs -o size=8m petstore-test "$0"`
      expect(await run(['sh', '-c', mount, disk], { cwd: '/' })).toMatchObject({ exitCode: 0 })
      stack.defer(async () => void (await run(['umount', '--lazy', disk], { cwd: '/' })))
      own(disk)
      await ask(url, `CREATE TABLESPACE small LOCATION '${disk}'`)
      await ask(url, 'ALTER TABLE pets SET TABLESPACE small')
      // Fails when the disk is full.
      await run(['dd', 'if=/dev/zero', `of=${join(disk, 'filler')}`, 'bs=4k'], { cwd: '/' })
      return async () => rmSync(join(disk, 'filler'))
    },
  },
  {
    name: 'an instance is killed',
    alert: 'PetstoreDown',
    instances: 1,
    async begin({ servers: [first], start }) {
      const { port } = first
      await first.stop('SIGKILL')
      return () => start(port)
    },
  },
]

test.skipIf(!programs)(
  `each trouble of ${troubleMs / 1_000} s raises one alert for each instance that it concerns, while it lasts`,
  async () => {
    await using stack = new AsyncDisposableStack()
    const { key: metricsKey, record } = issueApiKey({
      name: 'prometheus',
      permission: 'metrics',
      createdAt: new Date(),
    })
    const pairs = await Promise.all(troubles.map(() => startPair(stack, record)))
    const monitored = stack.use(
      await monitor(
        pairs.flatMap(({ servers }) => servers),
        metricsKey,
      ),
    )
    for (const [, expression] of queries.filter(isOfPools)) await expectData(monitored.query, expression)
    // The first instance of the last pair is killed.
    const loads = pairs
      .flatMap(({ servers }) => servers.map(({ port }) => port))
      .filter(port => port !== pairs.at(-1)?.servers[0].port)
    const clients = loads.map(port => new Load(port, key, 4, { restMs: 50 }))
    await Promise.all(clients.map(load => load.makesProgress()))

    /** When each alert began to fire and when it was last seen, by its name and instance. */
    const seen = new Map<string, { firstMs: number; lastMs: number }>()
    const watch = async () => {
      for (const { metric } of await monitored.query('ALERTS{alertstate="firing",severity=~"critical|warning"}')) {
        const name = `${metric['alertname']} ${metric['instance']}`
        const now = performance.now()
        seen.set(name, { firstMs: seen.get(name)?.firstMs ?? now, lastMs: now })
      }
      await Bun.sleep(1_000)
    }
    const beganMs = performance.now()
    const ends = await Promise.all(troubles.map(({ begin }, index) => begin(pairs[index] as (typeof pairs)[0], stack)))
    while (performance.now() < beganMs + troubleMs) await watch()
    const endedMs = performance.now()
    await Promise.all(ends.map(end => end()))
    // Long enough for an alert that comes only after the trouble.
    while (performance.now() < endedMs + troubleMs) await watch()

    for (const [index, { name, alert, instances }] of troubles.entries()) {
      const hosts = (pairs[index]?.servers ?? []).map(({ url }) => new URL(url).host)
      const raised = [...seen].filter(([name]) => hosts.some(host => name.endsWith(host)))
      for (const [alert, { firstMs, lastMs }] of raised) {
        const seconds = [firstMs - beganMs, lastMs - endedMs].map(ms => Math.round(ms / 1_000))
        process.stdout.write(`${name}: ${alert} after ${seconds[0]} s, until ${seconds[1]} s after the end\n`)
        expect(firstMs - beganMs).toBeLessThan(firingMsMax)
        expect(lastMs - endedMs).toBeLessThan(endingMsMax)
      }
      expect(raised.map(([name]) => name.split(' ')[0])).toEqual(Array(instances).fill(alert))
    }
    await Promise.all(clients.map(load => load.stop()))
    for (const load of clients) expect(load.wrong).toEqual([])
  },
  600_000,
)
