import { Histogram } from '../histogram.ts'
import type { StoreActivity } from '../store.ts'
import type { OperationId } from './operation.ts'

export interface Metrics {
  requestBegan(): void
  requestEnded(operation: OperationId | undefined, status: number, seconds: number): void
  petCreated(): void
  pageServed(fromCache: boolean): void
  /** Who still has to move before a deprecated operation is removed. */
  deprecatedCall(operation: OperationId, keyName: string): void
  /** Everything in Prometheus' text format. */
  render(activity: StoreActivity | undefined): string
}

const durationBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Key names are people's; so many of them are told apart, and no more, so that a scrape stays small. */
const deprecatedKeysMax = 1_000

interface Calls {
  count: number
  lastMs: number
}

export function createMetrics(): Metrics {
  const requests = new Map<string, { status: Map<number, number>; durations: Histogram }>()
  const deprecated = new Map<OperationId, Map<string, Calls>>()
  const pages = { hits: 0, misses: 0 }
  let inFlight = 0
  let created = 0

  function requestsOf(operation: string) {
    let known = requests.get(operation)
    if (!known) {
      known = { status: new Map(), durations: new Histogram(durationBounds) }
      requests.set(operation, known)
    }
    return known
  }

  function deprecatedCallsOf(operation: OperationId, keyName: string): Calls | undefined {
    let byKey = deprecated.get(operation)
    if (!byKey) {
      byKey = new Map()
      deprecated.set(operation, byKey)
    }
    let calls = byKey.get(keyName)
    if (!calls && byKey.size < deprecatedKeysMax) {
      calls = { count: 0, lastMs: 0 }
      byKey.set(keyName, calls)
    }
    return calls
  }

  return {
    requestBegan() {
      inFlight++
    },
    requestEnded(operation, status, seconds) {
      inFlight--
      const known = requestsOf(operation ?? 'none')
      known.status.set(status, (known.status.get(status) ?? 0) + 1)
      known.durations.observe(seconds)
    },
    petCreated() {
      created++
    },
    pageServed(fromCache) {
      if (fromCache) pages.hits++
      else pages.misses++
    },
    deprecatedCall(operation, keyName) {
      const calls = deprecatedCallsOf(operation, keyName)
      if (!calls) return
      calls.count++
      calls.lastMs = Date.now()
    },
    render(activity) {
      const text = createText()
      text.family('petstore_http_requests_total', 'counter', 'Requests answered, by operation and status.')
      for (const [operation, { status }] of requests) {
        for (const [code, count] of status) {
          text.sample('petstore_http_requests_total', { operation, status: String(code) }, count)
        }
      }
      text.family('petstore_http_request_duration_seconds', 'histogram', 'Time from request to answer.')
      for (const [operation, { durations }] of requests) {
        text.histogram('petstore_http_request_duration_seconds', { operation }, durations)
      }
      text.single('petstore_http_requests_in_flight', 'gauge', 'Requests being worked on.', inFlight)
      text.single('petstore_pets_created_total', 'counter', 'Animals added.', created)
      text.single('petstore_page_cache_hits_total', 'counter', 'Pages that were still true.', pages.hits)
      text.single('petstore_page_cache_misses_total', 'counter', 'Pages that were read anew.', pages.misses)
      text.family('petstore_deprecated_requests_total', 'counter', 'Calls of deprecated operations, by key.')
      for (const [operation, byKey] of deprecated) {
        for (const [key, { count }] of byKey)
          text.sample('petstore_deprecated_requests_total', { operation, key }, count)
      }
      text.family(
        'petstore_deprecated_last_request_timestamp_seconds',
        'gauge',
        'When such a call came last.',
      )
      for (const [operation, byKey] of deprecated) {
        for (const [key, { lastMs }] of byKey)
          text.sample(
            'petstore_deprecated_last_request_timestamp_seconds',
            { operation, key },
            lastMs / 1_000,
          )
      }
      if (activity) {
        text.single(
          'petstore_writes_waiting',
          'gauge',
          'Writes that wait or are committed now.',
          activity.writesWaiting,
        )
        text.family('petstore_commit_writes', 'histogram', 'Writes that were committed together.')
        text.histogram('petstore_commit_writes', {}, activity.commitSizes)
      }
      processMetrics(text)
      return text.end()
    },
  }
}

type Labels = Readonly<Record<string, string>>

/** Writes the text format: a family's head, then its samples. */
function createText() {
  const lines: string[] = []
  const sample = (name: string, labels: Labels, value: number) => {
    const inside = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
    lines.push(`${name}${inside.length > 0 ? `{${inside.join(',')}}` : ''} ${value}`)
  }
  const family = (name: string, type: 'counter' | 'gauge' | 'histogram', help: string) =>
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
  return {
    sample,
    family,
    single(name: string, type: 'counter' | 'gauge', help: string, value: number) {
      family(name, type, help)
      sample(name, {}, value)
    },
    histogram(name: string, labels: Labels, { bounds, counts, sum }: Histogram) {
      let below = 0
      for (const [index, count] of counts.entries()) {
        below += count
        sample(`${name}_bucket`, { ...labels, le: String(bounds[index] ?? '+Inf') }, below)
      }
      sample(`${name}_sum`, labels, sum)
      sample(`${name}_count`, labels, below)
    },
    end: () => `${lines.join('\n')}\n`,
  }
}

function escaped(text: string): string {
  return text.replace(/[\\"\n]/g, char => (char === '\n' ? '\\n' : `\\${char}`))
}

function processMetrics(text: ReturnType<typeof createText>): void {
  const { user, system } = process.cpuUsage()
  text.single('process_resident_memory_bytes', 'gauge', 'Memory that is in use.', process.memoryUsage.rss())
  text.single('process_cpu_seconds_total', 'counter', 'Time that was computed.', (user + system) / 1e6)
  const startedAt = (Date.now() - process.uptime() * 1_000) / 1_000
  text.single('process_start_time_seconds', 'gauge', 'When the process was started.', Math.round(startedAt))
}
