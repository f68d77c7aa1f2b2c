// A TCP proxy that adds a round-trip time: delay.ts PORT TARGET_PORT MILLISECONDS
import { connect, createServer, type Socket } from 'node:net'

const [port, targetPort, roundTripMs] = process.argv.slice(2).map(Number)
// Timers count whole milliseconds: if the time is odd, the way back takes one more.
const thereMs = Math.floor((roundTripMs ?? 0) / 2)
const backMs = (roundTripMs ?? 0) - thereMs

/** Passes on what one side sends, chunk by chunk, each this much later. */
function forward(from: Socket, to: Socket, ms: number): void {
  const waiting: (() => void)[] = []
  const later = (action: () => void) => {
    if (ms === 0) return action()
    waiting.push(action)
    // Each timer runs the oldest action, so the order never changes.
    setTimeout(() => waiting.shift()?.(), ms)
  }
  from.setNoDelay(true)
  from.on('data', chunk => later(() => to.write(chunk)))
  from.on('close', () => later(() => to.destroy()))
  // 'close' follows.
  from.on('error', () => {})
}

createServer(client => {
  const target = connect(targetPort ?? 0, '127.0.0.1')
  forward(client, target, thereMs)
  forward(target, client, backMs)
}).listen(port, '127.0.0.1')
