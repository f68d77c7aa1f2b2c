import { expect, setDefaultTimeout, test } from 'bun:test'
import { fileURLToPath } from 'node:url'
import { SQL } from 'bun'
import type { PetStatus } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import type { PetStore } from '../../src/store.ts'
import { describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { testMsMax, until } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const writerProgram = fileURLToPath(new URL('./animal-writer.ts', import.meta.url))
const writers = 4
const writingMs = 4_000
const limits = [1, 2, 7, 20, 100]
const statuses = [undefined, undefined, 'available', 'pending', 'sold'] as const

/** The status of each acknowledged animal, by id. */
type Acknowledged = Map<bigint, PetStatus | undefined>

/** An instance that adds animals until `stop`, which returns its exit code. */
function startWriter(url: string, acknowledged: Acknowledged, duplicates: bigint[]) {
  const child = Bun.spawn([process.execPath, '--no-env-file', writerProgram, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const reading = (async () => {
    let rest = ''
    const decoder = new TextDecoder()
    for await (const bytes of child.stdout) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const [id = '', status] = line.split(' ')
        if (acknowledged.has(BigInt(id))) duplicates.push(BigInt(id))
        acknowledged.set(BigInt(id), status === 'undefined' ? undefined : (status as PetStatus))
      }
    }
  })()
  return {
    async stop() {
      await child.stdin.end()
      await reading
      return await child.exited
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

const pick = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T
const ascending = (ids: Iterable<bigint>) => [...ids].sort((a, b) => (a < b ? -1 : 1))

/** Walks to the last page, and returns the animals that were acknowledged before it began but are not on it. */
async function missedOnWalk(pets: PetStore, acknowledged: Acknowledged): Promise<string[]> {
  const [limit, status] = [pick(limits), pick(statuses)]
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
    const acknowledged: Acknowledged = new Map()
    const found = { missed: [] as string[], gaps: [] as string[], duplicates: [] as bigint[] }
    const writing = Array.from({ length: writers }, () => stack.use(startWriter(url, acknowledged, found.duplicates)))
    await until('animals', () => acknowledged.size > 100 || undefined)

    let over = false
    let walks = 0
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
    await Bun.sleep(writingMs)
    const exits = await Promise.all(writing.map(writer => writer.stop()))
    over = true
    await Promise.all([...walking, counting])
    const [all, sold] = await following

    expect(exits).toEqual(Array(writers).fill(0))
    expect(found).toEqual({ missed: [], gaps: [], duplicates: [] })
    const ids = ascending(acknowledged.keys())
    expect(ids).toEqual(ids.map((_, index) => BigInt(index + 1)))
    expect(all).toEqual(ids)
    expect(sold).toEqual(ids.filter(id => acknowledged.get(id) === 'sold'))
    expect(walks).toBeGreaterThan(10)
  })
})
