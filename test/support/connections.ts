import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The server said that it closes this connection. */
  readonly closes: boolean
}

/** Everything that came back on one connection, and whether the server closed it. */
export type Exchange = Readonly<{ received: string; replies: readonly Reply[]; closed: boolean }>

interface ExchangeOptions {
  /** How many replies to wait for. Bytes that arrive within `quietMs` after them count too. */
  readonly expected: number
  readonly quietMs?: number
  readonly waitMs?: number
  /** Sent after that if something was answered and the connection is still open. */
  readonly follower?: string
}

/** Sends the pieces as they are, one after another, on one connection, and collects what comes back. */
export function exchange(
  port: number,
  pieces: readonly string[],
  { expected, quietMs = 100, waitMs = 20_000, follower }: ExchangeOptions,
): Promise<Exchange> {
  return new Promise(resolve => {
    let received = ''
    let sent = false
    let next = follower
    const socket = connect(port, '127.0.0.1', async () => {
      socket.setNoDelay(true)
      for (const [index, piece] of pieces.entries()) {
        // Pauses, so that the pieces arrive separately.
        if (index > 0) await Bun.sleep(20)
        if (socket.writable) socket.write(piece, 'latin1')
      }
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
      expected = repliesIn(received).length + 1
      socket.setTimeout(3_000)
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

/** The whole replies, one after another, each as long as its Content-Length says, in bytes that were read as Latin-1. */
export function repliesIn(received: string): readonly Reply[] {
  const replies: Reply[] = []
  for (let at = 0; ; ) {
    const headEnd = received.indexOf('\r\n\r\n', at)
    if (headEnd < 0) return replies
    const [statusLine = '', ...lines] = received.slice(at, headEnd).split('\r\n')
    const headers = new Headers()
    for (const line of lines) {
      const colon = line.indexOf(':')
      headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
    }
    const start = headEnd + 4
    at = start + Number(headers.get('content-length') ?? 0)
    if (received.length < at) return replies
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(received.slice(start, at), 'latin1'))
    const closes = headers.get('connection')?.toLowerCase() === 'close'
    replies.push({ status: Number(statusLine.split(' ')[1]), headers, text, closes })
  }
}

/** How many bytes the process on this port of 127.0.0.1 was sent and has not read, on all of its connections. */
export function unreadBytes(port: number): number {
  const rows = readFileSync('/proc/net/tcp', 'utf8').matchAll(/:(\w{4}) \w{8}:(\w{4}) \w\w (\w{8}):(\w{8})/g)
  const isPort = (text = '') => Number.parseInt(text, 16) === port
  let bytes = 0
  for (const [, own, other, unsent = '', unread = ''] of rows) {
    if (isPort(own)) bytes += Number.parseInt(unread, 16)
    if (isPort(other)) bytes += Number.parseInt(unsent, 16)
  }
  return bytes
}

export type Crowd = Awaited<ReturnType<typeof openCrowd>>

/** Many connections to 127.0.0.1 that all send `first`: `using crowd = await openCrowd(…)`. */
export async function openCrowd(port: number, size: number, first = '') {
  const sockets = Array.from({ length: size }, () => connect(port, '127.0.0.1'))
  const received = sockets.map(() => '')
  for (const [index, socket] of sockets.entries()) {
    socket.on('data', chunk => {
      received[index] += chunk.toString('latin1')
    })
    // Some tests expect the server to close connections, with or without a reset.
    socket.on('error', () => {})
  }
  /** Sends to those that are still open. */
  const send = (text: string) => {
    for (const socket of sockets) if (socket.writable) socket.write(text)
  }
  await Promise.all(sockets.map(socket => new Promise(done => socket.on('connect', done).on('close', done))))
  if (first !== '') send(first)
  return {
    send,
    /** What each has received so far. */
    received: received as readonly string[],
    /** Whether the system has taken everything. */
    get sent() {
      return sockets.every(({ writableLength }) => writableLength === 0)
    },
    /** How many the server has not closed. */
    get open() {
      return sockets.filter(({ closed }) => !closed).length
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

export type Sent = { readonly method: 'GET' | 'POST'; path: string; headers?: Record<string, string>; body?: string }

/** `refused`: the request was never sent. `lost`: no whole response came, and no notice that the server closes. */
export type Outcome =
  | { readonly kind: 'answered'; readonly reply: Reply }
  | { readonly kind: 'refused' }
  | { readonly kind: 'lost'; readonly received: string; readonly requestsBefore: number }

/** A response that takes longer than this counts as lost. */
const hangMs = 40_000

/** Sends one request after another on one connection, and opens another one only when the server has closed it. */
export class KeepAliveClient implements Disposable {
  readonly #port: number
  readonly #key: string
  #socket: Socket | undefined
  #requests = 0

  constructor(port: number, key: string) {
    this.#port = port
    this.#key = key
  }

  /** One request at a time. */
  async send({ method, path, headers = {}, body }: Sent): Promise<Outcome> {
    this.#socket ??= await opened(this.#port)
    if (!this.#socket) return { kind: 'refused' }
    const requestsBefore = this.#requests++
    const lines = [`${method} ${path} HTTP/1.1`, `Host: 127.0.0.1:${this.#port}`, `Authorization: Bearer ${this.#key}`]
    for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
    if (body !== undefined) lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)
    const { received, reply } = await answerTo(this.#socket, `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`)
    if (!reply || reply.closes) this[Symbol.dispose]()
    return reply ? { kind: 'answered', reply } : { kind: 'lost', received, requestsBefore }
  }

  [Symbol.dispose](): void {
    this.#socket?.destroy()
    this.#socket = undefined
    this.#requests = 0
  }
}

/** An open connection; undefined if it was refused. */
function opened(port: number): Promise<Socket | undefined> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.on('error', () => resolve(undefined))
    socket.on('timeout', () => socket.destroy())
  })
}

/** Without a reply if the connection ends before a whole one has come. */
function answerTo(socket: Socket, bytes: string): Promise<{ received: string; reply: Reply | undefined }> {
  return new Promise(resolve => {
    let received = ''
    const end = () => {
      socket.setTimeout(0).off('data', read).off('end', end).off('close', end)
      resolve({ received, reply: repliesIn(received)[0] })
    }
    const read = (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (repliesIn(received).length > 0) end()
    }
    if (socket.closed || !socket.readable) return end()
    socket.setTimeout(hangMs).on('data', read).on('end', end).on('close', end)
    socket.write(bytes)
  })
}

/** Runs `count` clients at once, each with a connection of its own, until all of them have ended. */
export function withClients(
  { port, key, count }: { readonly port: number; readonly key: string; readonly count: number },
  use: (client: KeepAliveClient, index: number) => Promise<void>,
): Promise<unknown> {
  const one = async (_: unknown, index: number) => {
    using client = new KeepAliveClient(port, key)
    await use(client, index)
  }
  const all = Promise.all(Array.from({ length: count }, one))
  // The test awaits it later; without a handler until then, a failure would end the test before its server was stopped.
  all.catch(() => {})
  return all
}
