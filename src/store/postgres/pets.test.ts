import { expect, test } from 'bun:test'
import { advance, settle, standingClock } from '../../../test/support/clock.ts'
import { IdsExhausted, StoreUnavailable } from '../../errors.ts'
import type { NewPet } from '../../pet.ts'
import type { Creation } from '../../store.ts'
import { WriteHealth } from '../commit-queue.ts'
import { batchedCreations, readTogether } from './pets.ts'
import { workMsMax } from './server.ts'

const named = (name: string): NewPet => ({ name, categoryId: 1n })
const created = (pet: NewPet): Creation => ({ outcome: 'created', pet: { ...pet, id: 1n } })

test('after an error of one animal, the animals of the batch are created one by one', async () => {
  const health = new WriteHealth()
  const creations = batchedCreations(async choose => {
    const requests = choose()
    if (requests.some(({ pet }) => pet.name === 'b')) throw new IdsExhausted('no id is left')
    return requests.map(({ pet }) => created(pet))
  }, health)
  const outcomes = await Promise.allSettled(['a', 'b', 'c'].map(name => creations.add(named(name))))
  expect(outcomes).toMatchObject([
    { value: created(named('a')) },
    { reason: expect.any(IdsExhausted) },
    { value: created(named('c')) },
  ])
  expect(creations.queue.activity().commitSizes.sum).toBe(2)
})

test('an error of the server fails the whole batch at once', async () => {
  let calls = 0
  const health = new WriteHealth()
  const creations = batchedCreations(async choose => {
    choose()
    calls++
    throw new StoreUnavailable('no answer')
  }, health)
  const outcomes = await Promise.allSettled(['a', 'b'].map(name => creations.add(named(name))))
  expect(outcomes).toMatchObject(Array(2).fill({ reason: expect.any(StoreUnavailable) }))
  expect(calls).toBe(1)
})

test('an animal that waits too long is refused, and never created', async () => {
  using _ = standingClock()
  const names: string[] = []
  const commit = Promise.withResolvers<void>()
  const health = new WriteHealth()
  const creations = batchedCreations(async choose => {
    const requests = choose()
    names.push(...requests.map(({ pet }) => pet.name))
    await commit.promise
    return requests.map(({ pet }) => created(pet))
  }, health)
  const first = creations.add(named('a')).catch(error => error)
  await settle()
  const second = creations.add(named('b')).catch(error => error)
  await advance(workMsMax)
  expect([await first, await second]).toEqual([expect.any(StoreUnavailable), expect.any(StoreUnavailable)])
  expect(health.isGood).toBe(false)
  commit.resolve()
  await creations.queue.close()
  expect(names).toEqual(['a'])
})

test('an animal that waits too long for a connection is refused, and never sent', async () => {
  using _ = standingClock()
  const connection = Promise.withResolvers<void>()
  let sent: readonly unknown[] | undefined
  const health = new WriteHealth()
  const creations = batchedCreations(async choose => {
    await connection.promise
    sent = choose()
    return []
  }, health)
  const adding = creations.add(named('a')).catch(error => error)
  await settle()
  await advance(workMsMax)
  expect(await adding).toBeInstanceOf(StoreUnavailable)
  connection.resolve()
  await creations.queue.close()
  expect(sent).toEqual([])
})

test('look-ups wait for the statement before them, for a second at most if it hangs', async () => {
  using _ = standingClock()
  const statements: (readonly number[])[] = []
  const answers = [Promise.resolve(), Promise.withResolvers<void>().promise, Promise.resolve()]
  const lookUp = readTogether<number, string>(
    (ids, found) => {
      statements.push(ids)
      for (const id of ids) found(id, `key ${id}`)
      return answers.shift() ?? Promise.resolve()
    },
    { aloneMs: 1_000 },
  )
  expect(await Promise.all([lookUp(1), lookUp(1), lookUp(2)])).toEqual(['key 1', 'key 1', 'key 2'])
  lookUp(3)
  await settle()
  const waiting = [lookUp(4), lookUp(5)]
  await advance(999)
  expect(statements).toEqual([[1, 2], [3]])
  await advance(1)
  expect(await Promise.all(waiting)).toEqual(['key 4', 'key 5'])
  expect(statements).toEqual([[1, 2], [3], [4, 5]])
})
