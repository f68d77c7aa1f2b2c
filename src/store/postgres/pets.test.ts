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
const noLock = { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '55P03', detail: '', hint: '' }
const locked = new StoreUnavailable('locked', { cause: new SQL.PostgresError('no lock', noLock) })

const unsent = { error: locked, mayRepeat: true }
const down = new StoreUnavailable('no answer')
const done = (name: string) => ({ result: created(named(name)), changed: true })

/** The failures are by the names of the animals that are sent at once. */
test.each<[string, failures: Record<string, unknown>, sent: string, outcomes: unknown[]]>([
  ['did not get a lock was not sent', { ab: locked }, 'ab', [unsent, unsent]],
  ['is refused is sent one by one', { ab: refused, a: refused }, 'ab a b', [{ error: refused }, done('b')]],
  ['ends at a lock', { abcd: refused, b: locked }, 'abcd a b', [done('a'), unsent, unsent, unsent]],
  ['loses its server is not sent again', { ab: down }, 'ab', [{ error: down }]],
])('a batch that %s', async (_, failures, expected, outcomes) => {
  const sent: string[] = []
  const send = async (take: () => readonly NewPet[]) => {
    const pets = take()
    const together = pets.map(({ name }) => name).join('')
    sent.push(together)
    if (together in failures) throw failures[together]
    return pets.map(created)
  }
  const [names = ''] = Object.keys(failures)
  const found = await commitBatch(() => [...names].map(named), send).catch(error => [{ error }])
  expect<unknown>([sent.join(' '), found]).toEqual([expected, outcomes])
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
