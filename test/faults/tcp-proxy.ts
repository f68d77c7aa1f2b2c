import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Forwards connections to a port of this machine. */
export async function startProxy(targetPort: number) {
  let target = targetPort
  const pairs = new Set<readonly [client: Socket, server: Socket]>()
  const server = createServer(client => {
    const pair = [client, connect(target, '127.0.0.1')] as const
    pairs.add(pair)
    for (const [from, to] of [pair, pair.toReversed() as [Socket, Socket]]) {
      from.pipe(to)
      from.on('error', () => {})
      from.on('close', () => {
        to.destroy()
        pairs.delete(pair)
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const end = () => {
    for (const socket of [...pairs].flat()) socket.destroy()
  }
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Packets on the connections that are open now get lost, in both directions. New connections work. */
    silence() {
      for (const socket of [...pairs].flat()) {
        socket.unpipe()
        socket.pause()
        socket.removeAllListeners('close')
      }
    },
    /** Ends all connections. New ones lead to another server. */
    leadTo(port: number) {
      target = port
      end()
    },
    async [Symbol.asyncDispose]() {
      end()
      server.close()
    },
  }
}
