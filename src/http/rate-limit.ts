import type { RequestContext } from './request.ts'
import { problem, type Reply } from './response.ts'

export interface RateLimit {
  readonly requests: number
  readonly seconds: number
}

/** Keys with a limit at the same time. Beyond this, the window that ends first starts again. */
const slots = 65_536
/** How far from its own slot a key may be. */
const probesMax = 64
/** Windows end at a multiple of this time, so that time and count fit into 64 bits for five years. */
const unitMs = 10
const countBits = 30n
const countMask = (1n << countBits) - 1n

/**
 * The windows of all keys, shared by all threads. A slot has two cells: a part of the key's hash, and the end of its window
 * with the requests in it. Both change by compare-and-exchange, so that every request counts once. Only when a slot is taken
 * from another key may requests of the same moment be lost or counted for the wrong key.
 */
export type RateLimitMemory = BigUint64Array<SharedArrayBuffer>

export function newRateLimitMemory(): RateLimitMemory {
  return new BigUint64Array(new SharedArrayBuffer(2 * slots * BigUint64Array.BYTES_PER_ELEMENT))
}

/** Counts the requests of each key on this instance. A window starts with a key's first request. */
export class RateLimiter {
  readonly #limit: RateLimit
  readonly #cells: RateLimitMemory
  readonly #nowMs: () => number

  /** `nowMs` is a monotonic clock, the same for all threads that share the memory. */
  constructor(limit: RateLimit, memory = newRateLimitMemory(), nowMs = () => performance.now()) {
    this.#limit = limit
    this.#cells = memory
    this.#nowMs = nowMs
  }

  /** Counts one request, sets the context's rate limit headers, and returns the refusal if it is one too many. */
  count(context: RequestContext): Reply | undefined {
    const { requests, seconds } = this.#limit
    const now = Math.floor(this.#nowMs() / unitMs)
    const window = this.#countIn(this.#slotOf(context.caller.scope, now), now)
    const resetSeconds = Math.max(1, Math.ceil(((window.end - now) * unitMs) / 1_000))
    const remaining = Math.max(0, requests - window.requests)
    context.rateLimitHeaders = {
      'RateLimit-Policy': `"default";q=${requests};w=${seconds}`,
      RateLimit: `"default";r=${remaining};t=${resetSeconds}`,
    }
    if (window.requests <= requests) return undefined
    const message = `Too many requests: expected at most ${requests} in ${seconds} s; retry in ${resetSeconds} s`
    return problem('rate_limited', message, { 'Retry-After': String(resetSeconds) })
  }

  /** The key's slot: its own, a free one, or the one in reach whose window ends first. */
  #slotOf(scope: string, now: number): number {
    // Never 0, which marks a free slot.
    const hash = BigInt(`0x${scope.slice(0, 16)}`) | 1n
    const first = Number.parseInt(scope.slice(16, 24), 16)
    for (;;) {
      let oldest = { slot: 0, end: Number.POSITIVE_INFINITY, hash: 0n }
      for (let probe = 0; probe < probesMax; probe++) {
        const slot = 2 * ((first + probe) % slots)
        const found = Atomics.compareExchange(this.#cells, slot, 0n, hash)
        if (found === 0n || found === hash) return slot
        const { end } = windowOf(Atomics.load(this.#cells, slot + 1))
        if (end < oldest.end) oldest = { slot, end, hash: found }
      }
      // Another thread may have taken it first: then look again.
      if (Atomics.compareExchange(this.#cells, oldest.slot, oldest.hash, hash) === oldest.hash) {
        if (oldest.end > now) Atomics.store(this.#cells, oldest.slot + 1, 0n)
        return oldest.slot
      }
    }
  }

  /** The open window of a slot, or a new one, with this request. */
  #countIn(slot: number, now: number): Window {
    const newEnd = now + (this.#limit.seconds * 1_000) / unitMs
    for (;;) {
      const before = Atomics.load(this.#cells, slot + 1)
      const open = windowOf(before)
      const window = now < open.end ? { end: open.end, requests: open.requests + 1 } : { end: newEnd, requests: 1 }
      if (Atomics.compareExchange(this.#cells, slot + 1, before, cellOf(window)) === before) return window
    }
  }
}

interface Window {
  /** In units since the start. */
  readonly end: number
  readonly requests: number
}

function windowOf(cell: bigint): Window {
  return { end: Number(cell >> countBits), requests: Number(cell & countMask) }
}

function cellOf({ end, requests }: Window): bigint {
  return (BigInt(end) << countBits) | BigInt(requests)
}
