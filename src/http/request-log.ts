import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import { TrustedProxies } from './client-address.ts'
import type { Exchange } from './exchange.ts'

/** During an outage, one line in this time reports all requests that failed for one cause. */
const unavailableEveryMs = 1_000

interface Outage {
  readonly message: string
  readonly cause: string
  /** Requests that are not in the log yet, and the id of the last one. */
  requests: number
  requestId: string
}

/** The cause of an outage for the log, with what to do. */
export type Advice = (error: StoreUnavailable) => string

const pathCharsMax = 200
/** The caller's position in a trace (W3C Trace Context). */
const wellFormedTraceparent = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** Writes a line for each request, and the causes of failures. */
export class RequestLog {
  readonly #log: Log
  readonly #advice: Advice
  readonly #trustedProxies: TrustedProxies
  /** By cause. */
  readonly #outages = new Map<string, Outage>()

  constructor(log: Log, advice: Advice, trustedProxies: readonly string[] = []) {
    this.#log = log
    this.#advice = advice
    this.#trustedProxies = new TrustedProxies(trustedProxies)
  }

  requestEnded({ id, request, path, peer, operationId, caller, mask }: Exchange, status: number, ms: number): void {
    // The cause of a 503 has a line of its own, once a second.
    const level = status >= 500 && status !== 503 ? 'error' : 'info'
    if (!this.#log.isOn(level)) return
    const [traceparent] = wellFormedTraceparent.exec(request.headers.get('traceparent') ?? '') ?? []
    this.#log.request(level, {
      requestId: id,
      method: request.method,
      operation: operationId,
      path: operationId ? undefined : mask(path).slice(0, pathCharsMax),
      status,
      durationMs: Math.round(ms * 1_000) / 1_000,
      client: peer && this.#trustedProxies.clientOf(peer, request.headers),
      key: caller.keyName || undefined,
      traceparent: traceparent && mask(traceparent),
    })
  }

  /** Logs the cause under the request's id: the client receives only the id. */
  requestFailed({ id: requestId, mask }: Exchange, cause: unknown): void {
    // The store has logged it.
    if (cause instanceof StoreDamaged) return
    if (cause instanceof StoreUnavailable) this.#logUnavailable('store unavailable', requestId, this.#advice(cause))
    else if (cause instanceof IdsExhausted) this.#logUnavailable('ids exhausted', requestId, cause.message)
    else {
      const detail = cause instanceof Error ? cause.stack || String(cause) : String(cause)
      this.#log.write('error', 'internal error', { requestId, cause: mask(detail) })
    }
  }

  /** Logs the first failure at once and then counts. An outage is over after a second without a failure. */
  #logUnavailable(message: string, requestId: string, cause: string): void {
    const known = this.#outages.get(cause)
    if (known) {
      known.requests++
      known.requestId = requestId
      return
    }
    const outage = { message, cause, requests: 1, requestId }
    this.#outages.set(cause, outage)
    this.#report(outage)
    const reporting = setInterval(() => {
      if (outage.requests > 0) return this.#report(outage)
      clearInterval(reporting)
      this.#outages.delete(cause)
    }, unavailableEveryMs)
    reporting.unref()
  }

  /** Logs all failed requests that are not in the log yet. */
  reportUnavailable(): void {
    for (const outage of this.#outages.values()) if (outage.requests > 0) this.#report(outage)
  }

  #report(outage: Outage): void {
    const { message, requestId, cause, requests } = outage
    this.#log.write('error', message, { requestId, cause, requests })
    outage.requests = 0
  }
}
