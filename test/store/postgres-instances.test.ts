import { expect, test } from 'bun:test'
import type { Pet, PetStatus } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import type { PetStore } from '../../src/store-contract.ts'
import { ask, describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { startServer, temporaryFolder } from '../support/process.ts'
import { closing, rex } from './stores.ts'

const instancesAtOnce = 8
const writers = 4
const rounds = 50

/** Adds several animals at once in every round. */
async function write(pets: PetStore): Promise<readonly Pet[]> {
  const statuses = ['available', 'pending', 'sold', undefined] as const
  const added: Pet[] = []
  for (let round = 0; round < rounds; round++) {
    const status = statuses[round % 4]
    const pet = { ...rex, ...(status && { status }) }
    added.push(...(await Promise.all(Array.from({ length: 1 + (round % 6) }, () => pets.create(pet)))))
  }
  return added
}

/** Continues from the last animal seen until `isOver` and no more are found. */
async function follow(pets: PetStore, isOver: () => boolean, limit: number, status?: PetStatus) {
  const seen: bigint[] = []
  for (;;) {
    const over = isOver()
    const page = await pets.list({ limit, after: seen.at(-1) ?? 0n, ...(status && { status }) })
    seen.push(...page.pets.map(({ id }) => id))
    if (over && page.pets.length === 0) return seen
  }
}

describeWithPostgres('several instances on one PostgreSQL database', () => {
  test(`while ${writers} add animals, ids appear without gaps, so that a cursor of any instance finds every later animal`, async () => {
    await using stack = new AsyncDisposableStack()
    const { url } = stack.use(await sharedDatabase())
    const open = async () => stack.use(closing(await openStores(url, { create: true }))).pets
    const [first, second] = [await open(), await open()]
    let over = false
    const following = Promise.all([follow(first, () => over, 7), follow(second, () => over, 3, 'sold')])
    const added = (await Promise.all(Array.from({ length: writers }, async () => write(await open())))).flat()
    over = true
    const [all, sold] = await following
    expect(all).toEqual(added.map((_, index) => BigInt(index + 1)))
    const idsOf = (pets: readonly Pet[]) => pets.map(({ id }) => id).sort((a, b) => Number(a - b))
    expect(all).toEqual(idsOf(added))
    expect(sold).toEqual(idsOf(added.filter(({ status }) => status === 'sold')))
  })

  test('changes and removals of the same animals in opposite order do not wait for each other for ever', async () => {
    await using stack = new AsyncDisposableStack()
    const { url } = stack.use(await sharedDatabase())
    // Shorter than the time after which a batch gives up a lock and is sent again.
    await ask(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET deadlock_timeout = '10ms'`)
    const open = async () => stack.use(closing(await openStores(url, { create: true }))).pets
    const pets = await open()
    const instances = [pets, await open()]
    const ids = await Promise.all(Array.from({ length: rounds }, async () => (await pets.create(rex)).id))
    const removed: unknown[] = []
    for (let round = 0; round < rounds; round++) {
      const changing = instances.map((instance, index) => {
        const ordered = index === 0 ? ids : ids.toReversed()
        const remove = async (id: bigint) => removed.push((await instance.remove(id)).outcome)
        return ordered.map(id => (id === ids[round] ? remove(id) : instance.update(id, { name: `${index}` })))
      })
      await Promise.all(changing.flat())
    }
    expect(removed.toSorted()).toEqual([...Array(rounds).fill('changed'), ...Array(rounds).fill('no-such-pet')])
    expect(await pets.list({ limit: 1 })).toEqual({ pets: [], more: false })
  })

  test.concurrent(`${instancesAtOnce} started at once on an empty database migrate it once, and create one first key`, async () => {
    await using stack = new AsyncDisposableStack()
    const { url } = stack.use(await sharedDatabase())
    // Few connections each: many servers allow 100.
    const env = { DATABASE_URL: url, PETSTORE_DATABASE_POOL: '2' }
    const options = { cwd: stack.use(temporaryFolder()).path, env }
    const started = Array.from({ length: instancesAtOnce }, () => startServer(options))
    // Stops those that have started even if another one has not.
    const outcomes = await Promise.allSettled(started)
    for (const outcome of outcomes) if (outcome.status === 'fulfilled') stack.use(outcome.value)
    const servers = await Promise.all(started)
    const firstKeys = servers.flatMap(({ stdout }) => /API key +(pets_\w+)/.exec(stdout)?.[1] ?? [])
    expect(firstKeys).toHaveLength(1)
    const responses = await Promise.all(servers.map(server => server.fetch('/pets', firstKeys[0] ?? '')))
    expect(responses.map(({ status }) => status)).toEqual(Array(instancesAtOnce).fill(200))
  })
})
