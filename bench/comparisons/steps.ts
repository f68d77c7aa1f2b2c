import { stepContender } from '../contenders/ceilings.ts'
import { petstore, silentPetstore } from '../contenders/line-up.ts'
import { buildCatalogue } from '../harness/catalogue.ts'
import type { Contender } from '../harness/contender.ts'
import type { Effort } from '../harness/effort.ts'
import { ratios, refuseFailures, type Spread, spreadOf } from '../harness/figures.ts'
import { measure, type Sample } from '../harness/measure.ts'
import { captureAnswers } from '../harness/our-answers.ts'
import { type Running, start } from '../harness/start.ts'

/** A list of 20, between fixed bytes and all that we do. */
export interface Step {
  readonly title: string
  readonly requestsPerSecond: Spread
  readonly cpuMicroseconds: Spread
  /** Requests a second, of the first step's in the same round. */
  readonly share: Spread | undefined
}

const work = { name: 'list', connections: 64 } as const
const animals = 1_000

const steps: readonly (readonly [string, Contender])[] = [
  ['Bun.serve, fixed bytes', stepContender(0)],
  ['… and reads the address', stepContender(1)],
  ['… and reads the key', stepContender(2)],
  ['… and gives each answer a request id', stepContender(3)],
  ['petstore without a log', silentPetstore],
  ['petstore', petstore],
]

/** All servers run at once and are asked in turn, so that the machine is the same. */
export async function measureSteps(effort: Effort): Promise<readonly Step[]> {
  const { rounds, seconds, session, driver, progress } = effort
  progress.begin('steps', steps.length * rounds)
  const catalogue = await buildCatalogue(`${session.folder('catalogue')}/pets.db`, animals)
  await using running = new AsyncDisposableStack()
  const ours = running.use(await start(session, petstore, { catalogue }))
  const given = { catalogue, answers: await captureAnswers(ours.origin, animals) }
  const servers: Running[] = []
  for (const [, contender] of steps) servers.push(running.use(await start(session, contender, given)))
  const samples: Sample[][] = servers.map(() => [])
  for (const server of servers) await measure(driver, server, work, 1)
  for (let round = 0; round < rounds; round++) {
    for (const [index, server] of servers.entries()) {
      progress.step(steps[index]?.[0] ?? '')
      samples[index]?.push(await measure(driver, server, work, seconds))
    }
  }
  refuseFailures(samples.flat())
  return steps.map(([title], index) => stepOf(title, samples[index] ?? [], samples[0] ?? []))
}

function stepOf(title: string, samples: readonly Sample[], first: readonly Sample[]): Step {
  const rates = (of: readonly Sample[]) => of.map(({ requestsPerSecond }) => requestsPerSecond)
  return {
    title,
    requestsPerSecond: spreadOf(rates(samples)),
    cpuMicroseconds: spreadOf(samples.map(({ cpuMicroseconds = Number.NaN }) => cpuMicroseconds)),
    share: ratios(rates(samples), rates(first)),
  }
}
