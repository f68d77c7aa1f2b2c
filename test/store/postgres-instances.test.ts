import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import type { NewPet, PetStatus } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import type { PetStore } from '../../src/store-contract.ts'
import { animalBody, key, Load, serveFrom } from '../support/load.ts'
import { ask, describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { petstore, startServer, temporaryFolder } from '../support/process.ts'
import { closing, rex } from './contract.ts'

const instancesAtOnce = 8
const writers = 4
const rounds = 50

/** Adds several animals at once, some under an Idempotency-Key, in every round. */
async function write(name: string, pets: PetStore, onAdded: (id: bigint, pet: NewPet) => void) {
  const statuses = ['available', 'pending', 'sold', undefined] as const
  for (let number = 0; number < rounds; number++) {
    const status = statuses[number % 4]
    const pet: NewPet = { name, categoryId: BigInt(number), ...(status && { status }) }
    const atOnce = Array.from({ length: [1, 2, 1, 6, 1, 3, 1][number % 7] ?? 1 }, async (_, index) => {
      if (index % 3 === 0) return onAdded((await pets.create(pet)).id, pet)
      const creation = await pets.createOnce(pet, { scope: name, key: `${number} ${index}`, at: new Date() })
      if (creation.outcome !== 'created') throw new Error(`A new animal was ${creation.outcome}`)
      onAdded(creation.pet.id, pet)
    })
    await Promise.all(atOnce)
  }
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
    const sql = stack.use(new SQL(url, { max: 1, bigint: true }))
    const acknowledged = new Map<bigint, PetStatus | undefined>()
    const problems: string[] = []
    const onAdded = (id: bigint, { status }: NewPet) => {
      if (acknowledged.has(id)) problems.push(`${id} was assigned twice`)
      acknowledged.set(id, status)
    }
    let over = false
    const counting = (async () => {
      while (!over && problems.length === 0) {
        const [row] = await sql.unsafe('SELECT count(*) AS animals, coalesce(max(id), 0) AS last FROM pets')
        if (row.animals !== row.last) problems.push(`${row.animals} animals, but the last id is ${row.last}`)
      }
    })()
    const following = Promise.all([follow(first, () => over, 7), follow(second, () => over, 3, 'sold')])
    const names = Array.from({ length: writers }, (_, index) => `writer ${index}`)
    await Promise.all(names.map(async name => write(name, await open(), onAdded)))
    over = true
    await counting
    const [all, sold] = await following

    expect(problems).toEqual([])
    const ids = Array.from({ length: acknowledged.size }, (_, index) => BigInt(index + 1))
    expect(all).toEqual(ids)
    expect(sold).toEqual(ids.filter(id => acknowledged.get(id) === 'sold'))
    expect(ids.length).toBeGreaterThan(writers * rounds)
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
    const listed = await petstore(['keys', 'list', '--json'], options)
    expect(JSON.parse(listed.stdout)).toHaveLength(1)
  })

  test.concurrent('one that is stopped while it creates animals delays no other, and loses and doubles none', async () => {
    await using database = await sharedDatabase()
    await using one = await serveFrom(database.url)
    await using other = await serveFrom(database.url)
    const { pid, port } = one
    const load = new Load(port, key, 4)
    for (let round = 0; round < 20; round++) {
      await load.makesProgress(1 + ((round * 7) % 20))
      process.kill(pid, 'SIGSTOP')
      const headers = { authorization: `Bearer ${key}` }
      const sent = { method: 'POST', headers, body: animalBody(1_000_000 + round) }
      expect((await fetch(`${other.url}/pets`, sent)).status).toBe(201)
      process.kill(pid, 'SIGCONT')
    }
    await load.stop()
    expect(load.wrong).toEqual([])
    await using admin = new SQL(database.url, { max: 1 })
    const rows = await admin.unsafe('SELECT count(*)::int AS animals, count(DISTINCT name)::int AS names FROM pets')
    expect(rows[0].names).toBe(rows[0].animals)
  })
})
