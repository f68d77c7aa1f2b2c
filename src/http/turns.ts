import type { RequestContext } from './request.ts'

/** CPU time in one event-loop tick. Requests that arrive later in the same tick wait for the next one. */
const turnMsMax = 10
/** A new process compiles its code, which takes long without any attack: at first, a turn may last ten times as long. */
const firstRequests = 500
/** Bun buffers the chunks of requests that wait, which takes time, too. */
const chunkedWaitingMax = 16

/**
 * Lets connections take turns. Bun answers all new connections that wait, and all requests that a connection has sent, in
 * one event-loop tick: as long as more keep coming, other connections would not be served.
 */
export class Turns {
  #startedMs: number | undefined
  #startedCpuMs = 0
  #requests = 0
  #chunkedWaiting = 0

  isOver({ startedMs: nowMs }: RequestContext): boolean {
    this.#requests++
    if (this.#startedMs === undefined) {
      this.#startedMs = nowMs
      this.#startedCpuMs = threadCpuMs()
      // Timers run between ticks, so one that is late shows a long tick. Asking in every tick would cost more.
      setTimeout(() => {
        this.#startedMs = undefined
      }, turnMsMax / 2)
      return false
    }
    const msMax = this.#requests > firstRequests ? turnMsMax : 10 * turnMsMax
    // CPU time, because a busy machine can suspend the process in a short tick.
    return nowMs - this.#startedMs > msMax && threadCpuMs() - this.#startedCpuMs > msMax
  }

  /** Waits for the next tick. If many chunked requests wait already, the request is rushed instead. */
  async next(context: RequestContext): Promise<void> {
    context.lookUpPeer()
    context.isRushed = context.inChunks && this.#chunkedWaiting >= chunkedWaitingMax
    if (context.isRushed) return
    if (context.inChunks) this.#chunkedWaiting++
    await new Promise(setImmediate)
    if (context.inChunks) this.#chunkedWaiting--
  }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
