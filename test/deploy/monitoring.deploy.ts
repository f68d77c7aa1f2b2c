import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { programs as findPrograms } from '../support/debian.ts'
import { startCluster } from '../support/postgres.ts'
import { freePort, projectFolder, readProjectFile, run, type Server, startServer, until } from '../support/process.ts'
import { ProcessFolder } from './process-folder.ts'

const programs = await findPrograms('the tests of monitoring', { prometheus: 'prometheus', promtool: 'prometheus' })

const key = 'a-key-from-outside-0123456789'

/** The documented configuration, for these servers. */
function documentedConfiguration(servers: readonly Server[]): string {
  const [, text = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(readProjectFile('docs/operating.md')) ?? []
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
  const update = { method: 'PATCH', body: '{}' }
  expect(await statuses(['/pets/1', key, update], ['/pets/-1', key, { method: 'DELETE' }])).toEqual([200, 404])
  const reads = await statuses(['/pets', key], ['/pets', key], ['/pets/1', key], ['/none', key], ['/pets', 'wrong'])
  expect(reads).toEqual([200, 200, 200, 404, 401])
  // Without its file, the store refuses to write.
  const file = join(server.cwd, 'data/petstore.db')
  renameSync(file, `${file}.moved`)
  expect(await statuses(['/pets', key, creation])).toEqual([503])
  renameSync(`${file}.moved`, file)
}

type Sample = Readonly<{ metric: Readonly<Record<string, string>>; value: readonly [number, string] }>

type Rule = Readonly<Record<'name' | 'query' | 'health', string>> &
  Readonly<Record<'labels' | 'annotations', Readonly<Record<string, string>>>>

/** A server on each store, and Prometheus with our rules, which scrapes both every second. */
async function deploy() {
  await using stack = new AsyncDisposableStack()
  const cluster = stack.use(await startCluster())
  const start = async (env = {}) => stack.use(await startServer({ env: { PETSTORE_API_KEY: key, ...env } }))
  const [server, onPostgres] = [await start(), await start({ DATABASE_URL: cluster.url() })]
  const folder = stack.use(new ProcessFolder())
  const path = folder.folder('prometheus')
  writeFileSync(join(path, 'prometheus.yaml'), documentedConfiguration([server, onPostgres]).replaceAll('15s', '1s'))
  writeFileSync(join(path, 'petstore.key'), key)
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
  const isUp = async () => (await query('up == 1')).length === 2 || undefined
  await until('a scrape', () => isUp().catch(() => undefined)).catch(error => {
    throw new Error(`${error.message}\n${folder.log('prometheus')}`)
  })
  const rules = async () => {
    const { groups } = await ask<{ groups: readonly { rules: readonly Rule[] }[] }>('rules')
    return groups.flatMap(group => group.rules)
  }
  return Object.assign(stack.move(), { server, onPostgres, path, query, rules })
}

type Panel = Readonly<{ title: string; targets: readonly { readonly expr: string }[] }>
const { panels }: { panels: readonly Panel[] } = JSON.parse(readProjectFile('deploy/grafana.json'))
const queries = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const))

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

  test.each(queries)('the panel "%s" has data for %s', async (_, expression) => {
    expect(expression).toContain('instance=~"$instance"')
    // Only PostgreSQL has pools.
    const { url } = expression.includes('_pool_') ? deployed.onPostgres : deployed.server
    const known = expression.replaceAll('$instance', new URL(url).host).replaceAll('$__rate_interval', '1m')
    const values = (await deployed.query(known)).map(({ value: [, text] }) => Number(text))
    expect(values).not.toBeEmpty()
    for (const value of values) expect(value).toBeFinite()
  })
})
