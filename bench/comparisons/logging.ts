import { petstore, silentPetstore } from '../contenders/line-up.ts'
import { buildCatalogue } from '../harness/catalogue.ts'
import type { Given } from '../harness/contender.ts'
import type { Effort } from '../harness/effort.ts'
import { ratios, refuseFailures, type Spread, spreadOf } from '../harness/figures.ts'
import { measure } from '../harness/measure.ts'
import { type Running, start } from '../harness/start.ts'

const connections = 64
const animals = 1_000

/** What a line for each request costs, on a list of 20. */
export interface Logging {
  readonly withLog: Spread
  readonly without: Spread
  readonly ratio: Spread | undefined
}

/** Both servers run at once and are asked in turn, so that the machine is the same. */
export async function compareLogging(effort: Effort): Promise<Logging> {
  const { rounds, session, progress } = effort
  progress.begin('log', 2 * rounds)
  const catalogue = await buildCatalogue(`${session.folder('catalogue')}/pets.db`, animals)
  const given: Given = { catalogue }
  await using logging = await start(session, petstore, given)
  await using silent = await start(session, silentPetstore, given)
  const rates = { logging: [] as number[], silent: [] as number[] }
  for (const server of [logging, silent]) await rate(effort, server, 1)
  for (let i = 0; i < rounds; i++) {
    for (const [server, into] of [
      [logging, rates.logging],
      [silent, rates.silent],
    ] as const) {
      progress.step(`${server.contender.title}`)
      into.push(await rate(effort, server, effort.seconds))
    }
  }
  return {
    withLog: spreadOf(rates.logging),
    without: spreadOf(rates.silent),
    ratio: ratios(rates.logging, rates.silent),
  }
}

async function rate({ driver }: Effort, server: Running, seconds: number): Promise<number> {
  const measured = await measure(driver, server, { name: 'list', connections }, seconds)
  refuseFailures([measured])
  return measured.requestsPerSecond
}
