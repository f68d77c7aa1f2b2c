import { readdirSync, readFileSync, statSync } from 'node:fs'
import type { ELDHistogram } from 'node:perf_hooks'
import { Histogram } from '../histogram.ts'
import type { PoolActivity, StoreActivity } from '../store-contract.ts'
import type { UsageRecorder } from './key-usage.ts'
import type { OperationId } from './operations.ts'

const durationBoundsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** A shorter block of the event loop may go unnoticed. Each sample wakes an idle process. */
const delaySampleMs = 20

/** Limits the size of a scrape. */
const deprecatedKeysMax = 1_000

/** Failures count from 0: Prometheus does not see a counter rise that begins with 1. */
function newCounts() {
  const statuses = new Map([500, 503].map(status => [status, 0]))
  return { statuses, durations: new Histogram(durationBoundsSeconds) }
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number, suffix?: string]

export interface SweepActivity {
  readonly keysDeleted: number
  /** When a sweep last left no expired key behind; at first, when the process started. */
  readonly completedAtMs: number
}

/** What a scrape shows besides the counts of requests. */
export interface MetricSources {
  readonly usage: UsageRecorder
  readonly activity: StoreActivity
  readonly sweep: SweepActivity
  readonly build: { readonly version: string; readonly commit: string }
  readonly isStoreUp: boolean
}

export class Metrics {
  readonly #requests: Readonly<Record<OperationId | 'none', ReturnType<typeof newCounts>>> = {
    none: newCounts(),
    listPets: newCounts(),
    createPet: newCounts(),
    getPet: newCounts(),
  }
  #inFlight = 0
  #delays: ELDHistogram | undefined
  petsCreated = 0
  pageCacheHits = 0
  pageCacheMisses = 0

  requestStarted(): void {
    this.#inFlight++
  }

  requestEnded(operation: OperationId | 'none', status: number, seconds: number): void {
    this.#inFlight--
    const { statuses, durations } = this.#requests[operation]
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    durations.observe(seconds)
  }

  /** In Prometheus' text format. */
  text({ usage, activity, sweep, build, isStoreUp }: MetricSources): string {
    const { writesWaiting, commitSizes, isWritable, pools = {} } = activity
    const writableHelp =
      '0 if the last write failed less than 2 minutes ago, no connection for writing is open or the file was moved; else 1.'
    const deletedHelp = 'Expired idempotency keys that were deleted.'
    const sweptHelp = 'Time of the last complete sweep; until then, the start.'
    return [
      ...this.#requestMetrics(),
      metric('petstore_pets_created_total', 'counter', 'Animals added.', this.petsCreated),
      metric('petstore_page_cache_hits_total', 'counter', 'Pages from the cache.', this.pageCacheHits),
      metric('petstore_page_cache_misses_total', 'counter', 'Pages from the store.', this.pageCacheMisses),
      ...deprecatedMetrics(usage),
      metric('petstore_writes_waiting', 'gauge', 'Writes that wait or are being committed.', writesWaiting),
      metric('petstore_store_writable', 'gauge', writableHelp, isWritable ? 1 : 0),
      metric('petstore_store_up', 'gauge', 'Whether the store answers reads: 1 or 0.', isStoreUp ? 1 : 0),
      metric('petstore_commit_writes', 'histogram', 'Writes in each commit.', histogramSamples(commitSizes)),
      ...poolMetrics(Object.entries(pools)),
      metric('petstore_idempotency_keys_deleted_total', 'counter', deletedHelp, sweep.keysDeleted),
      metric('petstore_idempotency_keys_swept_timestamp_seconds', 'gauge', sweptHelp, sweep.completedAtMs / 1_000),
      ...processMetrics(build),
      ...fileMetrics(),
      ...this.#eventLoopMetrics(),
    ].join('')
  }

  #requestMetrics(): readonly string[] {
    const responses: Sample[] = []
    const durations: Sample[] = []
    for (const [operation, counts] of Object.entries(this.#requests)) {
      for (const [status, count] of counts.statuses) responses.push([{ operation, status: String(status) }, count])
      durations.push(...histogramSamples(counts.durations, { operation }))
    }
    return [
      metric('petstore_http_requests_total', 'counter', 'Responses by operation and status.', responses),
      metric('petstore_http_request_duration_seconds', 'histogram', 'Time from request to response.', durations),
      metric('petstore_http_requests_in_flight', 'gauge', 'Requests without a response yet.', this.#inFlight),
    ]
  }

  /** The first scrape starts the measurement, which does not keep the process alive. */
  #eventLoopMetrics(): readonly string[] {
    const delays = this.#delays
    if (!delays) {
      // Not imported: loading it would take 3 ms of every start.
      const { monitorEventLoopDelay } = process.getBuiltinModule('node:perf_hooks')
      this.#delays = monitorEventLoopDelay({ resolution: delaySampleMs })
      this.#delays.enable()
      return []
    }
    const measured = { p50: delays.percentile(50), p99: delays.percentile(99), max: delays.max }
    delays.reset()
    const help = 'How late the event loop runs timers, since the previous scrape.'
    return Object.entries(measured).map(([name, nanoseconds]) =>
      metric(`nodejs_eventloop_lag_${name}_seconds`, 'gauge', help, nanoseconds / 1e9),
    )
  }
}

/** Two keys may have one name: then their calls are one sample, for one operation. */
function deprecatedMetrics(usage: UsageRecorder): readonly string[] {
  const calls: Sample[] = []
  const last: Sample[] = []
  const byKey = Map.groupBy(usage.deprecatedCallers(), ({ keyName }) => keyName)
  for (const [key, callers] of [...byKey].slice(0, deprecatedKeysMax)) {
    const labels = { operation: callers[0]?.deprecatedOperation ?? '', key }
    calls.push([labels, callers.reduce((sum, { deprecatedUses }) => sum + deprecatedUses, 0)])
    last.push([labels, Math.max(...callers.map(caller => caller.deprecatedLastUsedAtMs)) / 1_000])
  }
  return [
    metric('petstore_deprecated_requests_total', 'counter', 'Calls of deprecated operations, by key.', calls),
    metric('petstore_deprecated_last_request_timestamp_seconds', 'gauge', 'Time of the last such call.', last),
  ]
}

function poolMetrics(pools: readonly [string, PoolActivity][]): readonly string[] {
  if (pools.length === 0) return []
  const samples = (of: keyof PoolActivity) => pools.map(([pool, activity]): Sample => [{ pool }, activity[of]])
  return [
    metric('petstore_pool_connections_max', 'gauge', 'Connections that may be open.', samples('connectionsMax')),
    metric('petstore_pool_connections_busy', 'gauge', 'Connections in use.', samples('connectionsBusy')),
    metric('petstore_pool_waiting', 'gauge', 'Statements that wait for a connection.', samples('waiting')),
  ]
}

function processMetrics({ version, commit }: MetricSources['build']): readonly string[] {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  const heapHelp = 'JavaScript objects and their buffers after the last garbage collection.'
  const startedAt = Math.round(Date.now() / 1_000 - process.uptime())
  const info: Sample = [{ version, commit, bun: Bun.version }, 1]
  return [
    metric('petstore_build_info', 'gauge', 'Version and commit of the program, version of Bun.', [info]),
    metric('process_resident_memory_bytes', 'gauge', 'Resident memory.', rss),
    metric('nodejs_heap_size_used_bytes', 'gauge', heapHelp, heapUsed),
    metric('process_cpu_seconds_total', 'counter', 'CPU time used.', (user + system) / 1e6),
    metric('process_start_time_seconds', 'gauge', 'Start of the process.', startedAt),
  ]
}

/** None on systems other than Linux. */
function fileMetrics(): readonly string[] {
  const folder = '/proc/self/fd'
  try {
    const [, max] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    // Since Linux 6.2, the size is the number of files. Reading a folder of 10,000 takes 10 ms, and opens one more.
    const open = statSync(folder).size || readdirSync(folder).length - 1
    return [
      metric('process_open_fds', 'gauge', 'Open file descriptors.', open),
      max === undefined ? '' : metric('process_max_fds', 'gauge', 'File descriptors that may be open.', Number(max)),
    ]
  } catch {
    return []
  }
}

function histogramSamples({ bounds, counts, sum }: Histogram, labels: Sample[0] = {}): readonly Sample[] {
  let cumulative = 0
  const buckets = counts.map((count, index): Sample => {
    cumulative += count
    return [{ ...labels, le: String(bounds[index] ?? '+Inf') }, cumulative, '_bucket']
  })
  return [...buckets, [labels, sum, '_sum'], [labels, cumulative, '_count']]
}

/** `samples` is a number if there is only one, without labels. */
function metric(
  name: string,
  type: 'counter' | 'gauge' | 'histogram',
  help: string,
  samples: number | readonly Sample[],
): string {
  const all: readonly Sample[] = typeof samples === 'number' ? [[{}, samples]] : samples
  const lines = all.map(([labels, value, suffix = '']) => `${name}${suffix}${labelsText(labels)} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function labelsText(labels: Sample[0]): string {
  const escaped = (text: string) => text.replace(/[\\"\n]/g, char => (char === '\n' ? '\\n' : `\\${char}`))
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}
