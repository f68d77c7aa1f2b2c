import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import { TrustedProxies } from './client-address.ts'
import type { Exchange } from './exchange.ts'

/** Requests that failed for one cause, and are not in the log yet. */
interface Outage {
  readonly message: string
  requests: number
  /** Of the last one. */
  requestId: string
}

export interface LogParts {
  readonly log: Log
  /** The cause of an outage for the log, with what to do. */
  readonly advice: (error: StoreUnavailable) => string
  /** Addresses and CIDR ranges of proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[] | undefined
}

const pathCharsMax = 200
/** The caller's position in a trace (W3C Trace Context). */
const wellFormedTraceparent = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** Writes a line for each request, and the causes of failures. */
export class RequestLog {
  readonly #parts: LogParts
  readonly #trustedProxies: TrustedProxies
  /** By cause. */
  readonly #outages = new Map<string, Outage>()

  constructor(parts: LogParts) {
    this.#parts = parts
    this.#trustedProxies = new TrustedProxies(parts.trustedProxies ?? [])
  }

  requestEnded(exchange: Exchange, status: number, ms: number): void {
    const { id, request, path, peer, operationId, caller } = exchange
    const { log } = this.#parts
    // The cause of a 503 has a line of its own.
    const level = status >= 500 && status !== 503 ? 'error' : 'info'
    if (!log.isOn(level)) return
    const [traceparent] = wellFormedTraceparent.exec(request.headers.get('traceparent') ?? '') ?? []
    log.write(level, 'request', {
      requestId: id,
      method: request.method,
      operation: operationId,
      path: operationId ? undefined : exchange.mask(path).slice(0, pathCharsMax),
      status,
      durationMs: Math.round(ms * 1_000) / 1_000,
      client: peer && this.#trustedProxies.findClient(peer, request.headers),
      key: caller.keyName || undefined,
      traceparent: traceparent && exchange.mask(traceparent),
    })
  }

  /** Logs the cause under the request's id: the client receives only the id. */
  requestFailed(exchange: Exchange, cause: unknown): void {
    const { log, advice } = this.#parts
    // The store has logged it.
    if (cause instanceof StoreDamaged) return
    if (cause instanceof StoreUnavailable) this.#countFailure('store unavailable', advice(cause), exchange.id)
    else if (cause instanceof IdsExhausted) this.#countFailure('ids exhausted', cause.message, exchange.id)
    else {
      const detail = cause instanceof Error ? cause.stack || String(cause) : String(cause)
      log.write('error', 'internal error', { requestId: exchange.id, cause: exchange.mask(detail) })
    }
  }

  /** Logs the first failure of an outage at once. `flush` logs how many followed. */
  #countFailure(message: string, cause: string, requestId: string): void {
    const known = this.#outages.get(cause)
    const outage = known ?? { message, requests: 0, requestId }
    outage.requests++
    outage.requestId = requestId
    if (known) return
    this.#outages.set(cause, outage)
    this.#report(cause, outage)
  }

  /** Logs the failures since the last flush. An outage without any is over. */
  flush(): void {
    for (const [cause, outage] of this.#outages) {
      if (outage.requests > 0) this.#report(cause, outage)
      else this.#outages.delete(cause)
    }
  }

  #report(cause: string, outage: Outage): void {
    const { message, requestId, requests } = outage
    this.#parts.log.write('error', message, { requestId, cause, requests })
    outage.requests = 0
  }
}
