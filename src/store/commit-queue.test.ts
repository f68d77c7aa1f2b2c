import { expect, spyOn, test } from 'bun:test'
import { StoreUnavailable } from '../errors.ts'
import { CommitQueue, type QueuedWrite, WriteHealth, writesWaitingMax } from './commit-queue.ts'

/** Resolves the writes with their numbers, except those that are refused. */
function settle(batch: readonly QueuedWrite<number, number>[], refused: readonly number[] = []): number {
  for (const { write, resolve, reject } of batch) refused.includes(write) ? reject('refused') : resolve(write)
  return batch.length - refused.length
}

/** A queue of numbers whose commits wait until the test finishes them. */
function testQueue() {
  const batches: { batch: readonly number[]; finish(refused?: readonly number[]): void }[] = []
  const queue = new CommitQueue<number, number>(batch => {
    const { promise, resolve } = Promise.withResolvers<number>()
    batches.push({ batch: batch.map(({ write }) => write), finish: refused => resolve(settle(batch, refused)) })
    return promise
  })
  return { queue, batches, sizes: () => batches.map(({ batch }) => batch.length) }
}

const nextTick = () => new Promise(setImmediate)
const numbers = (count: number) => Array.from({ length: count }, (_, number) => number)

test('writes of one tick are one batch, and those that arrive during its commit are the next one', async () => {
  const { queue, batches } = testQueue()
  const first = numbers(20).map(number => queue.add(number))
  await nextTick()
  const second = [queue.add(20), queue.add(21)]
  await nextTick()
  expect(batches.map(({ batch }) => batch)).toEqual([numbers(20)])
  expect(queue.activity().writesWaiting).toBe(22)
  batches[0]?.finish()
  expect(await Promise.all(first)).toEqual(numbers(20))
  batches[1]?.finish()
  expect(await Promise.all(second)).toEqual([20, 21])
  expect(queue.activity().writesWaiting).toBe(0)
  expect(queue.activity().commitSizes.sum).toBe(22)
})

test('a write that fails rejects alone, and is not counted', async () => {
  const { queue, batches } = testQueue()
  const writes = numbers(3).map(number => queue.add(number).catch(String))
  await nextTick()
  batches[0]?.finish([1])
  expect(await Promise.all(writes)).toEqual([0, 'refused', 2])
  expect(queue.activity().commitSizes.sum).toBe(2)
})

test('the store takes writes until one fails, and again after a change of that kind, a creation or two minutes', () => {
  const health = new WriteHealth()
  expect(health.isGood).toBe(true)
  for (const [failed, changed, isGood] of [
    ['pets', 'others', false],
    ['pets', 'pets', true],
    ['others', 'others', true],
    ['others', 'pets', true],
  ] as const) {
    health.noteFailure(failed)
    expect(health.isGood).toBe(false)
    health.noteChange(changed)
    expect(health.isGood).toBe(isGood)
  }
  health.noteFailure('pets')
  using _ = spyOn(performance, 'now').mockReturnValue(performance.now() + 120_000)
  expect(health.isGood).toBe(true)
})

test('writes beyond the limit are refused at once, all others are made, and batches are bounded', async () => {
  const { queue, batches, sizes } = testQueue()
  const writes = numbers(writesWaitingMax).map(number => queue.add(number))
  expect(await queue.add(0).catch(error => error)).toBeInstanceOf(StoreUnavailable)
  await nextTick()
  for (let index = 0; index < 2; index++, await nextTick()) batches[index]?.finish()
  expect(await Promise.all(writes)).toEqual(numbers(writesWaitingMax))
  expect(sizes()).toEqual([512, 512])
})

test('closing refuses new writes and waits for the others', async () => {
  const { queue, batches } = testQueue()
  const write = queue.add(0)
  const closing = queue.close()
  expect(await queue.add(1).catch(error => error)).toBeInstanceOf(StoreUnavailable)
  await nextTick()
  expect(Bun.peek.status(closing)).toBe('pending')
  batches[0]?.finish()
  expect(await write).toBe(0)
  await closing
})
