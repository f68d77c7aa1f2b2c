import type { RequestContext } from './request.ts'
import { problem, type Reply } from './response.ts'

export interface RateLimit {
  readonly requests: number
  readonly seconds: number
}

interface Window {
  readonly endsAtMs: number
  requests: number
}

/** Ended windows are removed when this many exist. Only verified keys have one. */
const windowsMax = 10_000

/** Counts the requests of each key on this instance. A window starts with a key's first request. */
export class RateLimiter {
  readonly #limit: RateLimit
  readonly #windows = new Map<string, Window>()

  constructor(limit: RateLimit) {
    this.#limit = limit
  }

  /** Counts one request, sets the context's rate limit headers, and returns the refusal if it is one too many. */
  count(context: RequestContext): Reply | undefined {
    const { requests, seconds } = this.#limit
    // Whole milliseconds: a difference of fractions can come out above the window.
    const nowMs = Math.floor(performance.now())
    const window = this.#windowOf(context.caller.scope, nowMs)
    window.requests++
    const resetSeconds = Math.max(1, Math.ceil((window.endsAtMs - nowMs) / 1_000))
    const remaining = Math.max(0, requests - window.requests)
    context.rateLimitHeaders = {
      'RateLimit-Policy': `"default";q=${requests};w=${seconds}`,
      RateLimit: `"default";r=${remaining};t=${resetSeconds}`,
    }
    if (window.requests <= requests) return undefined
    const message = `Too many requests: expected at most ${requests} in ${seconds} s; retry in ${resetSeconds} s`
    return problem('rate_limited', message, { 'Retry-After': String(resetSeconds) })
  }

  #windowOf(scope: string, nowMs: number): Window {
    const open = this.#windows.get(scope)
    if (open && nowMs < open.endsAtMs) return open
    if (this.#windows.size >= windowsMax) this.#removeEnded(nowMs)
    const window = { endsAtMs: nowMs + this.#limit.seconds * 1_000, requests: 0 }
    this.#windows.set(scope, window)
    return window
  }

  #removeEnded(nowMs: number): void {
    for (const [scope, { endsAtMs }] of this.#windows) if (endsAtMs <= nowMs) this.#windows.delete(scope)
  }
}
