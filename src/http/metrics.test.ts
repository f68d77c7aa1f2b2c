import { expect, spyOn, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import type { StoreActivity } from '../store-contract.ts'
import { Metrics } from './metrics.ts'

test('the metrics are text with a HELP and a TYPE for each family, and a line for each sample', () => {
  const pools = {
    reading: { connectionsMax: 10, connectionsBusy: 10, waiting: 3 },
    writing: { connectionsMax: 2, connectionsBusy: 1, waiting: 0 },
  }
  const activity: StoreActivity = { writesWaiting: 3, isWritable: false, pools }
  const metrics = new Metrics({
    stores: { activity: () => activity },
    sweep: { keysDeleted: 7, completedAtMs: 1_700_000_000_500 },
    build: { version: '1.2.3', commit: 'abc1234' },
  })
  for (let i = 0; i < 4; i++) metrics.requestStarted()
  metrics.requestEnded('listPets', 200, 0.001)
  metrics.requestEnded('listPets', 200, 20)
  metrics.requestEnded('none', 404, 0.2)
  metrics.countPet('createPet')
  using _cpu = spyOn(process, 'cpuUsage').mockReturnValue({ user: 3_000_000, system: 1_000_000 })
  const text = metrics.text(true)
  expect(text.split('\n')).toEqual(
    expect.arrayContaining([
      'petstore_http_requests_total{operation="listPets",status="200"} 2',
      'petstore_http_requests_total{operation="createPet",status="503"} 0',
      'petstore_http_request_duration_seconds_bucket{operation="listPets",le="0.0005"} 0',
      'petstore_http_request_duration_seconds_bucket{operation="listPets",le="0.001"} 1',
      'petstore_http_request_duration_seconds_bucket{operation="listPets",le="10"} 1',
      'petstore_http_request_duration_seconds_bucket{operation="listPets",le="+Inf"} 2',
      'petstore_http_request_duration_seconds_sum{operation="listPets"} 20.001',
      'petstore_http_request_duration_seconds_count{operation="listPets"} 2',
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
    ]),
  )
  for (const [, name = '', suffix] of text.matchAll(/^([a-z_]+?)(_bucket|_sum|_count)?[{ ]/gm)) {
    const type = suffix ? 'histogram' : name.endsWith('_total') ? 'counter' : 'gauge'
    expect(text).toMatch(new RegExp(`^# HELP ${name} .+\n# TYPE ${name} ${type}$`, 'm'))
  }
  expect(text).toMatch(/^process_start_time_seconds \d{10}$/m)
  expect(text).toMatch(/^process_resident_memory_bytes \d{8,}$/m)
  expect(text).toMatch(/^nodejs_heap_size_used_bytes \d{6,}$/m)
  expect(text).toEndWith('\n')
  if (process.platform !== 'linux') return
  // Reading the folder opens it.
  expect(text).toContain(`\nprocess_open_fds ${readdirSync('/proc/self/fd').length - 1}\n`)
  const limit = Bun.spawnSync(['sh', '-c', 'ulimit -n']).stdout.toString().trim()
  expect(text).toContain(`\nprocess_max_fds ${limit}\n`)
})
