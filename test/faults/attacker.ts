// Attacks a server on 127.0.0.1 until its stdin ends: `bun attacker.ts '{"port":…}'`. It prints `connected` when it has
// opened as many connections as it holds, and each kind of response when it first gets one.
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
const printed = new Set<string>()
let opened = 0

/** `sent` counts the bytes of the present block. */
type State = { sent: number; received: string }

function print(what: string): void {
  if (!printed.has(what)) process.stdout.write(`${what}\n`)
  printed.add(what)
}

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

/** Prints the status and the code of the first response. */
function printResponse({ data: { received } }: Socket<State>): void {
  const [, status] = /^HTTP\/1.1 (\d+)/.exec(received) ?? []
  const [, code] = /"code":"(\w+)"/.exec(received) ?? []
  if (status) print(code ? `${status} ${code}` : status)
}

const handlers = {
  open(socket: Socket<State>) {
    if (++opened === connections) print('connected')
    socket.write(first)
    if (triesKeys) tryKey(socket)
    else send(socket)
  },
  drain: send,
  data(socket: Socket<State>, bytes: Buffer) {
    const { data: state } = socket
    if (state.received.length < shownCharsMax) state.received += bytes.toString('latin1')
    if (!triesKeys) return
    printResponse(socket)
    state.received = ''
    tryKey(socket)
  },
  close(socket: Socket<State>) {
    printResponse(socket)
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
for await (const _ of Bun.stdin.stream());
process.exit()
