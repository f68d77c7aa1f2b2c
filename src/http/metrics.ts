import { readdirSync, readFileSync } from 'node:fs'
import type { PoolActivity, Stores } from '../store-contract.ts'
import { type OperationId, type OperationRow, operations } from './operations.ts'

type Labels = Readonly<Record<string, string>>
type MetricType = 'counter' | 'gauge' | 'histogram'
type Sample = readonly [labels: Labels, value: number, suffix?: string]

const durationBoundsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

class RequestCounts {
  /** Failures count from 0: Prometheus does not see a counter rise that begins with 1. */
  readonly #statuses = new Map([500, 503].map(status => [status, 0]))
  /** Cumulative, as Prometheus expects it. */
  readonly #buckets = durationBoundsSeconds.map(bound => ({ bound, count: 0 }))
  #count = 0
  #seconds = 0

  add(status: number, seconds: number): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1)
    for (const bucket of this.#buckets) if (seconds <= bucket.bound) bucket.count++
    this.#count++
    this.#seconds += seconds
  }

  responses(operation: string): readonly Sample[] {
    return [...this.#statuses].map(([status, count]) => [{ operation, status: String(status) }, count])
  }

  durations(operation: string): readonly Sample[] {
    return [
      ...this.#buckets.map(({ bound, count }): Sample => [{ operation, le: String(bound) }, count, '_bucket']),
      [{ operation, le: '+Inf' }, this.#count, '_bucket'],
      [{ operation }, this.#seconds, '_sum'],
      [{ operation }, this.#count, '_count'],
    ]
  }
}

export interface SweepActivity {
  readonly keysDeleted: number
  /** When a sweep last left no expired key behind; at first, when the process started. */
  readonly completedAtMs: number
}

/** What a scrape shows besides the counts of requests. */
export interface MetricSources {
  readonly stores: Pick<Stores, 'activity'>
  readonly sweep: SweepActivity
  readonly build: { readonly version: string; readonly commit: string }
}

export class Metrics {
  readonly #sources: MetricSources
  readonly #requests = new Map(['none', ...Object.keys(operations)].map(id => [id, new RequestCounts()]))
  readonly #changes = new Map<OperationId, number>()
  #inFlight = 0

  constructor(sources: MetricSources) {
    this.#sources = sources
  }

  requestStarted(): void {
    this.#inFlight++
  }

  requestEnded(operation: OperationId | 'none', status: number, seconds: number): void {
    this.#inFlight--
    this.#requests.get(operation)?.add(status, seconds)
  }

  /** Counts an animal that the operation has created, changed or removed. */
  countPet(operation: OperationId): void {
    this.#changes.set(operation, (this.#changes.get(operation) ?? 0) + 1)
  }

  /** In Prometheus' text format. */
  text(isStoreUp: boolean): string {
    const { stores, sweep, build } = this.#sources
    const { writesWaiting, isWritable, pools = {} } = stores.activity()
    const responses = [...this.#requests].flatMap(([operation, counts]) => counts.responses(operation))
    const durations = [...this.#requests].flatMap(([operation, counts]) => counts.durations(operation))
    const sweptHelp = 'Time of the last complete sweep; until then, the start.'
    return [
      writeMetric('petstore_http_requests_total', 'counter', 'Responses by operation and status.', responses),
      writeMetric('petstore_http_request_duration_seconds', 'histogram', 'Time from request to response.', durations),
      writeMetric('petstore_http_requests_in_flight', 'gauge', 'Requests without a response yet.', this.#inFlight),
      ...Object.entries<OperationRow>(operations).map(([id, { counter }]) =>
        counter ? writeMetric(counter.name, 'counter', counter.help, this.#changes.get(id as OperationId) ?? 0) : '',
      ),
      writeMetric('petstore_writes_waiting', 'gauge', 'Writes that wait or are being committed.', writesWaiting),
      writeMetric('petstore_store_writable', 'gauge', 'Whether writes succeed: 1 or 0.', isWritable ? 1 : 0),
      writeMetric('petstore_store_up', 'gauge', 'Whether the store answers reads: 1 or 0.', isStoreUp ? 1 : 0),
      ...writePoolMetrics(Object.entries(pools)),
      writeMetric('petstore_idempotency_keys_deleted_total', 'counter', 'Expired idempotency keys.', sweep.keysDeleted),
      writeMetric('petstore_idempotency_keys_swept_timestamp_seconds', 'gauge', sweptHelp, sweep.completedAtMs / 1_000),
      ...writeProcessMetrics(build),
      ...writeFileMetrics(),
    ].join('')
  }
}

function writePoolMetrics(pools: readonly [string, PoolActivity][]): readonly string[] {
  if (pools.length === 0) return []
  const samples = (of: keyof PoolActivity) => pools.map(([pool, activity]): Sample => [{ pool }, activity[of]])
  return [
    writeMetric('petstore_pool_connections_max', 'gauge', 'Connections that may be open.', samples('connectionsMax')),
    writeMetric('petstore_pool_connections_busy', 'gauge', 'Connections in use.', samples('connectionsBusy')),
    writeMetric('petstore_pool_waiting', 'gauge', 'Statements that wait for a connection.', samples('waiting')),
  ]
}

function writeProcessMetrics({ version, commit }: MetricSources['build']): readonly string[] {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  const startedAt = Math.round(Date.now() / 1_000 - process.uptime())
  const info: Sample = [{ version, commit, bun: Bun.version }, 1]
  return [
    writeMetric('petstore_build_info', 'gauge', 'Version and commit of the program, version of Bun.', [info]),
    writeMetric('process_resident_memory_bytes', 'gauge', 'Resident memory.', rss),
    writeMetric('nodejs_heap_size_used_bytes', 'gauge', 'Heap after the last garbage collection.', heapUsed),
    writeMetric('process_cpu_seconds_total', 'counter', 'CPU time used.', (user + system) / 1e6),
    writeMetric('process_start_time_seconds', 'gauge', 'Start of the process.', startedAt),
  ]
}

/** None on systems other than Linux. */
function writeFileMetrics(): readonly string[] {
  try {
    const [, max] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    // Reading the folder opens one more.
    const open = readdirSync('/proc/self/fd').length - 1
    return [
      writeMetric('process_open_fds', 'gauge', 'Open file descriptors.', open),
      max === undefined
        ? ''
        : writeMetric('process_max_fds', 'gauge', 'File descriptors that may be open.', Number(max)),
    ]
  } catch {
    return []
  }
}

/** `samples` is a number if there is only one, without labels. */
function writeMetric(name: string, type: MetricType, help: string, samples: number | readonly Sample[]): string {
  const all: readonly Sample[] = typeof samples === 'number' ? [[{}, samples]] : samples
  const lines = all.map(([labels, value, suffix = '']) => `${name}${suffix}${writeLabels(labels)} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

/** None of our values needs to be escaped. */
function writeLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}
