import { afterEach, beforeEach, describe, expect, type Mock, spyOn, test } from 'bun:test'
import { advance, settle, standingClock } from '../../test/support/clock.ts'
import { createStream } from '../../test/support/stream.ts'
import { Fairness } from './fairness.ts'

const chunked = { 'transfer-encoding': 'chunked' }

describe('a tick', () => {
  let stack: DisposableStack
  let wall: Mock<typeof performance.now>
  let cpu: Mock<typeof process.threadCpuUsage>
  let fairness: Fairness
  let handled: number
  beforeEach(() => {
    stack = new DisposableStack()
    stack.use(standingClock())
    wall = stack.use(spyOn(performance, 'now'))
    cpu = stack.use(spyOn(process, 'threadCpuUsage'))
    passed(0)
    handled = 0
    fairness = new Fairness(async (_request, peers) => {
      handled++
      return new Response(peers.requestIP(new Request('http://a'))?.address)
    })
  })
  afterEach(async () => {
    // A request that waits for the next tick.
    await settle()
    stack.dispose()
  })

  /** How much time and CPU time have passed since the start of the tick. */
  function passed(ms: number, cpuMs = ms): void {
    wall.mockReturnValue(1_000 + ms)
    cpu.mockReturnValue({ user: 500 * cpuMs, system: 500 * cpuMs })
  }
  let isGone = false
  const peers = { requestIP: () => (isGone ? null : { address: '192.0.2.1' }) }
  const send = () => fairness.fetch(new Request('http://a/v1/pets'), peers)
  /** Whether a request is handled at once. */
  const isHandled = () => {
    const before = handled
    void send()
    return handled > before
  }

  test.each([
    [8, 8, true],
    [9, 9, false],
    // The machine has suspended the process.
    [5_000, 8, true],
  ])('of %d ms with %d ms of CPU time handles another request: %p', (ms, cpuMs, expected) => {
    expect(isHandled()).toBe(true)
    passed(ms, cpuMs)
    expect(isHandled()).toBe(expected)
  })

  test('begins again when a timer has fired', async () => {
    isHandled()
    passed(50)
    expect(isHandled()).toBe(false)
    await advance(4)
    expect([handled, isHandled()]).toEqual([2, true])
  })

  test('that is spent lets a request wait for the next one, with the address of a client that is gone by then', async () => {
    isHandled()
    passed(9)
    const response = send()
    isGone = true
    expect([handled, await (await response).text(), handled]).toEqual([1, '192.0.2.1', 2])
  })
})

describe('the rest of a body', () => {
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
  ])('%s is read, and the connection is then: %p', async (_what, connection, body) => {
    expect(await answer(body, chunked)).toBe(connection)
  })

  test.each([
    [511, null],
    [512, 'close'],
  ])('in %d small pieces, within 100 ms after one in more: the connection is then %p', async (pieces, connection) => {
    using _ = standingClock()
    const fairness = refusing()
    const send = (body: ReadableStream) => answer(body, chunked, fairness)
    expect(await send(createStream(Array(4_096).fill(1)))).toBe(null)
    await advance(99)
    expect(await send(createStream([...Array(3_000).fill(1_024), ...Array(pieces).fill(1_023)]))).toBe(connection)
    await advance(1)
    expect(await send(createStream(Array(4_096).fill(1)))).toBe(null)
  })

  test('that stalls is awaited for 5 s', async () => {
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
  ])('%s', async (_what, sent, given, connection, isRead) => {
    const body = createStream([10, 10, 10])
    expect([await answer(body, sent, refusing(given)), body.locked]).toEqual([connection, isRead])
  })

  test('that something else reads is left alone, and its connection has to be closed', async () => {
    const body = createStream([1])
    const fairness = new Fairness(async request => {
      request.body?.getReader()
      return new Response('', { status: 404 })
    })
    expect(await answer(body, chunked, fairness)).toBe('close')
  })
})
