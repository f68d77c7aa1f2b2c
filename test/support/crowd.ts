import { connect } from 'node:net'

/** Many connections to 127.0.0.1 that all do the same: `using crowd = await openCrowd(…)`. */
export interface Crowd extends Disposable {
  /** How many the server has not closed. */
  readonly open: number
  /** What each has received so far. */
  readonly received: readonly string[]
  /** Sends to those that are still open. */
  send(text: string): void
}

interface Connection {
  received: string
  closed: boolean
}

/** Opens them all, and sends `first` on each. */
export async function openCrowd(port: number, size: number, first = ''): Promise<Crowd> {
  const connections = Array.from({ length: size }, (): Connection => ({ received: '', closed: false }))
  const sockets = connections.map(connection => {
    const socket = connect(port, '127.0.0.1')
    socket.on('data', chunk => {
      connection.received += chunk.toString('latin1')
    })
    // Being cut off, with a reset or without, is what some of them are here for.
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
