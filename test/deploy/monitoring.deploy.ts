import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { programs as findPrograms } from '../support/debian.ts'
import { startCluster } from '../support/postgres.ts'
import { createKey, freePort, projectFolder, run, type Server, startServer, until } from '../support/process.ts'
import { setTestLimit, test } from '../support/test.ts'
import { ProcessFolder } from './process-folder.ts'

const programs = await findPrograms('the tests of monitoring', { prometheus: 'prometheus', promtool: 'prometheus' })

const key = 'a-key-from-outside-0123456789'
const textOf = (file: string) => readFileSync(join(projectFolder, file), 'utf8')

/** The documented configuration, for one server, every second. */
function documentedConfiguration(target: string): string {
  const [, text = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(textOf('docs/operating.md')) ?? []
  return text.replaceAll('15s', '1s').replaceAll('/etc/prometheus/', '').replace('127.0.0.1:8080', target)
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

/** Prometheus with our rules, scraping a server with a key from the store or with the given one. */
async function deploy(databaseUrl = 'sqlite:data/petstore.db', givenKey?: string) {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(new ProcessFolder())
  const server = stack.use(await startServer({ env: { PETSTORE_API_KEY: key, DATABASE_URL: databaseUrl } }))
  const path = folder.folder('prometheus')
  writeFileSync(join(path, 'prometheus.yaml'), documentedConfiguration(new URL(server.url).host))
  const options = ['--permission', 'metrics', '--database-url', databaseUrl]
  const metricsKey = givenKey ?? (await createKey(server.cwd, 'prometheus', ...options))
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
  const isUp = async () => (await query('up == 1')).length || undefined
  await until('a scrape', () => isUp().catch(() => undefined)).catch(error => {
    throw new Error(`${error.message}\n${folder.log('prometheus')}`)
  })
  const rules = async () => {
    const { groups } = await ask<{ groups: readonly { rules: readonly Rule[] }[] }>('rules')
    return groups.flatMap(group => group.rules)
  }
  const stateOf = async (alert: string) => (await rules()).find(({ name }) => name === alert)?.state
  return Object.assign(stack.move(), { path, server, query, rules, stateOf })
}

type Panel = Readonly<{ title: string; targets: readonly { readonly expr: string }[] }>
const { panels }: { panels: readonly Panel[] } = JSON.parse(textOf('deploy/grafana.json'))
const queries = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const))
/** Only PostgreSQL has pools. */
const isOfPools = ([, expression]: readonly [string, string]) => expression.includes('_pool_')

async function expectData(query: (expression: string) => Promise<readonly Sample[]>, expression: string) {
  expect(expression).toContain('instance=~"$instance"')
  const samples = await query(expression.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '10s'))
  const values = samples.map(({ value: [, text] }) => Number(text))
  expect(values).not.toBeEmpty()
  for (const value of values) expect(value).toBeFinite()
}

const scrape = 'job="petstore",instance="pets:8080"'
/** A minute apart, in promtool's notation. */
const healthy = {
  [`up{${scrape}}`]: '1x60',
  [`petstore_store_up{${scrape}}`]: '1x60',
  [`petstore_store_writable{${scrape}}`]: '1x60',
  [`petstore_http_requests_total{${scrape},operation="createPet",status="201"}`]: '0+990x60',
  [`petstore_http_requests_total{${scrape},operation="createPet",status="503"}`]: '0+10x60',
  [`petstore_http_request_duration_seconds_bucket{${scrape},operation="createPet",le="0.5"}`]: '0+995x60',
  [`petstore_http_request_duration_seconds_bucket{${scrape},operation="createPet",le="1"}`]: '0+1000x60',
  [`petstore_http_request_duration_seconds_bucket{${scrape},operation="createPet",le="+Inf"}`]: '0+1000x60',
  [`petstore_writes_waiting{${scrape}}`]: '500x60',
  [`process_open_fds{${scrape}}`]: '700x60',
  [`process_max_fds{${scrape}}`]: '1000x60',
  // A sweep every minute; promtool's time begins at 0.
  [`petstore_idempotency_keys_swept_timestamp_seconds{${scrape}}`]: '0+60x60',
  [`petstore_deprecated_last_request_timestamp_seconds{${scrape},operation="getPet",key="till"}`]: '-86400x60',
}

/** For each alert, the metric that makes it fire, and its values. */
const causes: Readonly<Record<string, readonly [RegExp, string]>> = {
  PetstoreDown: [/^up/, '0x60'],
  PetstoreStoreUnavailable: [/_store_up/, '0x60'],
  PetstoreNotWritable: [/_store_writable/, '0x60'],
  PetstoreErrors: [/"503"/, '0+100x60'],
  PetstoreSlow: [/le="0.5"/, '0+900x60'],
  PetstoreWritesQueue: [/_waiting/, '600x60'],
  PetstoreFileDescriptors: [/_open_fds/, '900x60'],
  PetstoreKeysNotDeleted: [/_swept_/, '-3600x60'],
  PetstoreDeprecatedOperationUsed: [/_deprecated_/, '0x60'],
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
  return { name, interval: '1m', input_series: series, promql_expr_test: firings }
}

setTestLimit(60_000)

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

  test('a deprecated call raises an alert that names the key, and a server that is gone raises one, too', async () => {
    const { stateOf } = deployed
    const [alert] = await deployed.query('ALERTS{alertname="PetstoreDeprecatedOperationUsed"}')
    expect(alert?.metric).toMatchObject({ alertstate: 'firing', operation: 'getPet', key: 'PETSTORE_API_KEY' })
    expect(await stateOf('PetstoreDown')).toBe('inactive')
    await deployed.server.stop('SIGTERM')
    await until('the alert', async () => (await stateOf('PetstoreDown')) === 'pending' || undefined)
  })
})

test.skipIf(!programs).each([
  ['a key from the store', undefined, 'PetstoreDown'],
  ['PETSTORE_API_KEY', key, 'PetstoreStoreUnavailable'],
])('with %s, an alert reports that PostgreSQL is down', async (_, givenKey, alert) => {
  await using cluster = await startCluster()
  await using deployed = await deploy((await cluster.newDatabase()).url, givenKey)
  const states = async () => Promise.all(['PetstoreDown', 'PetstoreStoreUnavailable'].map(deployed.stateOf))
  const becomes = (state: string) =>
    until(`the alert, ${state}`, async () => (await deployed.stateOf(alert)) === state || undefined)
  await becomes('inactive')
  for (const [, expression] of queries.filter(isOfPools)) await expectData(deployed.query, expression)
  await cluster.stop('SIGQUIT')
  await becomes('pending')
  expect((await states()).toSorted()).toEqual(['inactive', 'pending'])
  await cluster.start()
  await becomes('inactive')
})
