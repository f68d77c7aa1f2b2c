import type { IncomingRequest } from './request.ts'

/** CPU time in one event-loop tick. Requests that arrive later in the same tick are deferred to the next one. */
const tickMsMax = 10
/**
 * After so much, chunked requests are refused in the same tick: while they wait, Bun goes on to buffer their chunks.
 * Not earlier, because a client that is refused connects again at once, and this makes the tick longer.
 */
const busyMs = 300
/** A new process compiles its code, so its first ticks are long without an attack. */
const firstRequests = 500
const firstTickMsMax = 100
const patientEveryMs = 1_000

/**
 * Keeps one client from occupying the event loop. Bun answers all new connections that wait, and all requests that a
 * connection has sent, in one tick: as long as more keep coming, other connections would not be served.
 */
export class TickBudget {
  #startedMs: number | undefined
  #startedCpuMs = 0
  #requests = 0
  #patientMs = Number.NEGATIVE_INFINITY

  /** Counts a request, and returns whether this tick has taken too long to handle it. */
  isSpent({ startedMs: nowMs }: IncomingRequest): boolean {
    this.#requests++
    if (this.#startedMs === undefined) {
      this.#startedMs = nowMs
      this.#startedCpuMs = threadCpuMs()
      // Timers run between ticks, so one that is late shows a long tick. Asking in every tick would cost more.
      setTimeout(() => {
        this.#startedMs = undefined
      }, tickMsMax / 2)
      return false
    }
    const msMax = this.#requests > firstRequests ? tickMsMax : firstTickMsMax
    return nowMs - this.#startedMs > msMax && this.#cpuMs > msMax
  }

  /** Waits for the next tick, and returns true; or returns false at once: then the request has to be refused. */
  async defer(incoming: IncomingRequest): Promise<boolean> {
    incoming.lookUpPeer()
    if (this.#cpuMs > busyMs && incoming.isChunked && incoming.request.body !== null) return false
    await new Promise(setImmediate)
    return true
  }

  /** Whether the server may discard a body in many small pieces: once a second, so that it costs others little. */
  takePatience(): boolean {
    const nowMs = performance.now()
    if (nowMs - this.#patientMs < patientEveryMs) return false
    this.#patientMs = nowMs
    return true
  }

  /** Not the time that has passed: a busy machine can suspend the process in a short tick. */
  get #cpuMs(): number {
    return threadCpuMs() - this.#startedCpuMs
  }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
