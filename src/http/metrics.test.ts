import { expect, spyOn, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import type { StoreActivity } from '../store-contract.ts'
import { Metrics } from './metrics.ts'

const newMetrics = (activity: StoreActivity = { writesWaiting: 0, isWritable: true }) =>
  new Metrics({
    stores: { activity: () => activity },
    sweep: { keysDeleted: 7, completedAtMs: 1_700_000_000_500 },
    build: { version: '1.2.3', commit: 'abc1234' },
  })

test('the metrics are text with a HELP and a TYPE for each family, and a line for each sample', () => {
  const pools = {
    reading: { connectionsMax: 10, connectionsBusy: 10, waiting: 3 },
    writing: { connectionsMax: 2, connectionsBusy: 1, waiting: 0 },
  }
  const metrics = newMetrics({ writesWaiting: 3, isWritable: false, pools })
  for (let i = 0; i < 4; i++) metrics.requestStarted()
  metrics.requestEnded('listPets', 200, 0.001)
  metrics.requestEnded('listPets', 200, 20)
  metrics.requestEnded('none', 404, 0.2)
  metrics.countPet('createPet')
  using _cpu = spyOn(process, 'cpuUsage').mockReturnValue({ user: 3_000_000, system: 1_000_000 })
  using _uptime = spyOn(process, 'uptime').mockReturnValue(1_000)
  using _now = spyOn(Date, 'now').mockReturnValue(1_700_000_000_000)
  const text = metrics.text(true)
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
      'petstore_writes_waiting 3',
      'petstore_store_writable 0',
      'petstore_store_up 1',
      'petstore_pool_connections_max{pool="reading"} 10',
      'petstore_pool_connections_busy{pool="writing"} 1',
      'petstore_pool_waiting{pool="reading"} 3',
      'petstore_idempotency_keys_deleted_total 7',
      'petstore_idempotency_keys_swept_timestamp_seconds 1700000000.5',
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
  expect(metrics.text(false)).toContain('petstore_store_up 0')
})

test.skipIf(process.platform !== 'linux')('the metrics count open file descriptors, up to the limit', () => {
  // Reading the folder opens it.
  const open = readdirSync('/proc/self/fd').length - 1
  const lines = newMetrics().text(true).split('\n')
  const limit = Bun.spawnSync(['sh', '-c', 'ulimit -n']).stdout.toString().trim()
  expect(lines).toEqual(expect.arrayContaining([`process_open_fds ${open}`, `process_max_fds ${limit}`]))
})
