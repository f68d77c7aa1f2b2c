// Attacks a server on 127.0.0.1 from a process of its own: `bun attacker.ts '{"port":…}'`. When its stdin ends, or after
// a minute, it prints how many connections got which first response, and ends. For keys that it tried, it counts every
// response.
import type { Socket } from 'bun'
import { generateApiKey } from '../../src/api-key.ts'

/**
 * What an attacker does on each connection: it sends `first`, and then `endless` again and again. Or it tries a random
 * key of the correct form after each response.
 */
export interface Attack {
  readonly connections: number
  readonly first?: string
  readonly endless?: string
  readonly triesKeys?: boolean
}

const { port, ...attack }: Attack & { readonly port: number } = JSON.parse(process.argv[2] ?? '')
const { connections, first = '', endless = '', triesKeys = false } = attack
const blockBytes = 100_000
const block = Buffer.from(endless.repeat(Math.ceil(blockBytes / (endless.length || blockBytes))))
const shownCharsMax = 2_000
const responses: Record<string, number> = {}

/** `sent` counts the bytes of the present block. */
type State = { sent: number; received: string }

function send(socket: Socket<State>): void {
  const { data: state } = socket
  for (let written = block.length; written > 0; ) {
    written = socket.write(block.subarray(state.sent))
    state.sent = (state.sent + Math.max(0, written)) % block.length
  }
}

function tryKey(socket: Socket<State>): void {
  socket.write(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${generateApiKey()}\r\n\r\n`)
}

function count({ data: { received } }: Socket<State>): void {
  const [, status = 'none'] = /^HTTP\/1.1 (\d+)/.exec(received) ?? []
  const [, code] = /"code":"(\w+)"/.exec(received) ?? []
  const response = code ? `${status} ${code}` : status
  responses[response] = (responses[response] ?? 0) + 1
}

const handlers = {
  open(socket: Socket<State>) {
    socket.write(first)
    if (triesKeys) tryKey(socket)
    else send(socket)
  },
  drain: send,
  data(socket: Socket<State>, bytes: Buffer) {
    const { data: state } = socket
    if (state.received.length < shownCharsMax) state.received += bytes.toString('latin1')
    if (!triesKeys) return
    count(socket)
    state.received = ''
    tryKey(socket)
  },
  close(socket: Socket<State>) {
    count(socket)
    connect()
  },
  error() {},
}

/** Opens a connection, and another one when it is closed. */
function connect(): void {
  const data = { sent: 0, received: '' }
  Bun.connect({ hostname: '127.0.0.1', port, data, socket: handlers }).catch(() => setTimeout(connect, 1))
}

for (let i = 0; i < connections; i++) connect()
setTimeout(end, 60_000)
for await (const _ of Bun.stdin.stream());
end()

function end(): never {
  process.stdout.write(JSON.stringify(responses))
  process.exit()
}
