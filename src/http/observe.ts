import { IdsExhausted, StoreDamaged, StoreUnavailable } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Metrics } from './metrics.ts'
import type { OperationId } from './operation.ts'
import { requestIdOf } from './request-id.ts'
import { targetOf } from './target.ts'

/** One request on its way: what the log and the metrics will tell of it. The later parts are filled in as they are known. */
export interface Passage {
  readonly requestId: string
  readonly beganMs: number
  operation: OperationId | undefined
  keyName: string | undefined
}

export interface Observer {
  begin(request: Request): Passage
  end(passage: Passage, request: Request, status: number): void
  /** The cause goes to the log under the request's id; the client is told only the id. */
  fault(passage: Passage, cause: unknown): void
}

/** While the store is away every request says the same: it is told once in this time, with how many there were. */
const unavailableEveryMs = 1_000

export function createObserver(log: Log, metrics: Metrics, environmentKey?: string | undefined): Observer {
  let toldMs = Number.NEGATIVE_INFINITY
  let untold = 0

  function unavailable(message: string, requestId: string, cause: string): void {
    untold++
    const nowMs = performance.now()
    if (nowMs - toldMs < unavailableEveryMs) return
    log.write('error', message, { requestId, cause, requests: untold })
    toldMs = nowMs
    untold = 0
  }

  return {
    begin({ headers }) {
      metrics.requestBegan()
      const own = headers.get('x-request-id')
      return {
        // Reading a header costs: the credential is compared only with an id that was sent.
        requestId: requestIdOf(own, own && headers.get('authorization'), environmentKey),
        beganMs: performance.now(),
        operation: undefined,
        keyName: undefined,
      }
    },
    end({ requestId, beganMs, operation, keyName }, request, status) {
      const ms = performance.now() - beganMs
      metrics.requestEnded(operation, status, ms / 1_000)
      const level = status === 503 ? 'warn' : status >= 500 ? 'error' : 'info'
      if (!log.isOn(level)) return
      log.request(level, {
        requestId,
        method: request.method,
        operation,
        path: operation ? undefined : shownPath(request, environmentKey),
        status,
        durationMs: Math.round(ms * 1_000) / 1_000,
        key: keyName,
        traceparent: traceparentOf(request.headers.get('traceparent')),
      })
    },
    fault({ requestId }, cause) {
      // The store has reported it, once and for all.
      if (cause instanceof StoreDamaged) return
      if (cause instanceof StoreUnavailable) return unavailable('store unavailable', requestId, cause.message)
      if (cause instanceof IdsExhausted) return unavailable('ids exhausted', requestId, cause.message)
      const detail = cause instanceof Error ? cause.stack || String(cause) : String(cause)
      log.write('error', 'fault', { requestId, cause: detail })
    },
  }
}

const shownSegmentCharsMax = 15
const keyPartCharsMin = 4

/**
 * The path without its query and without a key that was put into it by mistake. Known keys are masked first, because they may
 * contain slashes, then parts of them. Any other key is a segment of more than 15 characters. A segment that is still encoded is
 * left out: it may be a key that was encoded twice.
 */
export function shownPath({ url, headers }: Request, environmentKey: string | undefined): string {
  // Only visible ASCII is decoded: all characters of a key, and none that could steer a terminal.
  const decoded = targetOf(url).path.replace(/%(2[1-9a-f]|[3-6][0-9a-f]|7[0-9a-e])/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  const token = headers.get('authorization')?.replace(/^\w+ +/, '')
  // A shorter token is no key, and masking it would garble every path.
  const keys = [environmentKey ?? '', token ?? ''].filter(key => key.length >= keyPartCharsMin)
  // Bun reads a backslash in a path as a slash.
  const masked = keys.reduce(
    (text, key) => text.replaceAll(key, '…').replaceAll(key.replaceAll('\\', '/'), '…'),
    decoded,
  )
  const parts = keys.flatMap(key => key.split(/[/\\?#%]/)).filter(part => part.length >= keyPartCharsMin)
  const mayBeKey = (segment: string) =>
    segment.length > shownSegmentCharsMax ||
    segment.includes('%') ||
    parts.some(part => segment.includes(part))
  return masked
    .split('/')
    .map(segment => (mayBeKey(segment) ? '…' : segment))
    .join('/')
    .slice(0, 200)
}

/** The caller's place in a trace (W3C Trace Context), as it was sent. */
function traceparentOf(header: string | null): string | undefined {
  return header !== null && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(header)
    ? header
    : undefined
}
