import { connect, type Socket } from 'node:net'

export interface Reply {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** What came back on one connection. */
export interface Exchange {
  /** All of it, as it came. */
  readonly received: string
  readonly replies: readonly Reply[]
  /** The server closed the connection; else it stayed open and silent. */
  readonly closed: boolean
}

interface ExchangeOptions {
  /** How many replies are waited for; whatever else comes within `quietMs` after them is taken too. */
  readonly expected: number
  readonly quietMs?: number
  readonly waitMs?: number
  /** Sent after that where something was answered and the connection is still open; it may take a second. */
  readonly follower?: string
}

/** Sends the pieces as they are, one after another, on one connection, and gives back all that comes. */
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

/** Apart in time, so that they arrive apart. */
async function sendAll(socket: Socket, pieces: readonly string[]): Promise<void> {
  socket.setNoDelay(true)
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await Bun.sleep(20)
    if (socket.writable) socket.write(piece, 'latin1')
  }
}

/** The replies that are whole, one after another, each as long as its Content-Length says. */
export function repliesIn(text: string): readonly Reply[] {
  const replies: Reply[] = []
  let rest = text
  for (;;) {
    const [start, status] = /^HTTP\/1\.1 (\d{3})/.exec(rest) ?? []
    const headEnd = rest.indexOf('\r\n\r\n')
    if (start === undefined || headEnd === -1) return replies
    const head = rest.slice(0, headEnd)
    const bodyEnd = headEnd + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
    if (rest.length < bodyEnd) return replies
    replies.push({ status: Number(status), head, body: rest.slice(headEnd + 4, bodyEnd) })
    rest = rest.slice(bodyEnd)
  }
}
