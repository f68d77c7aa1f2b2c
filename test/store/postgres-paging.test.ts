import { expect, setDefaultTimeout, test } from 'bun:test'
import { SQL } from 'bun'
import type { NewPet, PetStatus } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import type { PetStore } from '../../src/store.ts'
import { describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const writers = 4
const writingMs = 4_000

const pick = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T
const ascending = (ids: Iterable<bigint>) => [...ids].sort((a, b) => (a < b ? -1 : 1))

/** Adds animals, some with an idempotency key, until `isOver`. Calls `onAdded` for each acknowledged one. */
async function write(name: string, pets: PetStore, isOver: () => boolean, onAdded: (id: bigint, pet: NewPet) => void) {
  for (let number = 0; !isOver(); number++) {
    const status = pick(['available', 'pending', 'sold', undefined] as const)
    const pet: NewPet = { name, categoryId: BigInt(number), ...(status && { status }) }
    const atOnce = Array.from({ length: 1 + Math.floor(Math.random() ** 3 * 6) }, async (_, index) => {
      if (index % 3 === 0) return onAdded((await pets.create(pet)).id, pet)
      const creation = await pets.createOnce(pet, { scope: name, key: `${number} ${index}`, at: new Date() })
      if (creation.outcome !== 'created') throw new Error(`A new animal was ${creation.outcome}`)
      onAdded(creation.pet.id, pet)
    })
    await Promise.all(atOnce)
  }
}

/** Walks to the last page, and returns the animals that were acknowledged before it began but are not on it. */
async function missedOnWalk(pets: PetStore, acknowledged: ReadonlyMap<bigint, PetStatus | undefined>) {
  const limit = pick([1, 2, 7, 20, 100])
  const status = pick([undefined, undefined, 'available', 'pending', 'sold'] as const)
  const known = [...acknowledged.keys()]
  // Small pages begin near the end, where animals are being added.
  const start = limit < 20 ? (ascending(known).at(-1) ?? 0n) - 150n : 0n
  const expected = known.filter(id => id > start && (status === undefined || acknowledged.get(id) === status))
  const seen = new Set<bigint>()
  let after = start
  for (let more = true; more; ) {
    const page = await pets.list({ limit, after, ...(status && { status }) })
    for (const { id } of page.pets) seen.add(id)
    after = page.pets.at(-1)?.id ?? after
    more = page.more
  }
  return expected.filter(id => !seen.has(id)).map(id => `${id}, limit ${limit}, status ${status}`)
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

describeWithPostgres('pages of a PostgreSQL store', () => {
  test(`while ${writers} instances add animals, no walk misses an earlier one, and a cursor finds every later one`, async () => {
    await using stack = new AsyncDisposableStack()
    const { url } = stack.use(await sharedDatabase())
    const open = async () => {
      const stores = await openStores(url, { create: true })
      stack.defer(() => stores.close())
      return stores.pets
    }
    const [first, second] = [await open(), await open()]
    const sql = stack.use(new SQL(url, { max: 1, bigint: true }))
    const acknowledged = new Map<bigint, PetStatus | undefined>()
    const found = { missed: [] as string[], gaps: [] as string[], duplicates: [] as bigint[] }
    const onAdded = (id: bigint, { status }: NewPet) => {
      if (acknowledged.has(id)) found.duplicates.push(id)
      acknowledged.set(id, status)
    }
    const endMs = performance.now() + writingMs
    let over = false
    let walks = 0
    const writing = Array.from({ length: writers }, async (_, index) =>
      write(`writer ${index}`, await open(), () => performance.now() > endMs, onAdded),
    )
    const walking = [first, second].map(async pets => {
      while (!over && found.missed.length === 0) {
        found.missed.push(...(await missedOnWalk(pets, acknowledged)))
        walks += 1
      }
    })
    const counting = (async () => {
      while (!over && found.gaps.length === 0) {
        const [row] = await sql.unsafe('SELECT count(*) AS animals, coalesce(max(id), 0) AS last FROM pets')
        if (row.animals !== row.last) found.gaps.push(`${row.animals} animals, but the last id is ${row.last}`)
      }
    })()
    const following = Promise.all([follow(first, () => over, 7), follow(second, () => over, 3, 'sold')])
    await Promise.all(writing)
    over = true
    await Promise.all([...walking, counting])
    const [all, sold] = await following

    expect(found).toEqual({ missed: [], gaps: [], duplicates: [] })
    const ids = ascending(acknowledged.keys())
    expect(ids).toEqual(ids.map((_, index) => BigInt(index + 1)))
    expect(all).toEqual(ids)
    expect(sold).toEqual(ids.filter(id => acknowledged.get(id) === 'sold'))
    expect(walks).toBeGreaterThan(10)
    expect(ids.length).toBeGreaterThan(100)
  })
})
