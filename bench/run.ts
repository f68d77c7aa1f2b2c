// `npm run bench`: measures the petstore against other servers in one run.
import { compareGrowth, compareOnPostgres, compareOnSlowDisk, compareThreads, measurePeers } from './comparisons.ts'
import { contenders, petstore } from './contenders.ts'
import { Bench } from './measure.ts'
import { type Options, type Part, parts, readOptions, usage } from './options.ts'
import { describeMachine, type Recorded, readRecord, writeRecord } from './record.ts'
import { printReport, writeReport } from './report.ts'
import { compareTransfers } from './transfer.ts'
import { workloads } from './workloads.ts'

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
  if (options.page) {
    writeReport(readRecord())
    return 0
  }
  const recorded = await measureParts(options)
  process.stdout.write(printReport(recorded))
  if (options.write) {
    const all = options.parts.length < parts.length ? { ...readRecord(), ...definedIn(recorded) } : recorded
    writeRecord(all)
    writeReport(readRecord())
  }
  return 0
}

function definedIn(recorded: Recorded): Recorded {
  return Object.fromEntries(Object.entries(recorded).filter(([, value]) => value !== undefined)) as Recorded
}

async function measureParts({ rounds, seconds, quick, only, parts }: Options): Promise<Recorded> {
  await using bench = new Bench({ rounds, seconds, warmupSeconds: quick ? 1 : 4 })
  const measured = async <T>(part: Part, measure: () => Promise<T>): Promise<T | undefined> => {
    if (!parts.includes(part)) return undefined
    bench.log(`part ${part}`)
    return measure()
  }
  const peers = contenders.filter(each => each === petstore || only.includes(each.name))
  const peerWorkloads = workloads.filter(({ slow }) => !(quick && slow))
  const sizes = [1_000, 1_000_000, ...(quick ? [] : [10_000_000])]
  return {
    at: new Date().toISOString(),
    rounds,
    seconds,
    driver: bench.driver.name,
    machine: describeMachine(),
    peers: await measured('peers', async () =>
      (await measurePeers(bench, { contenders: peers, workloads: peerWorkloads })).compare(petstore.name),
    ),
    threads: await measured('threads', () => compareThreads(bench)),
    postgres: await measured('postgres', () => compareOnPostgres(bench)),
    transfer: await measured('transfer', () => compareTransfers(bench)),
    slowDisk: await measured('slow-disk', () => compareOnSlowDisk(bench)),
    growth: await measured('growth', () => compareGrowth(bench, sizes)),
  }
}

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  return 1
})
