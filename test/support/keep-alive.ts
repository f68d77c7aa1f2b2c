import { connect, type Socket } from 'node:net'

interface Sent {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The server said that it takes nothing more on this connection. */
  readonly closes: boolean
}

/**
 * `refused`: nobody took the connection, so that the request was never sent. `lost`: it was sent, on a connection that
 * had not been told to close, and no whole answer came.
 */
export type Outcome =
  | { readonly kind: 'answered'; readonly reply: Reply }
  | { readonly kind: 'refused' }
  | { readonly kind: 'lost'; readonly received: string; readonly requestsBefore: number }

export interface KeepAliveClient extends Disposable {
  /** One request at a time: the next one only once this one has its outcome. */
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

/** Runs `count` clients at once, each with a connection of its own, until all of them have come to an end. */
export function withClients(
  { port, key, count }: { readonly port: number; readonly key: string; readonly count: number },
  use: (client: KeepAliveClient, index: number) => Promise<void>,
): Promise<unknown> {
  const one = async (index: number) => {
    using client = keepAliveClient(port, key)
    await use(client, index)
  }
  const all = Promise.all(Array.from({ length: count }, (_, index) => one(index)))
  // Whoever awaits it hears of a failure. One that nobody awaits yet would end the test before its server was stopped.
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

/** The first whole answer in these bytes, and how many of them it takes. */
function replyIn(bytes: Buffer): { readonly reply: Reply; readonly length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const headers = new Headers()
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  const announced = headers.get('content-length')
  if (announced === null) throw new Error(`An answer without a Content-Length: ${statusLine}`)
  const start = headEnd + 4
  const length = start + Number(announced)
  if (bytes.length < length) return undefined
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(start, length))
  const closes = headers.get('connection')?.toLowerCase() === 'close'
  return { reply: { status: Number(statusLine.split(' ')[1]), headers, text, closes }, length }
}
