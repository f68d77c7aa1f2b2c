import { afterEach, beforeEach, describe, expect, type Mock, spyOn, test } from 'bun:test'
import { advance, standingClock } from '../../test/support/clock.ts'
import { IncomingRequest } from './request.ts'
import { TickBudget } from './tick-budget.ts'

let stack: DisposableStack
let wall: Mock<typeof performance.now>
let cpu: Mock<typeof process.threadCpuUsage>
let budget: TickBudget
beforeEach(() => {
  stack = new DisposableStack()
  stack.use(standingClock())
  wall = stack.use(spyOn(performance, 'now'))
  cpu = stack.use(spyOn(process, 'threadCpuUsage'))
  passed(0)
  budget = new TickBudget()
})
afterEach(() => stack.dispose())

/** How much time and CPU time have passed since the start of the tick. */
function passed(ms: number, cpuMs = ms): void {
  wall.mockReturnValue(1_000 + ms)
  cpu.mockReturnValue({ user: 500 * cpuMs, system: 500 * cpuMs })
}
const request = (init: RequestInit = {}) => new IncomingRequest(new Request('http://a/v1/pets', init), undefined)
const isSpent = () => budget.isSpent(request())
const inChunks = { headers: { 'transfer-encoding': 'chunked' } }

describe('after the first 500 requests, a tick', () => {
  beforeEach(() => {
    for (let i = 0; i < 500; i++) expect(isSpent()).toBe(false)
  })

  test.each([
    [10, 10, false],
    [11, 11, true],
    // The machine has suspended the process.
    [5_000, 10, false],
  ])('of %d ms with %d ms of CPU time is spent: %p', (ms, cpuMs, expected) => {
    passed(ms, cpuMs)
    expect(isSpent()).toBe(expected)
  })

  test('begins again when a timer has fired', async () => {
    passed(50)
    expect(isSpent()).toBe(true)
    await advance(5)
    expect(isSpent()).toBe(false)
  })
})

test('at first, a tick may take 100 ms', () => {
  expect(isSpent()).toBe(false)
  passed(100)
  expect(isSpent()).toBe(false)
  passed(101)
  expect(isSpent()).toBe(true)
})

test.each([
  ['a request without a body', 400, {}, false],
  ['a chunked body', 300, { ...inChunks, method: 'POST', body: '{}' }, false],
  ['a chunked body, after 300 ms', 301, { ...inChunks, method: 'POST', body: '{}' }, true],
  ['a chunked request without a body that can be read', 400, inChunks, false],
])('%s has to be refused: %d ms, %j, %p', async (_what, ms, init, isRefused) => {
  isSpent()
  passed(ms)
  expect(await budget.defer(request(init))).toBe(!isRefused)
})

test('the server has patience once a second', () => {
  expect([budget.takePatience(), budget.takePatience()]).toEqual([true, false])
  passed(999)
  expect(budget.takePatience()).toBe(false)
  passed(1_000)
  expect(budget.takePatience()).toBe(true)
})
