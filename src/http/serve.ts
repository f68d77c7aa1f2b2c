import { SetupError } from '../errors.ts'
import type { App } from './app.ts'

/** Where to listen, and with what certificate if not in the clear. */
export interface Address {
  readonly host: string
  readonly port: number
  /** Whether other processes may listen on the same port; Linux spreads the connections over them. */
  readonly reusePort?: boolean | undefined
  /** Files in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
}

export interface Listener {
  readonly port: number
  /** Answers what is under way, then takes nothing more. What is not answered by then is cut off: how many. */
  stop(drainMs: number): Promise<number>
}

/** While connections are told to close, clients still send on them; then the socket is closed. */
const closingMs = 300
/** A client that sends or takes nothing for this long is cut off. */
const idleSeconds = 30
/** Above this Bun answers itself, without an Error body; below it our own limit holds. */
const bodyBytesBackstop = 1024 ** 3

export function listen(app: App, address: Address): Listener {
  const { port } = address
  const server = startServer(app, address)
  return {
    port: server.port ?? port,
    async stop(drainMs) {
      app.drain()
      await Bun.sleep(Math.min(closingMs, drainMs))
      const { promise: late, resolve } = Promise.withResolvers<'late'>()
      const timer = setTimeout(resolve, drainMs, 'late')
      const outcome = await Promise.race([server.stop(), late])
      clearTimeout(timer)
      if (outcome !== 'late') return 0
      const cutOff = server.pendingRequests
      await server.stop(true)
      return cutOff
    },
  }
}

/** Forward secrecy and authenticated encryption only, for TLS 1.2 too (RFC 9325, section 4.1), in the server's order. */
const tlsSafety = {
  ciphers: [
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
  /** SSL_OP_CIPHER_SERVER_PREFERENCE */
  secureOptions: 0x0040_0000,
}

function startServer(app: App, { host: hostname, port, reusePort = false, tls }: Address) {
  try {
    return Bun.serve({
      hostname,
      port,
      // Passed even if false: `development: false` turns it on, and a second server would get half of the connections.
      reusePort,
      // On by default, and it shows messages and paths to whoever causes an error.
      development: false,
      idleTimeout: idleSeconds,
      maxRequestBodySize: bodyBytesBackstop,
      fetch: request => app.fetch(request),
      ...(tls && { tls: { cert: Bun.file(tls.cert), key: Bun.file(tls.key), ...tlsSafety } }),
    })
  } catch (error) {
    throw setupErrorOf(error, { host: hostname, port, tls })
  }
}

function setupErrorOf(error: unknown, { host, port, tls }: Address): unknown {
  const code = (error as { code?: string }).code
  const where = `${host}:${port}`
  if (code === 'EADDRINUSE') {
    return new SetupError(
      `Cannot listen on ${where}: the port is taken; stop what uses it, or choose another with PORT`,
    )
  }
  if (code === 'EACCES') {
    return new SetupError(
      `Cannot listen on ${where}: no right to use this port; choose one above 1023 with PORT`,
    )
  }
  if (tls && !code?.startsWith('EADDR')) {
    return new SetupError(
      `Cannot use ${tls.cert} and ${tls.key}: expected a certificate and its key, both in PEM`,
      {
        cause: error,
      },
    )
  }
  return new SetupError(`Cannot listen on ${where}: check HOST and PORT (${code ?? 'no cause given'})`, {
    cause: error,
  })
}
