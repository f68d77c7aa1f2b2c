import { afterEach, beforeEach, expect, type Mock, mock, spyOn, test } from 'bun:test'
import { closeSync, openSync, readdirSync } from 'node:fs'
import perfHooks from 'node:perf_hooks'
import { until } from '../../test/support/process.ts'
import { Histogram } from '../histogram.ts'
import type { KeyStore } from '../store-contract.ts'
import { UsageRecorder } from './key-usage.ts'
import { type MetricSources, Metrics } from './metrics.ts'

const textOf = (metrics: Metrics, sources: Partial<MetricSources> = {}) =>
  metrics.text({
    usage: new UsageRecorder({} as KeyStore),
    activity: { writesWaiting: 0, commitSizes: new Histogram([]), isWritable: true },
    sweep: { keysDeleted: 0, completedAtMs: 0 },
    build: { version: '', commit: '' },
    isStoreUp: true,
    ...sources,
  })
let clock: Mock<typeof performance.now>
beforeEach(() => {
  clock = spyOn(performance, 'now').mockReturnValue(10_000)
})
afterEach(() => {
  clock.mockRestore()
})

test('the metrics are text with a HELP and a TYPE for each family, and a line for each sample', () => {
  const metrics = new Metrics()
  for (let i = 0; i < 4; i++) metrics.requestStarted()
  metrics.requestEnded('listPets', 200, 0.001)
  metrics.requestEnded('listPets', 200, 20)
  metrics.requestEnded('none', 404, 0.2)
  Object.assign(metrics, { petsCreated: 1, pageCacheHits: 2, pageCacheMisses: 3 })
  const commitSizes = new Histogram([1, 2])
  commitSizes.observe(2)
  using _cpu = spyOn(process, 'cpuUsage').mockReturnValue({ user: 3_000_000, system: 1_000_000 })
  using _uptime = spyOn(process, 'uptime').mockReturnValue(1_000)
  using _now = spyOn(Date, 'now').mockReturnValue(1_700_000_000_000)
  const build = { version: '1.2.3', commit: 'abc1234' }
  const sweep = { keysDeleted: 7, completedAtMs: 1_700_000_000_500 }
  const pools = {
    reading: { connectionsMax: 10, connectionsBusy: 10, waiting: 3 },
    writing: { connectionsMax: 2, connectionsBusy: 1, waiting: 0 },
  }
  const activity = { writesWaiting: 3, commitSizes, isWritable: false, pools }
  const text = textOf(metrics, { activity, sweep, build })
  expect(text.split('\n')).toEqual(
    expect.arrayContaining([
      '# TYPE petstore_http_requests_total counter',
      'petstore_http_requests_total{operation="listPets",status="200"} 2',
      'petstore_http_requests_total{operation="none",status="404"} 1',
      'petstore_http_requests_total{operation="createPet",status="500"} 0',
      'petstore_http_requests_total{operation="createPet",status="503"} 0',
      '# TYPE petstore_http_request_duration_seconds histogram',
      'petstore_http_request_duration_seconds_bucket{operation="listPets",le="0.0005"} 0',
      'petstore_http_request_duration_seconds_bucket{operation="listPets",le="0.001"} 1',
      'petstore_http_request_duration_seconds_bucket{operation="listPets",le="10"} 1',
      'petstore_http_request_duration_seconds_bucket{operation="listPets",le="+Inf"} 2',
      'petstore_http_request_duration_seconds_sum{operation="listPets"} 20.001',
      'petstore_http_request_duration_seconds_count{operation="listPets"} 2',
      '# TYPE petstore_http_requests_in_flight gauge',
      'petstore_http_requests_in_flight 1',
      'petstore_pets_created_total 1',
      'petstore_page_cache_hits_total 2',
      'petstore_page_cache_misses_total 3',
      'petstore_writes_waiting 3',
      'petstore_store_writable 0',
      'petstore_store_up 1',
      'petstore_commit_writes_bucket{le="2"} 1',
      'petstore_pool_connections_max{pool="reading"} 10',
      'petstore_pool_connections_busy{pool="writing"} 1',
      'petstore_pool_waiting{pool="reading"} 3',
      'petstore_idempotency_keys_deleted_total 7',
      'petstore_idempotency_keys_swept_timestamp_seconds 1700000000.5',
      '# TYPE petstore_deprecated_requests_total counter',
      '# TYPE petstore_deprecated_last_request_timestamp_seconds gauge',
      `petstore_build_info{version="1.2.3",commit="abc1234",bun="${Bun.version}"} 1`,
      'process_cpu_seconds_total 4',
      'process_start_time_seconds 1699999000',
    ]),
  )
  for (const [, name] of text.matchAll(/^([a-z_]+?)(?:_bucket|_sum|_count)?[{ ]/gm)) {
    expect(text).toMatch(new RegExp(`^# HELP ${name} .+\n# TYPE ${name} (counter|gauge|histogram)$`, 'm'))
  }
  expect(text).toMatch(/^process_resident_memory_bytes \d{8,}$/m)
  expect(text).toMatch(/^nodejs_heap_size_used_bytes \d{6,}$/m)
  expect(text).toEndWith('\n')
  expect(textOf(metrics, { isStoreUp: false })).toContain('petstore_store_up 0')
})

/** Of a metric without labels; undefined if it is absent. */
function sampleOf(name: string, metrics = new Metrics()): number | undefined {
  const [, value] = new RegExp(`^${name} (.+)$`, 'm').exec(textOf(metrics)) ?? []
  return value === undefined ? undefined : Number(value)
}

const lagOf = (name: string, metrics: Metrics) => sampleOf(`nodejs_eventloop_lag_${name}_seconds`, metrics)

test('a blocked event loop is seen in the next scrape, and not after it', async () => {
  clock.mockRestore()
  const metrics = new Metrics()
  // The first scrape starts the measurement.
  expect(lagOf('max', metrics)).toBeUndefined()
  await until('a sample', () => lagOf('max', metrics) || undefined)
  Bun.sleepSync(200)
  // The late timer was due before this one.
  await Bun.sleep(0)
  expect(lagOf('max', metrics)).toBeGreaterThan(0.17)
  expect(lagOf('max', metrics)).toBe(0)
})

test('the lag of the event loop has its median, its 99th percentile and its maximum', () => {
  const delays = { enable: () => true, reset: mock(), percentile: (percent: number) => percent * 1e9, max: 200e9 }
  using _monitor = spyOn(perfHooks, 'monitorEventLoopDelay').mockReturnValue(delays as never)
  const metrics = new Metrics()
  textOf(metrics)
  expect(['p50', 'p99', 'max'].map(name => lagOf(name, metrics))).toEqual([50, 99, 200])
  expect(delays.reset).toHaveBeenCalledTimes(3)
})

test.skipIf(process.platform !== 'linux')('the metrics count open file descriptors, up to the limit', () => {
  // Reading the folder opens it.
  const before = readdirSync('/proc/self/fd').length - 1
  expect(sampleOf('process_open_fds')).toBe(before)
  const opened = Array.from({ length: 50 }, () => openSync('/dev/null', 'r'))
  expect(sampleOf('process_open_fds')).toBe(before + 50)
  for (const file of opened) closeSync(file)
  expect(sampleOf('process_open_fds')).toBe(before)
  const limit = Bun.spawnSync(['sh', '-c', 'ulimit -n']).stdout.toString().trim()
  expect(sampleOf('process_max_fds')).toBe(Number(limit))
})

test('the metrics show at most 1,000 keys that call deprecated operations, with escaped names', () => {
  const usage = new UsageRecorder({} as KeyStore)
  using _now = spyOn(Date, 'now').mockReturnValue(1_700_000_000_000)
  for (let i = 0; i < 1_001; i++) {
    const caller = { keyName: `a"b\\c\nd ${i}`, permission: 'read-only', keyHash: String(i) } as const
    usage.recordUse(caller, undefined)
    usage.recordDeprecatedCall(caller, 'getPet')
  }
  const lines = textOf(new Metrics(), { usage }).split('\n')
  const labels = '{operation="getPet",key="a\\"b\\\\c\\nd 0"}'
  expect(lines).toContain(`petstore_deprecated_requests_total${labels} 1`)
  expect(lines.filter(line => line.startsWith('petstore_deprecated_requests_total'))).toHaveLength(1_000)
  expect(lines).toContain(`petstore_deprecated_last_request_timestamp_seconds${labels} 1700000000`)
})

test('deprecated calls of keys with one name are added up, the last time is the latest, and other keys are absent', () => {
  const usage = new UsageRecorder({} as KeyStore)
  const callerOf = (keyName: string, keyHash: string) => ({ keyName, permission: 'read-only', keyHash }) as const
  const lastTimes = [
    ['till', 2_000],
    ['till', 1_000],
    ['shop', 3_000],
  ] as const
  for (const [index, [keyName, timeMs]] of lastTimes.entries()) {
    using _now = spyOn(Date, 'now').mockReturnValue(timeMs)
    usage.recordUse(callerOf(keyName, String(index)), undefined)
    usage.recordDeprecatedCall(callerOf(keyName, String(index)), 'getPet')
  }
  usage.recordUse(callerOf('modern', 'm'), undefined)
  usage.recordDeprecatedCall(callerOf('never recorded', 'n'), 'getPet')
  expect(textOf(new Metrics(), { usage }).match(/^petstore_deprecated_.*$/gm)).toEqual([
    'petstore_deprecated_requests_total{operation="getPet",key="till"} 2',
    'petstore_deprecated_requests_total{operation="getPet",key="shop"} 1',
    'petstore_deprecated_last_request_timestamp_seconds{operation="getPet",key="till"} 2',
    'petstore_deprecated_last_request_timestamp_seconds{operation="getPet",key="shop"} 3',
  ])
})
