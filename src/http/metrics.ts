import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import { Histogram } from '../histogram.ts'
import type { Log } from '../log.ts'
import type { StoreActivity } from '../store.ts'
import type { KeyUsage } from './auth.ts'
import { loggedPath, type RequestContext } from './request.ts'

/** Logs and counts each request. */
export class RequestObserver {
  readonly #log: Log
  readonly #metrics: Metrics
  readonly #environmentKey: string | undefined
  /** While the store is unavailable, one line in this time reports all requests that failed for one cause. */
  readonly #unavailableEveryMs: number
  readonly #unavailable = new Map<string, { loggedMs: number; requests: number }>()

  constructor(parts: {
    readonly log: Log
    readonly metrics: Metrics
    readonly environmentKey?: string | undefined
    readonly unavailableEveryMs: number
  }) {
    this.#log = parts.log
    this.#metrics = parts.metrics
    this.#environmentKey = parts.environmentKey
    this.#unavailableEveryMs = parts.unavailableEveryMs
  }

  began(): void {
    this.#metrics.requestBegan()
  }

  end(context: RequestContext, status: number): void {
    const ms = performance.now() - context.startedMs
    this.#metrics.requestEnded(context.operationId, status, ms / 1_000)
    const level = status === 503 ? 'warn' : status >= 500 ? 'error' : 'info'
    if (!this.#log.isOn(level)) return
    const { request, operationId } = context
    this.#log.request(level, {
      requestId: context.id,
      method: request.method,
      operation: operationId,
      path: operationId ? undefined : loggedPath(context, this.#environmentKey),
      status,
      durationMs: Math.round(ms * 1_000) / 1_000,
      key: context.caller.keyName,
      traceparent: traceparentOf(request.headers.get('traceparent')),
    })
  }

  /** Logs the cause under the request's id: the client receives only the id. */
  failed({ id: requestId }: RequestContext, cause: unknown): void {
    // The store has logged it.
    if (cause instanceof StoreDamaged) return
    if (cause instanceof StoreUnavailable) this.#logUnavailable('store unavailable', requestId, cause)
    else if (cause instanceof IdsExhausted) this.#logUnavailable('ids exhausted', requestId, cause)
    else {
      const detail = cause instanceof Error ? cause.stack || String(cause) : String(cause)
      this.#log.write('error', 'internal error', { requestId, cause: detail })
    }
  }

  #logUnavailable(message: string, requestId: string, { message: cause }: Error): void {
    const failed = this.#unavailable.get(cause) ?? { loggedMs: Number.NEGATIVE_INFINITY, requests: 0 }
    this.#unavailable.set(cause, failed)
    failed.requests++
    const nowMs = performance.now()
    if (nowMs - failed.loggedMs < this.#unavailableEveryMs) return
    this.#log.write('error', message, { requestId, cause, requests: failed.requests })
    failed.loggedMs = nowMs
    failed.requests = 0
  }
}

/** The caller's position in a trace (W3C Trace Context), if it is well-formed. */
function traceparentOf(header: string | null): string | undefined {
  if (header === null) return undefined
  return /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(header) ? header : undefined
}

const durationBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Limits the size of a scrape. */
const deprecatedKeysMax = 1_000

/** The only deprecated operation. */
const deprecatedOperation = 'getPet'

export class Metrics {
  readonly #requests = new Map<string, { statuses: Map<number, number>; durations: Histogram }>()
  #inFlight = 0
  #petsCreated = 0
  #pageCacheHits = 0
  #pageCacheMisses = 0

  requestBegan(): void {
    this.#inFlight++
  }

  requestEnded(operation = 'none', status: number, seconds: number): void {
    this.#inFlight--
    let counts = this.#requests.get(operation)
    if (!counts) {
      counts = { statuses: new Map(), durations: new Histogram(durationBounds) }
      this.#requests.set(operation, counts)
    }
    counts.statuses.set(status, (counts.statuses.get(status) ?? 0) + 1)
    counts.durations.observe(seconds)
  }

  petCreated(): void {
    this.#petsCreated++
  }

  pageServed(fromCache: boolean): void {
    if (fromCache) this.#pageCacheHits++
    else this.#pageCacheMisses++
  }

  /** Everything in Prometheus' text format. */
  render(usage: KeyUsage, activity: StoreActivity | undefined): string {
    const text = new MetricsText()
    this.#renderRequests(text)
    text.single('petstore_pets_created_total', 'counter', 'Animals added.', this.#petsCreated)
    text.single('petstore_page_cache_hits_total', 'counter', 'Pages from the cache.', this.#pageCacheHits)
    text.single('petstore_page_cache_misses_total', 'counter', 'Pages from the store.', this.#pageCacheMisses)
    renderDeprecatedCalls(text, usage)
    if (activity) {
      const help = 'Writes that wait or are being committed.'
      text.single('petstore_writes_waiting', 'gauge', help, activity.writesWaiting)
      text.family('petstore_commit_writes', 'histogram', 'Writes in each commit.')
      text.histogram('petstore_commit_writes', {}, activity.commitSizes)
    }
    renderProcess(text)
    return text.end()
  }

  #renderRequests(text: MetricsText): void {
    text.family('petstore_http_requests_total', 'counter', 'Responses by operation and status.')
    for (const [operation, { statuses }] of this.#requests) {
      for (const [status, count] of statuses) {
        text.sample('petstore_http_requests_total', { operation, status: String(status) }, count)
      }
    }
    text.family('petstore_http_request_duration_seconds', 'histogram', 'Time from request to response.')
    for (const [operation, { durations }] of this.#requests) {
      text.histogram('petstore_http_request_duration_seconds', { operation }, durations)
    }
    text.single('petstore_http_requests_in_flight', 'gauge', 'Requests without a response yet.', this.#inFlight)
  }
}

function renderDeprecatedCalls(text: MetricsText, usage: KeyUsage): void {
  const callers = usage.deprecatedCallers().slice(0, deprecatedKeysMax)
  text.family('petstore_deprecated_requests_total', 'counter', 'Calls of deprecated operations, by key.')
  for (const { keyName: key, deprecatedCalls } of callers) {
    const labels = { operation: deprecatedOperation, key }
    text.sample('petstore_deprecated_requests_total', labels, deprecatedCalls)
  }
  text.family('petstore_deprecated_last_request_timestamp_seconds', 'gauge', 'Time of the last such call.')
  for (const { keyName: key, deprecatedLastUsedAtMs } of callers) {
    const labels = { operation: deprecatedOperation, key }
    const seconds = deprecatedLastUsedAtMs / 1_000
    text.sample('petstore_deprecated_last_request_timestamp_seconds', labels, seconds)
  }
}

function renderProcess(text: MetricsText): void {
  const { user, system } = process.cpuUsage()
  const startedAt = Math.round(Date.now() / 1_000 - process.uptime())
  text.single('process_resident_memory_bytes', 'gauge', 'Resident memory.', process.memoryUsage.rss())
  text.single('process_cpu_seconds_total', 'counter', 'CPU time used.', (user + system) / 1e6)
  text.single('process_start_time_seconds', 'gauge', 'Start of the process.', startedAt)
}

type Labels = Readonly<Record<string, string>>
type MetricType = 'counter' | 'gauge' | 'histogram'

class MetricsText {
  readonly #lines: string[] = []

  family(name: string, type: MetricType, help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
  }

  sample(name: string, labels: Labels, value: number): void {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`)
    this.#lines.push(`${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`)
  }

  single(name: string, type: MetricType, help: string, value: number): void {
    this.family(name, type, help)
    this.sample(name, {}, value)
  }

  histogram(name: string, labels: Labels, { bounds, counts, sum }: Histogram): void {
    let cumulative = 0
    for (const [index, count] of counts.entries()) {
      cumulative += count
      this.sample(`${name}_bucket`, { ...labels, le: String(bounds[index] ?? '+Inf') }, cumulative)
    }
    this.sample(`${name}_sum`, labels, sum)
    this.sample(`${name}_count`, labels, cumulative)
  }

  end(): string {
    return `${this.#lines.join('\n')}\n`
  }
}

function escapeLabel(text: string): string {
  return text.replace(/[\\"\n]/g, char => (char === '\n' ? '\\n' : `\\${char}`))
}
