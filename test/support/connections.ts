import { connect, type Socket } from 'node:net'

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The server said that it closes this connection. */
  readonly closes: boolean
}

/** Everything that came back on one connection. */
export interface Exchange {
  readonly received: string
  readonly replies: readonly Reply[]
  /** The server closed the connection; otherwise it stayed open and silent. */
  readonly closed: boolean
}

interface ExchangeOptions {
  /** How many replies to wait for. Bytes that arrive within `quietMs` after them count too. */
  readonly expected: number
  readonly quietMs?: number
  readonly waitMs?: number
  /** Sent after that if something was answered and the connection is still open; its answer may take a second. */
  readonly follower?: string
}

/** Sends the pieces as they are, one after another, on one connection, and collects what comes back. */
export function exchange(
  port: number,
  pieces: readonly string[],
  { expected, quietMs = 100, waitMs = 5_000, follower }: ExchangeOptions,
): Promise<Exchange> {
  return new Promise(resolve => {
    let received = ''
    let sent = false
    let next = follower
    const socket = connect(port, '127.0.0.1', async () => {
      await sendAll(socket, pieces)
      sent = true
      awaitSilence()
    })
    const deadline = setTimeout(() => end(false), waitMs)
    function end(closed: boolean): void {
      clearTimeout(deadline)
      socket.destroy()
      resolve({ received, replies: repliesIn(received), closed })
    }
    function awaitSilence(): void {
      if (sent && repliesIn(received).length >= expected) socket.setTimeout(quietMs)
    }
    socket.on('timeout', () => {
      if (next === undefined || received === '') return end(false)
      socket.setTimeout(1_000)
      socket.write(next)
      next = undefined
    })
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
      awaitSilence()
    })
    // A reset is how a server refuses to read on.
    socket.on('error', () => end(true))
    socket.on('close', () => end(true))
  })
}

/** Sends bytes that no HTTP client would send, and gives everything that came until the server closed or went silent. */
export async function sendRaw(port: number, bytes: string): Promise<string> {
  return (await exchange(port, [bytes], { expected: 1, quietMs: 20 })).received
}

/** Pauses between the pieces, so that they arrive separately. */
async function sendAll(socket: Socket, pieces: readonly string[]): Promise<void> {
  socket.setNoDelay(true)
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await Bun.sleep(20)
    if (socket.writable) socket.write(piece, 'latin1')
  }
}

/** The whole replies, one after another, in bytes that were read as Latin-1. */
export function repliesIn(received: string): readonly Reply[] {
  const replies: Reply[] = []
  let rest = Buffer.from(received, 'latin1')
  for (let found = replyIn(rest); found; found = replyIn(rest)) {
    replies.push(found.reply)
    rest = rest.subarray(found.length)
  }
  return replies
}

/** The first whole response in these bytes, as long as its Content-Length says, and how many of them it takes. */
function replyIn(bytes: Buffer): { readonly reply: Reply; readonly length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const headers = new Headers()
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  const start = headEnd + 4
  const length = start + Number(headers.get('content-length') ?? 0)
  if (bytes.length < length) return undefined
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(start, length))
  const closes = headers.get('connection')?.toLowerCase() === 'close'
  return { reply: { status: Number(statusLine.split(' ')[1]), headers, text, closes }, length }
}

/** Many connections to 127.0.0.1 that all do the same: `using crowd = await openCrowd(…)`. */
export interface Crowd extends Disposable {
  /** How many the server has not closed. */
  readonly open: number
  /** What each has received so far. */
  readonly received: readonly string[]
  /** Sends to those that are still open. */
  send(text: string): void
}

/** Opens them all, and sends `first` on each. */
export async function openCrowd(port: number, size: number, first = ''): Promise<Crowd> {
  const connections = Array.from({ length: size }, () => ({ received: '', closed: false }))
  const sockets = connections.map(connection => {
    const socket = connect(port, '127.0.0.1')
    socket.on('data', chunk => {
      connection.received += chunk.toString('latin1')
    })
    // Some tests expect the server to close connections, with or without a reset.
    socket.on('error', () => {})
    socket.on('close', () => {
      connection.closed = true
    })
    return socket
  })
  const crowd = {
    get open() {
      return connections.filter(({ closed }) => !closed).length
    },
    get received() {
      return connections.map(({ received }) => received)
    },
    send(text: string) {
      for (const socket of sockets) if (socket.writable) socket.write(text)
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
    },
  }
  await Promise.all(sockets.map(socket => new Promise(done => socket.on('connect', done).on('close', done))))
  if (first !== '') crowd.send(first)
  return crowd
}

interface Sent {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/**
 * `refused`: the connection was refused, so the request was never sent. `lost`: the request was sent on a connection that the
 * server had not announced to close, and no whole response came.
 */
export type Outcome =
  | { readonly kind: 'answered'; readonly reply: Reply }
  | { readonly kind: 'refused' }
  | { readonly kind: 'lost'; readonly received: string; readonly requestsBefore: number }

export interface KeepAliveClient extends Disposable {
  /** One request at a time. */
  send(request: Sent): Promise<Outcome>
}

/** Sends one request after another on one connection, and opens another one only when the server has closed it. */
export function keepAliveClient(port: number, key: string): KeepAliveClient {
  let connection: Connection | undefined
  return {
    async send(request) {
      connection ??= await openConnection(port)
      if (!connection) return { kind: 'refused' }
      const outcome = await connection.exchange(bytesOf(request, port, key))
      if (outcome.kind === 'lost' || outcome.reply.closes) {
        connection.close()
        connection = undefined
      }
      return outcome
    },
    [Symbol.dispose]: () => connection?.close(),
  }
}

/** Runs `count` clients at once, each with a connection of its own, until all of them have ended. */
export function withClients(
  { port, key, count }: { readonly port: number; readonly key: string; readonly count: number },
  use: (client: KeepAliveClient, index: number) => Promise<void>,
): Promise<unknown> {
  const one = async (index: number) => {
    using client = keepAliveClient(port, key)
    await use(client, index)
  }
  const all = Promise.all(Array.from({ length: count }, (_, index) => one(index)))
  // The test awaits it later; without a handler until then, a failure would end the test before its server was stopped.
  all.catch(() => {})
  return all
}

interface Connection {
  exchange(bytes: string): Promise<Exclude<Outcome, { kind: 'refused' }>>
  close(): void
}

function openConnection(port: number): Promise<Connection | undefined> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    const refused = () => resolve(undefined)
    socket.once('error', refused)
    socket.once('connect', () => {
      socket.off('error', refused)
      resolve(connectionOn(socket))
    })
  })
}

function connectionOn(socket: Socket): Connection {
  let received = Buffer.alloc(0)
  let requests = 0
  let over = false
  let settle: () => void = () => {}
  socket.on('data', chunk => {
    received = Buffer.concat([received, Buffer.from(chunk)])
    settle()
  })
  const ended = () => {
    over = true
    settle()
  }
  socket.on('error', ended)
  socket.on('end', ended)
  socket.on('close', ended)

  return {
    exchange(bytes) {
      return new Promise(resolve => {
        settle = () => {
          const found = replyIn(received)
          if (found) {
            received = received.subarray(found.length)
            requests += 1
            resolve({ kind: 'answered', reply: found.reply })
          } else if (over) {
            resolve({ kind: 'lost', received: received.toString('latin1'), requestsBefore: requests })
          }
        }
        socket.write(bytes)
        settle()
      })
    },
    close: () => socket.destroy(),
  }
}

function bytesOf({ method, path, headers = {}, body }: Sent, port: number, key: string): string {
  const lines = [`${method} ${path} HTTP/1.1`, `Host: 127.0.0.1:${port}`, `Authorization: Bearer ${key}`]
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  if (body !== undefined) {
    lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`
}
