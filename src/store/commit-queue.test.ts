import { expect, spyOn, test } from 'bun:test'
import { StoreUnavailable } from '../errors.ts'
import { type BatchResult, CommitQueue, type CommitQueueOptions, writesWaitingMax } from './commit-queue.ts'

/** A queue of numbers whose commits wait until the test finishes them. */
function testQueue(options?: CommitQueueOptions) {
  const batches: { batch: readonly number[]; finish(result?: Partial<BatchResult<number>>): void }[] = []
  const queue = new CommitQueue<number, number>(batch => {
    const { promise, resolve } = Promise.withResolvers<BatchResult<number>>()
    batches.push({ batch, finish: result => resolve({ values: batch, ...result }) })
    return promise
  }, options)
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
  batches[0]?.finish({ errors: new Map([[1, 'refused']]) })
  expect(await Promise.all(writes)).toEqual([0, 'refused', 2])
  expect(queue.activity().commitSizes.sum).toBe(2)
})

test('after an error of one write, the batch is committed one by one', async () => {
  const queue = new CommitQueue<number, number>(
    async batch => {
      if (batch.includes(1)) throw new Error('1 is refused')
      return { values: batch }
    },
    { retrySingly: error => String(error).includes('refused') },
  )
  const writes = numbers(3).map(number => queue.add(number).catch(String))
  expect(await Promise.all(writes)).toEqual([0, 'Error: 1 is refused', 2])
  expect(queue.activity().commitSizes.counts[0]).toBe(2)
})

test('a write that waits too long rejects, and is never committed', async () => {
  const { queue, batches, sizes } = testQueue({ timeoutMs: 20 })
  const committing = queue.add(0).catch(error => error)
  await nextTick()
  expect(await queue.add(1).catch(error => error)).toBeInstanceOf(StoreUnavailable)
  expect(await committing).toBeInstanceOf(StoreUnavailable)
  batches[0]?.finish()
  await nextTick()
  expect(queue.activity().writesWaiting).toBe(0)
  expect(sizes()).toEqual([1])
})

test('the store is writable until a whole batch fails, and again when a write succeeds', async () => {
  let failing: number[] = []
  const queue = new CommitQueue<number, number>(
    async batch => {
      if (failing.length > 2) throw new Error('down')
      return { values: batch, errors: new Map(failing.map(index => [index, new Error('refused')])) }
    },
    { timeoutMs: 1_000 },
  )
  const isWritableAfter = async (...indexes: number[]) => {
    failing = indexes
    await Promise.allSettled([queue.add(0), queue.add(1)])
    return queue.activity().isWritable
  }
  expect(queue.activity().isWritable).toBe(true)
  expect(await isWritableAfter(0)).toBe(true)
  expect(await isWritableAfter(0, 1)).toBe(false)
  expect(await isWritableAfter(1)).toBe(true)
  expect(await isWritableAfter(0, 1, 2)).toBe(false)
  expect(await isWritableAfter()).toBe(true)
  const stuck = new CommitQueue<number, number>(() => new Promise(() => {}), { timeoutMs: 1 })
  await stuck.add(0).catch(() => {})
  expect(stuck.activity().isWritable).toBe(false)
  // A failure of long ago says nothing about now.
  using _ = spyOn(performance, 'now').mockReturnValue(performance.now() + 120_000)
  expect(stuck.activity().isWritable).toBe(true)
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
