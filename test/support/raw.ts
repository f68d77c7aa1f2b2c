import { connect } from 'node:net'

/**
 * Sends bytes as they are, for what no HTTP client would send, and gives back all that came until the server closed
 * the connection or stayed silent for `quietMs`.
 */
export function sendRaw(port: number, bytes: string | Uint8Array, quietMs = 300): Promise<string> {
  return new Promise(resolve => {
    const received: Buffer[] = []
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    const end = () => {
      socket.destroy()
      resolve(Buffer.concat(received).toString('latin1'))
    }
    socket.setTimeout(quietMs, end)
    socket.on('data', chunk => received.push(Buffer.from(chunk)))
    // A reset after the answer is how a server refuses to read on.
    socket.on('error', end)
    socket.on('close', end)
  })
}
