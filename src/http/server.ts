// Listens, and stops without losing requests.
import { readCode } from '../errors.ts'
import { withTimeout } from '../timeout.ts'
import type { App } from './app.ts'
import { Fairness } from './fairness.ts'

export interface Address {
  readonly host: string
  readonly port: number
  /** Whether other processes may listen on the same port. Linux distributes the connections. */
  readonly reusePort?: boolean | undefined
  /** In PEM. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
  /** Whether to take a free port if this one is in use. */
  readonly takesAnyPort?: boolean | undefined
}

export interface Listener {
  readonly port: number
  /** Waits for open requests, then closes the remaining connections. Returns how many requests had no response. */
  stop(drainMs: number): Promise<number>
}

/** During a stop, the port closes when no request has come for this time. */
const quietMs = 300
/** The port closes after this time even if requests keep coming. */
const closingMsMax = 1_000
export const idleSeconds = 30
/** Above this size Bun answers 413 itself, without a body. Our own limit is far lower. */
const bodyBytesBackstop = 1024 ** 3

export function listen(app: App, address: Address): Listener {
  let requests = 0
  const fairness = new Fairness((request, peers) => {
    requests++
    return app.fetch(request, peers)
  })
  const server = startServer(fairness, address)
  return {
    port: server.port ?? address.port,
    async stop(drainMs) {
      app.drain()
      await awaitQuiet(() => requests, Math.min(closingMsMax, drainMs))
      const outcome = await withTimeout(server.stop(), drainMs, () => 'late' as const)
      if (outcome !== 'late') return 0
      const unanswered = server.pendingRequests
      await server.stop(true)
      return unanswered
    },
  }
}

/** Waits until no request has come for `quietMs`, at most for `msMax`. */
async function awaitQuiet(countRequests: () => number, msMax: number): Promise<void> {
  const endMs = performance.now() + msMax
  let before: number
  do {
    before = countRequests()
    await Bun.sleep(Math.min(quietMs, endMs - performance.now()))
  } while (countRequests() > before && performance.now() < endMs)
}

/** Only forward secrecy and authenticated encryption, also for TLS 1.2 (RFC 9325, section 4.1). */
const ciphers = 'ECDHE+AESGCM:ECDHE+CHACHA20'
/** SSL_OP_CIPHER_SERVER_PREFERENCE */
const secureOptions = 0x0040_0000

function startServer(fairness: Fairness, address: Address): Bun.Server<undefined> {
  const { host: hostname, port, reusePort = false, tls, takesAnyPort } = address
  try {
    return Bun.serve({
      hostname,
      port,
      // Always explicit: `development: false` turns it on, and a second server would receive half of the connections.
      reusePort,
      // Otherwise error pages show messages and paths to clients.
      development: false,
      idleTimeout: idleSeconds,
      maxRequestBodySize: bodyBytesBackstop,
      fetch: (request, server) => fairness.fetch(request, server),
      ...(tls && { tls: { ...tls, ciphers, secureOptions } }),
    })
  } catch (error) {
    if (takesAnyPort && readCode(error) === 'EADDRINUSE')
      return startServer(fairness, { ...address, port: 0, takesAnyPort: false })
    throw error
  }
}
