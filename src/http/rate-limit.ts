import { type Answer, problem, withHeaders } from './answer.ts'

/** So many requests of one key in so many seconds. */
export interface RateLimit {
  readonly requests: number
  readonly seconds: number
}

/** Counts the requests of each key on this instance, in windows that begin with a key's first request. */
export interface RateLimiter {
  /** Counts one request. `refusal` where it is one too many; `headers` say what is left. */
  count(scope: string): { readonly headers: Readonly<Record<string, string>>; readonly refusal?: Answer }
}

interface Window {
  readonly endsAtMs: number
  requests: number
}

/** Windows that have ended are swept out when so many have gathered; only keys that were verified have one. */
const windowsMax = 10_000

export function createRateLimiter({ requests, seconds }: RateLimit): RateLimiter {
  const windows = new Map<string, Window>()
  const policy = `"default";q=${requests};w=${seconds}`

  function windowOf(scope: string, nowMs: number): Window {
    const open = windows.get(scope)
    if (open && nowMs < open.endsAtMs) return open
    if (windows.size >= windowsMax) {
      for (const [ended, { endsAtMs }] of windows) if (endsAtMs <= nowMs) windows.delete(ended)
    }
    const fresh = { endsAtMs: nowMs + seconds * 1_000, requests: 0 }
    windows.set(scope, fresh)
    return fresh
  }

  return {
    count(scope) {
      // Whole milliseconds: a difference of fractions can come out above the window.
      const nowMs = Math.floor(performance.now())
      const window = windowOf(scope, nowMs)
      window.requests++
      const resetSeconds = Math.max(1, Math.ceil((window.endsAtMs - nowMs) / 1_000))
      const remaining = Math.max(0, requests - window.requests)
      const headers = { 'RateLimit-Policy': policy, RateLimit: `"default";r=${remaining};t=${resetSeconds}` }
      if (window.requests <= requests) return { headers }
      const message = `Too many requests with this API key: expected at most ${requests} in ${seconds} s; try again in ${resetSeconds} s`
      const refusal = problem('rate_limited', message, { 'Retry-After': String(resetSeconds) })
      return { headers, refusal: withHeaders(refusal, headers) }
    },
  }
}
