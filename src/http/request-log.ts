import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import { TrustedProxies } from './client-address.ts'
import type { Caller, IncomingRequest } from './request.ts'

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

/** How a request ended. */
interface EndedRequest {
  readonly status: number
  readonly ms: number
  readonly operationId: string | undefined
  readonly caller: Caller | undefined
}

/** Writes a line for each request, and the causes of failures. */
export class RequestLog {
  readonly #log: Log
  readonly #advice: Advice
  readonly #environmentKey: string | undefined
  readonly #trustedProxies: TrustedProxies
  /** By cause. */
  readonly #outages = new Map<string, Outage>()

  constructor(parts: {
    readonly log: Log
    readonly advice: Advice
    readonly environmentKey: string | undefined
    readonly trustedProxies: readonly string[] | undefined
  }) {
    this.#log = parts.log
    this.#advice = parts.advice
    this.#environmentKey = parts.environmentKey
    this.#trustedProxies = new TrustedProxies(parts.trustedProxies ?? [])
  }

  requestEnded(incoming: IncomingRequest, { status, ms, operationId, caller }: EndedRequest): void {
    // The cause of a 503 has a line of its own, once a second.
    const level = status >= 500 && status !== 503 ? 'error' : 'info'
    if (!this.#log.isOn(level)) return
    const { id, request, path, peerAddress } = incoming
    this.#log.request(level, {
      requestId: id,
      method: request.method,
      operation: operationId,
      path: operationId ? undefined : loggedPath(path, this.#environmentKey),
      status,
      durationMs: Math.round(ms * 1_000) / 1_000,
      client: peerAddress && this.#trustedProxies.clientOf(peerAddress, request.headers),
      key: caller?.keyName,
      traceparent: traceparentOf(request.headers.get('traceparent')),
    })
  }

  /** Logs the cause under the request's id: the client receives only the id. */
  requestFailed({ id: requestId }: IncomingRequest, cause: unknown): void {
    // The store has logged it.
    if (cause instanceof StoreDamaged) return
    if (cause instanceof StoreUnavailable) this.#logUnavailable('store unavailable', requestId, this.#advice(cause))
    else if (cause instanceof IdsExhausted) this.#logUnavailable('ids exhausted', requestId, cause.message)
    else {
      const detail = cause instanceof Error ? cause.stack || String(cause) : String(cause)
      this.#log.write('error', 'internal error', { requestId, cause: detail })
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

/** The caller's position in a trace (W3C Trace Context), if it is well-formed. */
function traceparentOf(header: string | null): string | undefined {
  if (header === null) return undefined
  return /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(header) ? header : undefined
}

const loggedSegmentsMax = 10
const loggedPathCharsMax = 200
/** Keys are longer. */
const loggedSegment = /^[A-Za-z0-9._~-]{0,15}$/

/** The path for the log: `…` replaces the environment key, and segments that may be keys, put there by mistake. */
export function loggedPath(path: string, environmentKey = ''): string {
  // Enough for a key that begins at the last character, with every character encoded as three.
  const decoded = decodeVisible(path.slice(0, 3 * (loggedPathCharsMax + environmentKey.length)))
  const masked = environmentKey === '' ? decoded : maskKey(decoded, environmentKey)
  const [, ...segments] = masked.slice(0, loggedPathCharsMax).split('/', loggedSegmentsMax + 2)
  const isCut = (index: number) =>
    index === loggedSegmentsMax || (masked.length > loggedPathCharsMax && index === segments.length - 1)
  const shown = segments.map((segment, index) => (loggedSegment.test(segment) && !isCut(index) ? segment : '…'))
  return `/${shown.join('/')}`
}

/** Decodes visible ASCII only: no other character occurs in keys. Bun reads a backslash in a path as a slash. */
function decodeVisible(text: string): string {
  let decoded = ''
  let rest = 0
  for (let at = text.indexOf('%'); at !== -1; at = text.indexOf('%', at + 1)) {
    const code = Number.parseInt(text.slice(at + 1, at + 3), 16)
    if (code < 0x21 || code > 0x7e || Number.isNaN(code)) continue
    decoded += text.slice(rest, at) + String.fromCharCode(code)
    rest = at + 3
  }
  return (decoded + text.slice(rest)).replaceAll('\\', '/')
}

/** Masks the key, as it is and decoded. The text keeps its length, so that a key at a limit is masked whole. */
function maskKey(decoded: string, key: string): string {
  const forms = [key.replaceAll('\\', '/'), decodeVisible(key)]
  return forms.reduce((text, form) => text.replaceAll(form, '…'.repeat(form.length)), decoded)
}
