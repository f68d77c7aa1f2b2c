import { PetstoreClient } from '../../src/client/index.ts'
import { petstore } from '../contenders/line-up.ts'
import { buildCatalogue } from '../harness/catalogue.ts'
import type { Given } from '../harness/contender.ts'
import type { Effort } from '../harness/effort.ts'
import { ratios, type Spread, spreadOf } from '../harness/figures.ts'
import { start } from '../harness/start.ts'
import { benchKey } from '../load/load.ts'

/** How fast the client walks the catalogue, against bare fetch and JSON.parse over the same pages. */
export interface ClientWalk {
  readonly title: string
  readonly animalsPerSecond: Spread
  readonly bareAnimalsPerSecond: Spread
  readonly ratio: Spread | undefined
}

const limit = 100
const creatorsAtOnce = 64

/** Two catalogues: one whose integers fit a double, and one where every page needs the exact way. */
const catalogues = [
  { title: 'small integers', categoryId: (n: number) => BigInt(n % 50) },
  { title: 'integers beyond 2^53', categoryId: (n: number) => 2n ** 62n + BigInt(n) },
]

export async function compareClient(effort: Effort): Promise<readonly ClientWalk[]> {
  const animals = effort.quick ? 2_000 : 100_000
  effort.progress.begin('client', catalogues.length)
  const walks: ClientWalk[] = []
  for (const { title, categoryId } of catalogues) {
    effort.progress.step(`the client walks ${animals.toLocaleString('en')} animals: ${title}`)
    const rates = await walkBoth(effort, animals, categoryId)
    walks.push({
      title,
      animalsPerSecond: spreadOf(rates.client),
      bareAnimalsPerSecond: spreadOf(rates.bare),
      ratio: ratios(rates.client, rates.bare),
    })
  }
  return walks
}

async function walkBoth({ session, rounds }: Effort, animals: number, categoryId: (n: number) => bigint) {
  const catalogue = await buildCatalogue(`${session.folder('catalogue')}/pets.db`, 1)
  const given: Given = { catalogue }
  await using server = await start(session, petstore, given)
  const baseUrl = `${server.origin}/v1`
  const client = new PetstoreClient({ baseUrl, apiKey: benchKey })
  await fill(client, animals - 1, categoryId)
  const rates = { client: [] as number[], bare: [] as number[] }
  for (let round = 0; round <= rounds; round++) {
    const [own, bare] = [
      await perSecond(animals, () => walkWithClient(client)),
      await perSecond(animals, () => walkBare(baseUrl)),
    ]
    // The first round warms the code up.
    if (round === 0) continue
    rates.client.push(own)
    rates.bare.push(bare)
  }
  return rates
}

async function fill(client: PetstoreClient, animals: number, categoryId: (n: number) => bigint) {
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

async function perSecond(animals: number, walk: () => Promise<number>): Promise<number> {
  const startedMs = performance.now()
  const seen = await walk()
  if (seen !== animals) throw new Error(`Walked over ${seen} animals, expected ${animals}`)
  return seen / ((performance.now() - startedMs) / 1_000)
}
