import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface LossyProxy extends AsyncDisposable {
  readonly port: number
  /** Connections that were taken so far. */
  readonly connections: number
}

/**
 * Stands between a client and a server, and passes on every byte; but on its first connections the answer is lost:
 * the server does its work, and the client sees the connection break.
 */
export async function startLossyProxy(port: number, answersLost: number): Promise<LossyProxy> {
  const open = new Set<Socket>()
  let connections = 0
  const proxy = createServer(client => {
    const loses = connections++ < answersLost
    const server = connect(port, '127.0.0.1')
    for (const socket of [client, server]) {
      open.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => open.delete(socket))
    }
    client.on('data', bytes => server.write(bytes))
    client.on('close', () => server.destroy())
    server.on('data', bytes => (loses ? client.destroy() : client.write(bytes)))
    server.on('close', () => client.destroy())
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  return {
    port: (proxy.address() as AddressInfo).port,
    get connections() {
      return connections
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise(resolve => proxy.close(resolve))
    },
  }
}
