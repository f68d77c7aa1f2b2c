import { expect, spyOn, test } from 'bun:test'
import { advance, settle, standingClock } from '../../test/support/clock.ts'
import { createStream } from '../../test/support/stream.ts'
import { Fairness } from './fairness.ts'

const chunked = { 'transfer-encoding': 'chunked' }

test('beyond 8 ms of CPU time in a tick, a request waits for the next one; its client may be gone by then', async () => {
  using _ = standingClock()
  using wall = spyOn(performance, 'now')
  using cpu = spyOn(process, 'threadCpuUsage')
  let handled = 0
  const fairness = new Fairness(async (_request, peers) => {
    handled++
    return new Response(peers.requestIP(new Request('http://a'))?.address)
  })
  let isGone = false
  const peers = { requestIP: () => (isGone ? null : { address: '192.0.2.1' }) }
  const send = () => fairness.fetch(new Request('http://a/v1/pets'), peers)
  const isHandled = (ms: number, cpuMs: number) => {
    wall.mockReturnValue(ms)
    cpu.mockReturnValue({ user: 500 * cpuMs, system: 500 * cpuMs })
    const before = handled
    void send()
    return handled > before
  }
  // In the third one, the machine has suspended the process.
  expect([isHandled(0, 0), isHandled(8, 9), isHandled(5_000, 8), isHandled(9, 9)]).toEqual([true, true, true, false])
  const response = send()
  isGone = true
  expect([handled, await (await response).text(), handled]).toEqual([3, '192.0.2.1', 5])
  // A timer begins another tick.
  await advance(4)
  expect(isHandled(9, 9)).toBe(true)
})

const refusing = (given?: ResponseInit) => new Fairness(async () => new Response('', { status: 404, ...given }))
/** The Connection header of the response. */
async function answer(body: ReadableStream | null, sent: Record<string, string> = {}, fairness = refusing()) {
  const request = new Request('http://a/', { method: 'POST', body, headers: sent })
  const { headers } = await fairness.fetch(request, { requestIP: () => null })
  return headers.get('connection')
}

test.each<[string, string | null, ReadableStream | null]>([
  ['that ends', null, createStream([1, 2])],
  ['that is absent', 'close', null],
  ['of more than 16 MiB', 'close', createStream([...Array(16).fill(1024 ** 2), 1])],
  ['in more pieces', 'close', createStream(Array(4_097).fill(1))],
  ['that breaks off', 'close', createStream([1], 'fails')],
])('the rest of a body %s is read, and the connection is then: %p', async (_what, connection, body) => {
  expect(await answer(body, chunked)).toBe(connection)
})

test.each([
  [511, null],
  [512, 'close'],
])(
  'a rest in %d small pieces, within 100 ms after one in more: the connection is then %p',
  async (pieces, connection) => {
    using _ = standingClock()
    const fairness = refusing()
    const send = (body: ReadableStream) => answer(body, chunked, fairness)
    expect(await send(createStream(Array(4_096).fill(1)))).toBe(null)
    await advance(99)
    expect(await send(createStream([...Array(3_000).fill(1_024), ...Array(pieces).fill(1_023)]))).toBe(connection)
    await advance(1)
    expect(await send(createStream(Array(4_096).fill(1)))).toBe(null)
  },
)

test('the rest of a body that stalls is awaited for 5 s', async () => {
  using _ = standingClock()
  const answering = answer(createStream([1], 'stalls'), chunked)
  await settle()
  await advance(4_999)
  expect(Bun.peek.status(answering)).toBe('pending')
  await advance(1)
  expect(await answering).toBe('close')
})

const length = { 'content-length': '30' }
test.each<[string, Record<string, string>, ResponseInit, string | null, boolean]>([
  ['is read if the client closes the connection', { ...length, connection: 'Close' }, {}, 'close', true],
  ['is read if the server closes the connection', length, { headers: { connection: 'close' } }, 'close', true],
  ['is left to the runtime if its length is known', length, {}, null, false],
  ['is read in chunks even after a success', chunked, { status: 200 }, null, true],
  ['is complete after a success', { ...length, connection: 'close' }, { status: 200 }, null, false],
])('the rest of a body %s', async (_what, sent, given, connection, isRead) => {
  const body = createStream([10, 10, 10])
  expect([await answer(body, sent, refusing(given)), body.locked]).toEqual([connection, isRead])
})
