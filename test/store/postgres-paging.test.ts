import { expect, setDefaultTimeout, test } from 'bun:test'
import { fileURLToPath } from 'node:url'
import { SQL } from 'bun'
import type { PetStatus } from '../../src/pet.ts'
import { openStores } from '../../src/store/open.ts'
import type { PetStore } from '../../src/store.ts'
import { testMsMax, until } from '../support/process.ts'
import { describeWithPostgres, sharedDatabase } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

const program = fileURLToPath(new URL('../support/animal-writer.ts', import.meta.url))
const writers = 4
const writingMs = 4_000
const limits = [1, 2, 7, 20, 100]
const statuses = [undefined, undefined, 'available', 'pending', 'sold'] as const

/** What the writers were told, by id. */
type Committed = Map<bigint, PetStatus | undefined>

interface Writer extends AsyncDisposable {
  /** Tells it to stop, and waits until all that it was told is known. */
  stop(): Promise<number>
}

function startWriter(url: string, committed: Committed, doubled: bigint[]): Writer {
  const child = Bun.spawn([process.execPath, '--no-env-file', program, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const heard = hear(child.stdout, (id, status) => {
    if (committed.has(id)) doubled.push(id)
    committed.set(id, status)
  })
  return {
    async stop() {
      await child.stdin.end()
      await heard
      return await child.exited
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

async function hear(
  stream: ReadableStream<Uint8Array>,
  add: (id: bigint, status: PetStatus | undefined) => void,
): Promise<void> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const [id = '', status] of lines.map(line => line.split(' ')))
      add(BigInt(id), status === 'undefined' ? undefined : (status as PetStatus))
  }
}

const pick = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T

/** One walk to the last page; gives what was known before it began and did not turn up on it. */
async function missedOnWalk(pets: PetStore, committed: Committed): Promise<string[]> {
  const [limit, status] = [pick(limits), pick(statuses)]
  const known = [...committed.keys()]
  // From the beginning; with tiny pages from near the end, where the writers are.
  const start = limit < 20 ? (ascending(known).at(-1) ?? 0n) - 150n : 0n
  const expected = known.filter(id => id > start && (status === undefined || committed.get(id) === status))
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

/** Goes on from the last animal seen, whenever there are more, until it was told to stop and finds no more. */
async function follow(pets: PetStore, isOver: () => boolean, limit: number, status?: PetStatus) {
  const seen: bigint[] = []
  for (;;) {
    const over = isOver()
    const page = await pets.list({ limit, after: seen.at(-1) ?? 0n, ...(status && { status }) })
    seen.push(...page.pets.map(({ id }) => id))
    if (over && page.pets.length === 0) return seen
  }
}

const ascending = (ids: Iterable<bigint>) => [...ids].sort((a, b) => (a < b ? -1 : 1))

describeWithPostgres('pages of a PostgreSQL store', () => {
  test(`while ${writers} instances add animals, no walk misses one that was there before it began, and whoever goes on from a cursor meets every later one`, async () => {
    await using stack = new AsyncDisposableStack()
    const { url } = stack.use(await sharedDatabase())
    const open = async () => {
      const stores = await openStores(url, { create: true })
      stack.defer(() => stores.close())
      return stores.pets
    }
    const [first, second] = [await open(), await open()]
    const sql = stack.use(new SQL(url, { max: 1, bigint: true }))
    const committed: Committed = new Map()
    const doubled: bigint[] = []
    const writing = Array.from({ length: writers }, () => stack.use(startWriter(url, committed, doubled)))
    await until('animals', () => committed.size > 100 || undefined)

    let over = false
    const isOver = () => over
    const counts = { walks: 0, missed: [] as string[], gaps: [] as string[] }
    const walking = [first, second].map(async pets => {
      while (!over && counts.missed.length === 0) {
        counts.missed.push(...(await missedOnWalk(pets, committed)))
        counts.walks += 1
      }
    })
    const counting = (async () => {
      while (!over && counts.gaps.length === 0) {
        const [row] = await sql.unsafe('SELECT count(*) AS animals, coalesce(max(id), 0) AS last FROM pets')
        if (row.animals !== row.last)
          counts.gaps.push(`${row.animals} animals, and the last has id ${row.last}`)
      }
    })()
    const following = Promise.all([follow(first, isOver, 7), follow(second, isOver, 3, 'sold')])
    await Bun.sleep(writingMs)
    const exits = await Promise.all(writing.map(writer => writer.stop()))
    over = true
    await Promise.all([...walking, counting])
    const [all, sold] = await following

    expect(exits).toEqual(Array(writers).fill(0))
    expect({ missed: counts.missed, gaps: counts.gaps, doubled }).toEqual({
      missed: [],
      gaps: [],
      doubled: [],
    })
    const ids = ascending(committed.keys())
    expect(ids).toEqual(ids.map((_, index) => BigInt(index + 1)))
    expect(all).toEqual(ids)
    expect(sold).toEqual(ids.filter(id => committed.get(id) === 'sold'))
    expect(counts.walks).toBeGreaterThan(10)
    process.stdout.write(`${committed.size} animals of ${writers} instances, ${counts.walks} walks\n`)
  })
})
