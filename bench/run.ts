// `npm run bench`: the service against what one would use instead, as ratios between servers measured in one run.
import { compareClient } from './comparisons/client.ts'
import { compareCommits } from './comparisons/commits.ts'
import { measureGrowth } from './comparisons/growth.ts'
import { comparePeers } from './comparisons/peers.ts'
import { compareOnPostgres } from './comparisons/postgres.ts'
import { compareOnSlowDisk } from './comparisons/slow-disk.ts'
import { measureSteps } from './comparisons/steps.ts'
import { lineUp, petstore } from './contenders/line-up.ts'
import type { Effort } from './harness/effort.ts'
import { describeMachine } from './harness/machine.ts'
import { createProgress } from './harness/progress.ts'
import { openSession } from './harness/session.ts'
import { works } from './harness/work.ts'
import { createDriver } from './load/driver.ts'
import { type Options, type Part, readOptions, usage } from './options.ts'
import type { Outcome } from './report/outcome.ts'
import { printOutcome } from './report/print.ts'

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(usage)
    return 0
  }
  let options: Options
  try {
    options = readOptions(args)
  } catch (error) {
    process.stderr.write(`petstore bench: ${(error as Error).message}\n`)
    return 2
  }
  const outcome = await run(options)
  process.stdout.write(printOutcome(outcome))
  if (!options.write) return 0
  // Only now: without the packages for its charts there are still the tables above.
  const { writeDocument } = await import('./report/write.ts')
  for (const file of writeDocument(outcome)) process.stdout.write(`Wrote ${file}\n`)
  return 0
}

async function run(options: Options): Promise<Outcome> {
  await using session = openSession()
  const driver = createDriver(session)
  const progress = createProgress()
  if (driver.name !== 'wrk') {
    progress.note(
      'wrk is not installed (the package wrk of your system): autocannon drives, and is slower itself',
    )
  }
  const warmingSeconds = options.quick ? 1 : 4
  const effort: Effort = { ...options, warmingSeconds, session, driver, progress }
  const outcome = await measureParts(effort, options)
  progress.end()
  return outcome
}

async function measureParts(effort: Effort, options: Options): Promise<Outcome> {
  const { rounds, seconds, quick, driver } = effort
  const chosen = lineUp.filter(each => each === petstore || (options.only?.includes(each.name) ?? true))
  const asked = <T>(part: Part, measure: () => Promise<T>): Promise<T> | undefined =>
    options.parts.includes(part) ? measure() : undefined
  const worksNow = works.filter(({ slow }) => !(quick && slow))
  return {
    at: new Date(),
    rounds,
    seconds,
    quick,
    driver: driver.name,
    machine: describeMachine(),
    peers: (await asked('peers', () => comparePeers(effort, chosen, worksNow))) ?? [],
    postgres: await asked('postgres', () => compareOnPostgres(effort)),
    growth: await asked('growth', () => measureGrowth(effort)),
    slowDisk: await asked('slow-disk', () => compareOnSlowDisk(effort)),
    commits: await asked('commits', () => compareCommits(effort)),
    steps: await asked('steps', () => measureSteps(effort)),
    client: await asked('client', () => compareClient(effort)),
  }
}

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  return 1
})
