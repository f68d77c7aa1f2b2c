import type { Exchange } from './exchange.ts'
import { Refusal } from './response.ts'

export interface RequestRate {
  readonly requests: number
  readonly seconds: number
}

interface Window {
  readonly endMs: number
  requests: number
}

/** Counts the requests of each key in this process. A window starts with a key's first request. */
export class RateLimiter {
  readonly #rate: RequestRate
  /** By the key's hash. Only verified keys have one. */
  readonly #windows = new Map<string, Window>()

  constructor(rate: RequestRate) {
    this.#rate = rate
  }

  /** Counts a request of a key, and refuses it beyond the limit. Every response to it says how many are left. */
  count({ caller, headers }: Exchange): void {
    const { requests, seconds } = this.#rate
    // Whole milliseconds: sums and differences of fractions are not exact.
    const nowMs = Math.floor(performance.now())
    const open = this.#windows.get(caller.keyHash)
    const window = open && nowMs < open.endMs ? open : { endMs: nowMs + seconds * 1_000, requests: 0 }
    if (window !== open) this.#windows.set(caller.keyHash, window)
    window.requests++
    const resetSeconds = Math.ceil((window.endMs - nowMs) / 1_000)
    const remaining = Math.max(0, requests - window.requests)
    headers['RateLimit-Policy'] = `"default";q=${requests};w=${seconds}`
    headers['RateLimit'] = `"default";r=${remaining};t=${resetSeconds}`
    if (window.requests <= requests) return
    const message = `Too many requests: expected at most ${requests} in ${seconds} s; retry in ${resetSeconds} s`
    throw new Refusal('rate_limited', message, { 'Retry-After': String(resetSeconds) })
  }
}
