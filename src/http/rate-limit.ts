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
  readonly #windowsMax: number
  /** By the key's hash. In order of their ends, because all are equally long. */
  readonly #windows = new Map<string, Window>()

  /** Of more than `windowsMax` open windows, the one that ends first is dropped. */
  constructor(rate: RequestRate, windowsMax = 65_536) {
    this.#rate = rate
    this.#windowsMax = windowsMax
  }

  /** Counts a request of a key, and refuses it beyond the limit. Every response to it says how many are left. */
  count({ caller, headers }: Exchange): void {
    const { requests, seconds } = this.#rate
    // Whole milliseconds: sums and differences of fractions are not exact.
    const nowMs = Math.floor(performance.now())
    const window = this.#windowOf(caller.keyHash, nowMs)
    window.requests++
    const resetSeconds = Math.ceil((window.endMs - nowMs) / 1_000)
    const remaining = Math.max(0, requests - window.requests)
    headers['RateLimit-Policy'] = `"default";q=${requests};w=${seconds}`
    headers['RateLimit'] = `"default";r=${remaining};t=${resetSeconds}`
    if (window.requests <= requests) return
    const message = `Too many requests: expected at most ${requests} in ${seconds} s; retry in ${resetSeconds} s`
    throw new Refusal('rate_limited', message, { 'Retry-After': String(resetSeconds) })
  }

  #windowOf(keyHash: string, nowMs: number): Window {
    const open = this.#windows.get(keyHash)
    if (open && nowMs < open.endMs) return open
    this.#windows.delete(keyHash)
    if (this.#windows.size >= this.#windowsMax) this.#windows.delete(this.#windows.keys().next().value ?? '')
    const window = { endMs: nowMs + this.#rate.seconds * 1_000, requests: 0 }
    this.#windows.set(keyHash, window)
    return window
  }
}
