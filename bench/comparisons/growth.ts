import { petstore } from '../contenders/line-up.ts'
import { buildCatalogue } from '../harness/catalogue.ts'
import type { Effort } from '../harness/effort.ts'
import { ratios, refuseFailures, type Spread, spreadOf } from '../harness/figures.ts'
import { measure, type Sample } from '../harness/measure.ts'
import { type Running, start } from '../harness/start.ts'
import { type Work, works } from '../harness/work.ts'

/** Our own server with catalogues of several sizes. */
export interface Growth {
  readonly sizes: readonly number[]
  readonly lines: readonly GrowthLine[]
  /** Under all this load, for each size. */
  readonly peakBytes: readonly number[]
}

export interface GrowthLine {
  readonly work: Work
  /** For each size, requests a second. */
  readonly rates: readonly Spread[]
  /** For each size, what a request costs in CPU time, against the smallest catalogue: steadier than rates on a shared machine. */
  readonly costs: readonly (Spread | undefined)[]
}

const quickSizes = [1_000, 1_000_000]
const sizes = [...quickSizes, 10_000_000]
const grown = works.filter(({ name }) => ['list', 'filtered', 'deep', 'get', 'create'].includes(name))

/** All sizes are served at once and asked in turn, so that the machine is the same for each. */
export async function measureGrowth(effort: Effort): Promise<Growth> {
  const chosen = effort.quick ? quickSizes : sizes
  effort.progress.begin('growth', chosen.length * (1 + effort.rounds * grown.length))
  await using stack = new AsyncDisposableStack()
  const servers: Running[] = []
  for (const size of chosen) servers.push(stack.use(await startWith(effort, size)))
  const lines: GrowthLine[] = []
  for (const work of grown) lines.push(lineOf(work, await rounds(effort, servers, work)))
  return { sizes: chosen, lines, peakBytes: servers.map(server => server.usage()?.peakBytes ?? Number.NaN) }
}

async function startWith(
  { session, driver, progress, warmingSeconds }: Effort,
  animals: number,
): Promise<Running> {
  progress.step(`building a catalogue of ${animals.toLocaleString('en')} animals`)
  const catalogue = await buildCatalogue(`${session.folder('catalogue')}/pets.db`, animals)
  const server = await start(session, petstore, { catalogue })
  await measure(driver, server, { name: 'mix', connections: 64 }, warmingSeconds)
  return server
}

/** For each server, its rounds. */
async function rounds(
  { rounds, seconds, driver, progress }: Effort,
  servers: readonly Running[],
  work: Work,
): Promise<readonly (readonly Sample[])[]> {
  const samples: Sample[][] = servers.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, server] of servers.entries()) {
      progress.step(`${work.title}, ${server.animals.toLocaleString('en')} animals`)
      samples[i]?.push(await measure(driver, server, work, seconds))
    }
  }
  refuseFailures(samples.flat())
  return samples
}

function lineOf(work: Work, samples: readonly (readonly Sample[])[]): GrowthLine {
  const rates = samples.map(of => of.map(({ requestsPerSecond }) => requestsPerSecond))
  // Where the system does not tell the CPU time, the time in all.
  const costs = samples.map(of =>
    of.map(({ cpuMicroseconds, requestsPerSecond }) => cpuMicroseconds ?? 1e6 / requestsPerSecond),
  )
  const smallest = costs[0] ?? []
  return { work, rates: rates.map(spreadOf), costs: costs.map(of => ratios(of, smallest)) }
}
