import { withTimeout } from '../timeout.ts'
import type { PeerLookup } from './exchange.ts'

/** CPU time in one event-loop tick. Requests that arrive later in the same tick wait for the next one. */
const tickMsMax = 8
/** The bounds for the rest of a refused body. Beyond any of these, the connection is closed. */
const discardedBytesMax = 16 * 1024 ** 2
const discardedPiecesMax = 4_096
const discardMs = 5_000
/** Small pieces cost others most: in each interval, only one body may have so many. */
const smallPiecesMax = 512
const smallBytes = 1_024
const patienceMs = 100

type Fetch = (request: Request, peers: PeerLookup) => Promise<Response>

/** Protects other clients from one that the runtime would let occupy the event loop. Wraps an app from outside. */
export class Fairness {
  readonly #fetch: Fetch
  #tickStartedMs: number | undefined
  #tickStartedCpuMs = 0
  #patientMs = Number.NEGATIVE_INFINITY

  constructor(fetch: Fetch) {
    this.#fetch = fetch
  }

  /**
   * Bun answers all new connections that wait, and all requests that a connection has sent, in one tick: as long as more
   * keep coming, other connections would not be served.
   */
  fetch(request: Request, peers: PeerLookup): Promise<Response> {
    return this.#isTickSpent() ? this.#fetchNextTick(request, peers) : this.#fetchNow(request, peers)
  }

  async #fetchNextTick(request: Request, peers: PeerLookup): Promise<Response> {
    // The connection may be closed by then.
    const peer = peers.requestIP(request)
    await new Promise(setImmediate)
    return this.#fetchNow(request, { requestIP: () => peer })
  }

  #fetchNow(request: Request, peers: PeerLookup): Promise<Response> {
    const response = this.#fetch(request, peers)
    const mayHaveBody = request.method !== 'GET' || request.headers.has('transfer-encoding')
    return mayHaveBody ? this.#discardRest(request, response) : response
  }

  #isTickSpent(): boolean {
    const nowMs = performance.now()
    if (this.#tickStartedMs === undefined) {
      this.#tickStartedMs = nowMs
      this.#tickStartedCpuMs = threadCpuMs()
      // Timers run between ticks, so one that is late shows a long tick. Asking in every tick would cost more.
      setTimeout(() => {
        this.#tickStartedMs = undefined
      }, tickMsMax / 2)
      return false
    }
    // The CPU time, too: a busy machine can suspend the process in a short tick.
    return nowMs - this.#tickStartedMs > tickMsMax && threadCpuMs() - this.#tickStartedCpuMs > tickMsMax
  }

  /** Closing a connection with unread data resets it, and the client may not receive the response (RFC 9112, 9.6). */
  async #discardRest(request: Request, responding: Promise<Response>): Promise<Response> {
    const response = await responding
    // Only this shows chunks: Bun tells nothing of their number or their end.
    const isChunked = request.headers.has('transfer-encoding')
    if (response.status < 400 && !isChunked) return response
    const closes = [request, response].some(({ headers }) => /\bclose\b/i.test(headers.get('connection') ?? ''))
    // On a connection that stays open, Bun discards a body of known length by itself.
    if (!closes && !isChunked) return response
    // Bun shows no body of a GET, and would read its chunks without end.
    const canRead = request.body !== null && !request.body.locked
    const isRead = canRead && withTimeout(this.#readToEnd(request.body), discardMs, () => false)
    // Reading fails if the client closes the connection.
    const hasEnded = isRead && (await isRead.catch(() => false))
    if (closes || !hasEnded) response.headers.set('Connection', 'close')
    return response
  }

  /** Reads and drops a body within the bounds, and returns whether it has ended. */
  async #readToEnd(body: ReadableStream<Uint8Array>): Promise<boolean> {
    const reader = body.getReader()
    let bytes = 0
    let smallPieces = 0
    for (let pieces = 0; pieces <= discardedPiecesMax && bytes <= discardedBytesMax; pieces++) {
      const { done, value } = await reader.read()
      if (done) return true
      bytes += value.byteLength
      if (value.byteLength >= smallBytes) continue
      smallPieces++
      if (smallPieces === smallPiecesMax && !this.#hasPatience()) return false
    }
    return false
  }

  /** Once in each interval. */
  #hasPatience(): boolean {
    const nowMs = performance.now()
    if (nowMs - this.#patientMs < patienceMs) return false
    this.#patientMs = nowMs
    return true
  }
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
