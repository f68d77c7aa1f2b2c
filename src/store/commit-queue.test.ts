import { expect, spyOn, test } from 'bun:test'
import { advance, settle, standingClock } from '../../test/support/clock.ts'
import { StoreUnavailable } from '../errors.ts'
import { CommitQueue, type Outcome, WriteHealth, writeMsMax, writesWaitingMax } from './commit-queue.ts'

/** A queue of numbers whose commits wait until the test finishes them: with their numbers, or an error. */
function testQueue() {
  const health = new WriteHealth()
  const commits: (PromiseWithResolvers<readonly Outcome<number>[]> & { take(): readonly number[] })[] = []
  const commit = (take: () => readonly number[]) => {
    commits.push({ ...Promise.withResolvers(), take })
    return (commits.at(-1) as (typeof commits)[number]).promise
  }
  const queue = new CommitQueue<number, number>({ commit, kindOf: () => 'pets', health })
  /** Sends what waits and finishes it. Returns what it was. */
  const commitNext = () => {
    const { take, resolve } = commits.shift() as (typeof commits)[number]
    const batch = take()
    resolve(batch.map(done))
    return batch
  }
  return { queue, commits, commitNext, health }
}

const done = (result: number) => ({ result, changed: true })
const numbers = (count: number) => Array.from({ length: count }, (_, number) => number)
const nextTick = () => new Promise(setImmediate)

test('writes of one tick are one batch, and those that arrive during its commit are the next one', async () => {
  const { queue, commits, commitNext } = testQueue()
  const first = numbers(20).map(number => queue.add(number))
  expect(queue.writesWaiting).toBe(20)
  await nextTick()
  const batch = commits[0]?.take() ?? []
  expect(batch).toEqual(numbers(20))
  const second = [queue.add(20), queue.add(21)]
  await nextTick()
  expect(commits).toHaveLength(1)
  commits.shift()?.resolve(batch.map(done))
  expect(await Promise.all(first)).toEqual(numbers(20))
  expect(commitNext()).toEqual([20, 21])
  expect(await Promise.all(second)).toEqual([20, 21])
  expect(queue.writesWaiting).toBe(0)
})

test('a write that fails rejects alone; a commit that fails rejects what was sent, or all that waits', async () => {
  const { queue, commits, commitNext, health } = testQueue()
  const writes = numbers(3).map(number => queue.add(number).catch(String))
  await nextTick()
  commits[0]?.take()
  commits.shift()?.resolve([done(0), { error: 'refused' }, { result: 2, changed: false }])
  expect(await Promise.all(writes)).toEqual([0, 'refused', 2])
  expect(health.isGood).toBe(false)
  for (const send of [true, false]) {
    const write = queue.add(1).catch(String)
    await nextTick()
    if (send) commits[0]?.take()
    commits.shift()?.reject(new Error('no connection'))
    expect(await write).toBe('Error: no connection')
  }
  const write = queue.add(2)
  await nextTick()
  commitNext()
  expect(await write).toBe(2)
})

test('a write that was not sent within its time is refused, and never sent', async () => {
  using _ = standingClock()
  const { queue, commits, commitNext, health } = testQueue()
  const early = queue.add(1).catch(error => error)
  await advance(writeMsMax - 1)
  const late = queue.add(2)
  expect(Bun.peek.status(early)).toBe('pending')
  await advance(1)
  expect(await early).toBeInstanceOf(StoreUnavailable)
  expect(health.isGood).toBe(false)
  expect(commits).toHaveLength(1)
  expect(commitNext()).toEqual([2])
  expect(await late).toBe(2)
})

const error = new StoreUnavailable('locked')
const unsent = { error, mayRepeat: true } as const

test('a write that was sent is awaited, and one that comes back unsent is sent again or, at its time, refused', async () => {
  using _ = standingClock()
  const { queue, commits, commitNext } = testQueue()
  const writes = [queue.add(1), queue.add(2).catch(cause => cause)]
  await settle()
  expect(commits[0]?.take()).toEqual([1, 2])
  await advance(writeMsMax - 1)
  const other = queue.add(3)
  commits.shift()?.resolve([done(1), unsent])
  await settle()
  expect(commits[0]?.take()).toEqual([2, 3])
  await advance(1)
  expect(Bun.peek.status(writes[1] as Promise<number>)).toBe('pending')
  commits.shift()?.resolve([unsent, unsent])
  await settle()
  expect(commitNext()).toEqual([3])
  expect(await Promise.all([...writes, other])).toEqual([1, error, 3])
})

test('a write that comes back unsent is refused at its time, even if no commit can begin', async () => {
  using _ = standingClock()
  const { queue, commits, commitNext } = testQueue()
  const first = queue.add(1)
  await settle()
  commitNext()
  await first
  await advance(1_000)
  const late = queue.add(2).catch(cause => cause)
  await settle()
  commits[0]?.take()
  // The timer of the first write has ended by now.
  await advance(writeMsMax - 500)
  commits.shift()?.resolve([unsent])
  await settle()
  await advance(500)
  expect(Bun.peek.status(late)).toBe('fulfilled')
})

test('the store takes writes until one fails, and again after a change of that kind, a creation or two minutes', () => {
  const health = new WriteHealth()
  const isGoodAfter = (failed: 'pets' | 'others', changed: 'pets' | 'others') => {
    health.noteFailure(failed)
    expect(health.isGood).toBe(false)
    health.noteChange(changed)
    return health.isGood
  }
  expect([health.isGood, isGoodAfter('pets', 'others'), isGoodAfter('pets', 'pets')]).toEqual([true, false, true])
  expect([isGoodAfter('others', 'others'), isGoodAfter('others', 'pets')]).toEqual([true, true])
  health.noteFailure('pets')
  using _ = spyOn(performance, 'now').mockReturnValue(performance.now() + 120_000)
  expect(health.isGood).toBe(true)
})

test('writes beyond the limit are refused at once, all others are made, and batches are bounded', async () => {
  const { queue, commitNext } = testQueue()
  const writes = numbers(writesWaitingMax).map(number => queue.add(number))
  await expect(queue.add(0)).rejects.toBeInstanceOf(StoreUnavailable)
  for (let batch = 0; batch < 2; batch++) {
    await nextTick()
    expect(commitNext()).toHaveLength(512)
  }
  expect(await Promise.all(writes)).toEqual(numbers(writesWaitingMax))
})

test('closing refuses new writes and waits for the others', async () => {
  const { queue, commitNext } = testQueue()
  const write = queue.add(0)
  const closing = queue.close()
  expect(await queue.add(1).catch(error => error)).toBeInstanceOf(StoreUnavailable)
  await nextTick()
  expect(Bun.peek.status(closing)).toBe('pending')
  commitNext()
  expect(await write).toBe(0)
  await closing
})
