// A TCP proxy to a server at a distance: responses take 5 ms longer. Arguments: its port, and the server's.
import { connect, createServer } from 'node:net'

const roundTripMs = 5
const [port, serverPort] = process.argv.slice(2).map(Number)

createServer(client => {
  const server = connect({ port: serverPort, host: '127.0.0.1', noDelay: true })
  client.setNoDelay().pipe(server)
  // Timers of the same duration fire in their order.
  server.on('data', chunk => setTimeout(() => client.write(chunk), roundTripMs))
  server.on('close', () => client.destroy())
  client.on('close', () => server.destroy())
  for (const socket of [client, server]) socket.on('error', () => {})
}).listen(port, '127.0.0.1')
