// `npm run bench:check`: fails if the petstore is slower than recorded, measured against the same servers.
import { measurePeers } from './comparisons.ts'
import { fastify, fixedBun, petstore } from './contenders.ts'
import { Bench, Results } from './measure.ts'
import { type Recorded, readRecord, type Spread } from './record.ts'
import { showRatio } from './report.ts'
import { selectWorkloads, type Workload } from './workloads.ts'

/** A ratio below this share of the recorded one counts as slower. */
const shareMin = 0.8
/** A shared machine has bad minutes: a slower result is measured again, and the median of all rounds counts. */
const attempts = 3
const effort = { rounds: 3, seconds: 2, warmupSeconds: 3 }

interface Line {
  readonly workload: Workload
  readonly what: string
  readonly recorded: number
  /** Absent if a server could not be measured. */
  readonly now: Spread | undefined
}

async function main(): Promise<number> {
  const recorded = readRecord()
  await using bench = new Bench(effort)
  const results = new Results()
  const workloads = selectWorkloads('list', 'get', 'create')
  let lines: readonly Line[] = []
  let suspects = workloads
  for (let attempt = 0; attempt < attempts && suspects.length > 0; attempt++) {
    const plan = { contenders: [petstore, fixedBun, fastify], workloads: suspects }
    await measurePeers(bench, plan, results)
    lines = workloads.flatMap(workload => compare(recorded, results, workload))
    suspects = workloads.filter(workload => lines.some(line => line.workload === workload && isSlower(line)))
  }
  for (const line of lines) process.stdout.write(`${show(line)}\n`)
  const slower = lines.filter(isSlower).length
  const measured = lines.filter(({ now }) => now !== undefined).length
  process.stdout.write(`${slower} of ${measured} ratios are slower than recorded\n`)
  return slower === 0 && measured > 0 ? 0 : 1
}

function compare({ peers }: Recorded, results: Results, workload: Workload): readonly Line[] {
  return [fixedBun, fastify].flatMap(({ name, title }) => {
    const ratio = peers?.workloads[workload.name]?.[name]?.ratio
    if (!ratio) return []
    const what = `${workload.title}, petstore / ${title}`
    const now = results.ratio(petstore.name, name, workload.name, 'speed')
    return [{ workload, what, recorded: ratio.median, now }]
  })
}

function isSlower({ recorded, now }: Line): boolean {
  return now !== undefined && now.median < shareMin * recorded
}

function show(line: Line): string {
  const { what, recorded, now } = line
  if (!now) return `skipped  ${what}: not measured`
  const share = (now.median / recorded).toFixed(2)
  const figures = `${showRatio(now)}, recorded ${recorded}: ${share} of it, expected at least ${shareMin}`
  return `${isSlower(line) ? 'slower ' : 'ok     '}  ${what}: ${figures}`
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  return 1
})
