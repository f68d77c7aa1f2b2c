// How fast the client walks the catalogue, against bare fetch and JSON.parse over the same pages.
import { PetstoreClient } from '../src/client/index.ts'
import { benchKey, contenders, start } from './contender.ts'

const animals = 100_000
const limit = 100
const rounds = 7
const creatorsAtOnce = 64

/** Two catalogues: one whose integers fit a double, and one where every page needs the exact way. */
const catalogues = [
  { name: 'small integers', categoryId: (n: number) => BigInt(n % 50) },
  { name: 'integers beyond 2^53', categoryId: (n: number) => 2n ** 62n + BigInt(n) },
]

async function fill(client: PetstoreClient, categoryId: (n: number) => bigint): Promise<void> {
  let added = 0
  const creator = async () => {
    while (added < animals) {
      const n = added++
      await client.pets.create({ name: `Animal ${n}`, categoryId: categoryId(n), status: 'available' })
    }
  }
  await Promise.all(Array.from({ length: creatorsAtOnce }, creator))
}

async function walkWithClient(client: PetstoreClient): Promise<number> {
  let seen = 0
  for await (const pet of client.pets.list({ limit })) if (pet.id > 0n) seen++
  return seen
}

async function walkBare(baseUrl: string): Promise<number> {
  const headers = { authorization: `Bearer ${benchKey}` }
  let seen = 0
  for (let path: string | undefined = `${baseUrl}/pets?limit=${limit}`; path !== undefined; ) {
    const response: Response = await fetch(path, { headers })
    const pets: readonly { readonly id: number }[] = JSON.parse(await response.text())
    for (const pet of pets) if (pet.id > 0) seen++
    const next = /<([^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
    path = next === undefined ? undefined : new URL(next, path).href
  }
  return seen
}

async function perSecond(walk: () => Promise<number>): Promise<number> {
  const startedMs = performance.now()
  const seen = await walk()
  if (seen !== animals) throw new Error(`Walked over ${seen} animals, expected ${animals}`)
  return seen / ((performance.now() - startedMs) / 1_000)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

for (const { name, categoryId } of catalogues) {
  await using server = await start(contenders.ours)
  const client = new PetstoreClient({ baseUrl: server.url, apiKey: benchKey })
  await fill(client, categoryId)
  const ours: number[] = []
  const bare: number[] = []
  for (let round = 0; round <= rounds; round++) {
    const measured = [
      await perSecond(() => walkWithClient(client)),
      await perSecond(() => walkBare(server.url)),
    ]
    // The first round warms the code up.
    if (round === 0) continue
    ours.push(measured[0] ?? Number.NaN)
    bare.push(measured[1] ?? Number.NaN)
  }
  const ratios = ours.map((rate, i) => rate / (bare[i] ?? Number.NaN))
  process.stdout.write(
    `${name}: client ${median(ours).toFixed(0)} animals/s, bare ${median(bare).toFixed(0)}, ratio ${median(ratios).toFixed(2)} (from ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})\n`,
  )
}
