import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { programs as findPrograms } from '../support/debian.ts'
import { startCluster } from '../support/postgres.ts'
import { freePort, readOutput, readProjectFile, startServer, until } from '../support/process.ts'
import { ProcessFolder } from './process-folder.ts'

const programs = await findPrograms('the tests of monitoring', { prometheus: 'prometheus', promtool: 'prometheus' })

const key = 'a-key-from-outside-0123456789'
const alertsFile = readProjectFile('deploy/alerts.yaml')

/** Requests of every kind, for which the server gives every status that the dashboard shows. */
async function sendTraffic(server: Awaited<ReturnType<typeof startServer>>): Promise<void> {
  const create = (body = '{"name":"Rex","categoryId":7}') => server.fetch('/pets', key, { method: 'POST', body })
  expect([(await create()).status, (await create('{')).status]).toEqual([201, 400])
  await server.fetch('/pets/1', key, { method: 'PATCH', body: '{}' })
  await server.fetch('/pets/-1', key, { method: 'DELETE' })
  for (const path of ['/pets', '/pets/1', '/none']) await server.fetch(path, key)
  await server.fetch('/pets', 'wrong')
  // Without its file, the store refuses to write.
  const file = join(server.cwd, 'data/petstore.db')
  renameSync(file, `${file}.moved`)
  expect((await create()).status).toBe(503)
  renameSync(`${file}.moved`, file)
}

/** A server on each store, and Prometheus as documented, with our rules, but it scrapes both every second. */
async function deploy() {
  await using stack = new AsyncDisposableStack()
  const cluster = stack.use(await startCluster())
  const start = async (env = {}) => stack.use(await startServer({ env: { PETSTORE_API_KEY: key, ...env } }))
  const [server, onPostgres] = [await start(), await start({ DATABASE_URL: cluster.url() })]
  const folder = stack.use(new ProcessFolder())
  const path = folder.folder('prometheus')
  const [, documented = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(readProjectFile('docs/operating.md')) ?? []
  const targets = [server, onPostgres].map(({ url }) => new URL(url).host).join("', '")
  const configuration = documented.replaceAll('/etc/prometheus/', '').replace('127.0.0.1:8080', targets)
  const files = {
    'prometheus.yaml': configuration.replaceAll('15s', '1s'),
    'petstore.key': key,
    'petstore-alerts.yaml': alertsFile,
  }
  const address = `127.0.0.1:${freePort()}`
  const flags = ['--config.file=prometheus.yaml', '--storage.tsdb.path=data', `--web.listen-address=${address}`]
  folder.start('prometheus', files, programs?.prometheus ?? '', ...flags)
  const ask = async (what: string) => {
    const { data, error } = JSON.parse(await (await fetch(`http://${address}/api/v1/${what}`)).text())
    if (error !== undefined) throw new Error(`${what}: ${error}`)
    return data
  }
  const query = async (expression: string): Promise<readonly { value: readonly [number, string] }[]> =>
    (await ask(`query?query=${encodeURIComponent(expression)}`)).result
  await folder.until('prometheus', async () => (await query('up == 1')).length === 2 || undefined)
  const rules: readonly { readonly name: string }[] = (await ask('rules')).groups[0].rules
  return Object.assign(stack.move(), { server, onPostgres, path, query, rules })
}

type Panel = Readonly<{ title: string; targets: readonly { readonly expr: string }[] }>
const { panels }: { panels: readonly Panel[] } = JSON.parse(readProjectFile('deploy/grafana.json'))
const metrics = new Set(alertsFile.match(/\b(petstore|process)_\w+/g))
const queries = [
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [`the panel ${title}`, expr] as const)),
  ...Array.from(metrics, metric => ['an alert', `${metric}{instance=~"$instance"}`] as const),
]

const duration = 'petstore_http_request_duration_seconds'
const bucket = `${duration}_bucket{operation="createPet",le="`
/** Metrics with their values while all is well, 15 s apart in promtool's notation; an alert, and values that make it fire. */
const series: readonly (readonly [metric: string, healthy: string, alert?: string, bad?: string])[] = [
  ['up{', '1x240', 'PetstoreDown', '0x240'],
  ['petstore_store_up{', '1x240', 'PetstoreStoreUnavailable', '0x240'],
  ['petstore_store_writable{', '1x240', 'PetstoreNotWritable', '0x240'],
  ['petstore_http_requests_total{operation="createPet",status="201",', '0+990x240'],
  ['petstore_http_requests_total{operation="createPet",status="503",', '0+10x240', 'PetstoreErrors', '0+100x240'],
  [`${bucket}0.5",`, '0+995x240', 'PetstoreSlow', '0+900x240'],
  [`${bucket}1",`, '0+1000x240'],
  [`${bucket}+Inf",`, '0+1000x240'],
  ['petstore_writes_waiting{', '500x240', 'PetstoreWritesQueue', '600x240'],
  ['process_open_fds{', '700x240', 'PetstoreFileDescriptors', '900x240'],
  ['process_max_fds{', '1000x240'],
  // Swept just now; promtool's time begins at 0.
  ['petstore_idempotency_keys_swept_timestamp_seconds{', '0+15x240', 'PetstoreKeysNotDeleted', '-3600x240'],
  [`${duration}_count{operation="getPet",`, '5x240', 'PetstoreDeprecatedOperationUsed', '0+1x240'],
]
const alerts = series.flatMap(([, , alert]) => alert ?? [])

/** A unit test for promtool: if the cause of this alert is there, it alone fires after half an hour. */
function ruleTest(name: string) {
  const input_series = series.map(([metric, healthy, alert, bad]) => ({
    series: `${metric}job="petstore",instance="pets:8080"}`,
    values: alert === name ? bad : healthy,
  }))
  const exp_samples = alerts.includes(name) ? [{ labels: `{alertname="${name}"}`, value: 1 }] : []
  const expr = 'count by (alertname) (ALERTS{alertstate="firing"})'
  return { name, interval: '15s', input_series, promql_expr_test: [{ expr, eval_time: '30m', exp_samples }] }
}

describe.skipIf(!programs)('Prometheus, configured as documented', () => {
  let deployed: Awaited<ReturnType<typeof deploy>>
  beforeAll(async () => {
    if (!programs) return
    deployed = await deploy()
    // A rate needs two values.
    await until('several scrapes with traffic between them', async () => {
      await sendTraffic(deployed.server)
      return (await deployed.query('count_over_time(petstore_http_requests_total{status="503"}[1m]) > 2'))[0]
    })
  })
  afterAll(() => deployed?.[Symbol.asyncDispose]())

  test('each alert fires for its own cause, and none for healthy values', async () => {
    expect(deployed.rules.map(({ name }) => name)).toEqual(alerts)
    const tests = [...alerts, 'healthy'].map(ruleTest)
    const file = { rule_files: ['petstore-alerts.yaml'], evaluation_interval: '1m', tests }
    writeFileSync(join(deployed.path, 'rules-test.yaml'), JSON.stringify(file))
    await readOutput([programs?.promtool ?? '', 'test', 'rules', 'rules-test.yaml'], { cwd: deployed.path })
  })

  test.each(queries)('%s has data for %s', async (_, expression) => {
    expect(expression).toContain('instance=~"$instance"')
    // Only PostgreSQL has pools.
    const { url } = expression.includes('_pool_') ? deployed.onPostgres : deployed.server
    const known = expression.replaceAll('$instance', new URL(url).host).replaceAll('$__rate_interval', '1m')
    const values = (await deployed.query(known)).map(({ value: [, text] }) => Number(text))
    expect(values).not.toBeEmpty()
    for (const value of values) expect(value).toBeFinite()
  })
})
