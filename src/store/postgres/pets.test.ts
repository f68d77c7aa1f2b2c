import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { advance, settle, standingClock } from '../../../test/support/clock.ts'
import { IdsExhausted, StoreUnavailable } from '../../errors.ts'
import type { NewPet } from '../../pet.ts'
import type { Creation } from '../../store-contract.ts'
import { commitBatch, readTogether } from './pets.ts'

const named = (name: string): NewPet => ({ name, categoryId: 1n })
const created = (pet: NewPet): Creation => ({ outcome: 'created', pet: { ...pet, id: 1n } })

const refused = new IdsExhausted('no id is left')
const cause = new SQL.PostgresError('no lock', {
  code: 'ERR_POSTGRES_SERVER_ERROR',
  errno: '55P03',
  detail: '',
  hint: '',
})
const locked = new StoreUnavailable('locked', { cause })

test('a batch that did not get a lock is taken again, with the reason', async () => {
  const reasons: unknown[] = []
  const outcomes = await commitBatch(
    why => {
      reasons.push(why)
      return reasons.length < 3 ? [{ pet: named('a') }, { pet: named('b') }] : [{ pet: named('b') }]
    },
    async take => {
      const pets = take().map(({ pet }) => pet)
      if (reasons.length < 3) throw locked
      return pets.map(created)
    },
  )
  expect(reasons).toEqual([undefined, locked, locked])
  expect(outcomes).toEqual([{ result: created(named('b')), changed: true }])
})

test('of a batch that is sent one by one, the others wait no longer for a lock than the first', async () => {
  const sent: string[] = []
  const requests = ['a', 'b', 'c', 'd'].map(name => ({ pet: named(name) }))
  const outcomes = await commitBatch(
    () => requests,
    async take => {
      const pets = take().map(({ pet }) => pet)
      sent.push(pets.map(({ name }) => name).join(''))
      if (pets.length > 1) throw refused
      if (pets[0]?.name === 'b') throw locked
      return pets.map(created)
    },
  )
  expect(sent).toEqual(['abcd', 'a', 'b'])
  const [first, ...others] = outcomes
  expect(first).toMatchObject({ changed: true })
  expect(others).toEqual(Array(3).fill({ error: locked }))
})

test('after an error of the server, no animal of the batch is sent again', async () => {
  const down = new StoreUnavailable('no answer')
  let calls = 0
  const creating = commitBatch(
    () => Array(2).fill({ pet: { name: 'Rex', categoryId: 1n } }),
    async take => {
      take()
      calls++
      throw down
    },
  )
  expect(await creating.catch(cause => cause)).toBe(down)
  expect(calls).toBe(1)
})

test('look-ups wait for the statement before them, for a second at most if it hangs', async () => {
  using _ = standingClock()
  const statements: (readonly number[])[] = []
  const answers = [Promise.resolve(), Promise.withResolvers<void>().promise, Promise.resolve()]
  const lookUp = readTogether<number, string>(
    async ids => {
      statements.push(ids)
      await answers.shift()
      return new Map(ids.map(id => [id, `key ${id}`]))
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
