import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { connect } from 'node:net'
import { type Exchange, exchange, type Reply } from '../support/connections.ts'
import { loggedBy, portOf, type Server, startServer, temporaryFolder, testMsMax } from '../support/process.ts'
import {
  animal,
  dropped,
  get,
  type MalformedRow,
  malformedKey,
  placeholderName,
  post,
  malformedRows as rows,
  sized,
  smuggledName,
} from './malformed-rows.ts'

setDefaultTimeout(testMsMax)

let folder: ReturnType<typeof temporaryFolder>
let server: Server
let port: number

beforeAll(async () => {
  folder = temporaryFolder()
  server = await startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: malformedKey } })
  port = portOf(server)
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

/** Sent on a connection that stayed open. No row gets the response that it gets. */
const follower = get('', '/v1/pets/0')
const followed = '404 pet_not_found'

function shown({ status, text }: Reply): string {
  if (text === '') return `${status} empty`
  return status < 400 ? String(status) : `${status} ${JSON.parse(text).code}`
}

function outcomeOf({ replies, closed }: Exchange): string {
  const answers = replies.map(shown)
  if (closed) return `${answers.join('; ') || 'nothing'}, closed`
  if (answers.at(-1) === followed) return `${answers.slice(0, -1).join('; ')}, open`
  return answers.length === 0 ? 'nothing, waiting' : `${answers.join('; ')}, stuck`
}

/** The number of replies in an outcome. */
function repliesOf(outcome: string): number {
  return outcome.startsWith('nothing') ? 0 : outcome.split('; ').length
}

function count(text: string, part: string): number {
  return text.split(part).length - 1
}

/** How many animals of this name are stored. */
async function kept(name: string): Promise<number> {
  const response = await server.fetch('/pets?limit=100', malformedKey)
  expect(response.status).toBe(200)
  const pets = (await response.json()) as readonly { readonly name: string }[]
  expect(pets.map(pet => pet.name)).not.toContain(smuggledName)
  return pets.filter(pet => pet.name === name).length
}

async function play([, bytes, ...outcomes]: MalformedRow, name: string, piecesMax: number): Promise<string> {
  const named = bytes.replaceAll(placeholderName, name)
  const pieceChars = Math.ceil(named.length / piecesMax)
  const pieces = Array.from({ length: Math.ceil(named.length / pieceChars) }, (_, index) =>
    named.slice(index * pieceChars, (index + 1) * pieceChars),
  )
  const expected = Math.max(...outcomes.map(repliesOf))
  return outcomeOf(await exchange(port, pieces, { expected, follower }))
}

/** Acknowledged animals are stored; others may be stored only if the reply could be lost. */
async function expectKept([, bytes, ...outcomes]: MalformedRow, name: string, outcome: string) {
  const acknowledged = count(outcome, '201')
  const atMost = outcomes.length > 1 ? count(bytes, placeholderName) : acknowledged
  expect(await kept(name)).toBeWithin(acknowledged, atMost + 1)
}

const nameOf = (prefix: string, index: number) => `${prefix}${index.toString(36).padStart(2, '0')}`

test.concurrent.each(rows.map((row, index) => [row[0], row, nameOf('w', index)] as const))(
  '%s: answered or closed as listed, nothing smuggled, and the next client is served',
  async (_, row, name) => {
    const [, , ...outcomes] = row
    const outcome = await play(row, name, 1)
    expect(outcomes).toContain(outcome)
    await expectKept(row, name, outcome)
  },
)

test('all rows at once, each arriving in pieces, have the same outcomes', async () => {
  const played = await Promise.all(rows.map((row, index) => play(row, nameOf('p', index), 8)))
  for (const [index, row] of rows.entries()) {
    const [what, , ...outcomes] = row
    const outcome = played[index] ?? ''
    // Bytes sent on a closed connection reset it, and the reset can overtake the response.
    const allowed = outcomes.some(one => one.endsWith('closed')) ? [...outcomes, dropped] : outcomes
    expect([what, allowed]).toEqual([what, expect.arrayContaining([outcome])])
    await expectKept(row, nameOf('p', index), outcome)
  }
})

/** Sends the bytes and closes this side of the connection, as `nc -N` does. */
function halfClosed(bytes: string): Promise<string> {
  return new Promise(resolve => {
    let received = ''
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => socket.end(bytes))
    socket.on('data', chunk => {
      received += chunk
    })
    socket.on('close', () => resolve(received))
    socket.on('end', () => socket.destroy())
  })
}

test('a client that closes its side after the request gets an answer to a GET, and none to a POST', async () => {
  expect(await halfClosed(get())).toStartWith('HTTP/1.1 200 ')
  expect(await halfClosed(post(sized(animal.length), animal))).toBe('')
})

test('a request pipelined behind the first /openapi.json is answered', async () => {
  using empty = temporaryFolder()
  await using fresh = await startServer({ cwd: empty.path, env: { PETSTORE_API_KEY: malformedKey } })
  const pipelined = get('', '/openapi.json') + get()
  const { replies } = await exchange(portOf(fresh), [pipelined], { expected: 2 })
  expect(replies.map(({ status }) => status)).toEqual([200, 200])
})

test('after all of that the server stops as usual', async () => {
  const stopped = await server.stop('SIGTERM')
  expect([stopped.exitCode, loggedBy(stopped)]).toEqual([0, ['info Stopping']])
  expect(stopped.stdout + stopped.stderr).not.toContain(malformedKey)
})
