import { connect } from 'node:net'
import { hangMs } from './process.ts'

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The server said that it closes this connection. */
  readonly closes: boolean
}

/** A connection to 127.0.0.1 that collects what comes back. */
class Connection implements Disposable {
  /** The bytes as Latin-1. */
  received = ''
  /** Resolves when it is open, or refused. */
  readonly opened: Promise<unknown>
  readonly socket
  #wake = (_hasReceived: boolean) => {}

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.setEncoding('latin1').on('data', text => {
      this.received += text
      this.#wake(true)
    })
    this.socket.on('close', () => this.#wake(false))
    // Some tests expect the server to close connections, with or without a reset.
    this.socket.on('error', () => {})
    this.opened = new Promise(done => this.socket.on('connect', done).on('close', done))
  }

  send(text: string, encoding: 'utf8' | 'latin1' = 'utf8'): void {
    if (this.socket.writable) this.socket.write(text, encoding)
  }

  /** Waits for so many whole replies, and then for silence. False if the server closes or hangs. */
  async waitFor(replies: number, quietMs = 0): Promise<boolean> {
    while (repliesIn(this.received).length < replies) {
      if (!(await this.#receives(hangMs))) return false
    }
    while (quietMs > 0 && (await this.#receives(quietMs)));
    return !this.socket.closed
  }

  /** Whether anything arrives within this time. */
  #receives(ms: number): Promise<boolean> {
    if (this.socket.closed) return Promise.resolve(false)
    return new Promise(resolve => {
      const late = setTimeout(resolve, ms, false)
      this.#wake = hasReceived => {
        clearTimeout(late)
        resolve(hasReceived)
      }
    })
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

/** Everything that came back on one connection, and whether the server closed it. */
export type Exchange = Readonly<{ received: string; replies: readonly Reply[]; closed: boolean }>

interface ExchangeOptions {
  /** How many replies to wait for. Bytes that arrive within `quietMs` after them count too. */
  readonly expected: number
  readonly quietMs?: number
  /** Sent after that if something was answered and the connection is still open. */
  readonly follower?: string
}

/** Sends the pieces as they are, one after another, on one connection, and collects what comes back. */
export async function exchange(
  port: number,
  pieces: readonly string[],
  { expected, quietMs = 100, follower }: ExchangeOptions,
): Promise<Exchange> {
  using connection = new Connection(port)
  await connection.opened
  for (const [index, piece] of pieces.entries()) {
    // Pauses, so that the pieces arrive separately.
    if (index > 0) await Bun.sleep(20)
    connection.send(piece, 'latin1')
  }
  const isOpen = await connection.waitFor(expected, quietMs)
  if (isOpen && follower !== undefined && connection.received !== '') {
    const replies = repliesIn(connection.received).length
    connection.send(follower)
    await connection.waitFor(replies + 1, quietMs)
  }
  const { received, socket } = connection
  return { received, replies: repliesIn(received), closed: socket.closed }
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

export type Crowd = Awaited<ReturnType<typeof openCrowd>>

/** Many connections that all send `first`: `using crowd = await openCrowd(…)`. */
export async function openCrowd(port: number, size: number, first = '') {
  const connections = Array.from({ length: size }, () => new Connection(port))
  const send = (text: string) => {
    for (const connection of connections) connection.send(text)
  }
  await Promise.all(connections.map(({ opened }) => opened))
  if (first !== '') send(first)
  return {
    send,
    /** What each has received so far. */
    get received() {
      return connections.map(({ received }) => received)
    },
    /** How many the server has not closed. */
    get open() {
      return connections.filter(({ socket }) => !socket.closed).length
    },
    [Symbol.dispose]() {
      for (const connection of connections) connection[Symbol.dispose]()
    },
  }
}

export type Sent = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  headers?: Record<string, string>
  body?: string
}

/** `refused`: the request was never sent. `lost`: no whole response came, and no notice that the server closes. */
export type Outcome =
  | { readonly kind: 'answered'; readonly reply: Reply }
  | { readonly kind: 'refused' }
  | { readonly kind: 'lost'; readonly received: string; readonly requestsBefore: number }

/** Sends one request after another on one connection, and opens another one only when the server has closed it. */
export class KeepAliveClient implements Disposable {
  readonly #port: number
  readonly #key: string
  #connection: Connection | undefined
  #requests = 0

  constructor(port: number, key: string) {
    this.#port = port
    this.#key = key
  }

  async send({ method, path, headers = {}, body }: Sent): Promise<Outcome> {
    const connection = this.#connection ?? new Connection(this.#port)
    await connection.opened
    if (!this.#connection && connection.socket.closed) return { kind: 'refused' }
    this.#connection = connection
    const requestsBefore = this.#requests++
    const lines = [`${method} ${path} HTTP/1.1`, `Host: 127.0.0.1:${this.#port}`, `Authorization: Bearer ${this.#key}`]
    for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
    if (body !== undefined) lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)
    connection.received = ''
    connection.send(`${lines.join('\r\n')}\r\n\r\n${body ?? ''}`)
    await connection.waitFor(1)
    const { received } = connection
    const [reply] = repliesIn(received)
    if (!reply || reply.closes) this[Symbol.dispose]()
    return reply ? { kind: 'answered', reply } : { kind: 'lost', received, requestsBefore }
  }

  [Symbol.dispose](): void {
    this.#connection?.[Symbol.dispose]()
    this.#connection = undefined
    this.#requests = 0
  }
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
