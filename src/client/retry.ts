import {
  ConnectionError,
  type PetstoreError,
  RateLimitedError,
  ServiceUnavailableError,
  TimeoutError,
} from './errors.ts'

export interface RetrySettings {
  /** How many more attempts may follow the first. */
  readonly retries: number
  /** The longest wait before the first retry; it doubles with each one. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
  /** A server that asks for a longer wait than this is not asked again. */
  readonly retryAfterMaxMs: number
}

/**
 * How long to wait before the next attempt; undefined where there is none. What the server asked for is
 * waited in full, and a random part of the backoff on top, so that many clients do not come back in one moment.
 */
export function waitMsBeforeRetry(
  error: PetstoreError,
  attemptsMade: number,
  settings: RetrySettings,
): number | undefined {
  const { retries, backoffMs, backoffMaxMs, retryAfterMaxMs } = settings
  if (attemptsMade > retries || !mayPass(error)) return undefined
  const askedMs = (error.retryAfterSeconds ?? 0) * 1_000
  if (askedMs > retryAfterMaxMs) return undefined
  return askedMs + Math.random() * Math.min(backoffMaxMs, backoffMs * 2 ** (attemptsMade - 1))
}

/** Whether the same request may do better later. Repeating is safe: reads change nothing, creations carry a key. */
function mayPass(error: PetstoreError): boolean {
  return (
    error instanceof ConnectionError ||
    error instanceof TimeoutError ||
    error instanceof RateLimitedError ||
    // Waiting gives a store no new ids.
    (error instanceof ServiceUnavailableError && error.code !== 'ids_exhausted')
  )
}

/** Retry-After in its two forms, seconds and an HTTP date; undefined where it is neither. */
export function readRetryAfter(header: string | null, now: Date): number | undefined {
  if (header === null) return undefined
  if (/^\d{1,10}$/.test(header)) return Number(header)
  const seconds = Math.ceil((Date.parse(header) - now.getTime()) / 1_000)
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

/** Rejects with the signal's reason as soon as it is aborted. */
export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}
