// `npm run bench:check`: fails if the petstore is slower than recorded, measured against the same servers.
import { measurePeers } from './comparisons.ts'
import { type Contender, fastify, fixedBun, petstore } from './contenders.ts'
import { Bench, isInstalled, Results } from './measure.ts'
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
  /** Absent if requests failed in every round. */
  readonly now: Spread | undefined
}

async function main(): Promise<number> {
  const recorded = readRecord()
  await using bench = new Bench(effort)
  const results = new Results()
  const peers = [fixedBun, fastify].filter(each => isInstalled(bench, each))
  const workloads = selectWorkloads('list', 'get', 'create')
  let lines: readonly Line[] = []
  let suspects = workloads
  for (let attempt = 0; attempt < attempts && suspects.length > 0; attempt++) {
    const plan = { contenders: [petstore, ...peers], workloads: suspects }
    await measurePeers(bench, plan, results)
    lines = workloads.flatMap(workload => compare(recorded, results, peers, workload))
    suspects = workloads.filter(workload => lines.some(line => line.workload === workload && !isGood(line)))
  }
  for (const line of lines) process.stdout.write(`${show(line)}\n`)
  const bad = lines.filter(line => !isGood(line)).length
  process.stdout.write(`${bad} of ${lines.length} ratios are clearly worse than recorded\n`)
  return bad === 0 && lines.length > 0 ? 0 : 1
}

function compare(
  recorded: Recorded,
  results: Results,
  peers: readonly Contender[],
  workload: Workload,
): readonly Line[] {
  return peers.flatMap(({ name, title }) => {
    const ratio = recorded.peers?.workloads[workload.name]?.[name]?.ratio
    if (!ratio) return []
    const what = `${workload.title}, petstore / ${title}`
    const now = results.ratio(petstore.name, name, workload.name, 'speed')
    return [{ workload, what, recorded: ratio.median, now }]
  })
}

function isGood({ recorded, now }: Line): boolean {
  return now !== undefined && now.median >= shareMin * recorded
}

function show(line: Line): string {
  const { what, recorded, now } = line
  if (!now) return `failed  ${what}: requests failed in every round`
  const share = (now.median / recorded).toFixed(2)
  const figures = `${showRatio(now)}, recorded ${recorded}: ${share} of it, expected at least ${shareMin}`
  return `${isGood(line) ? 'ok    ' : 'slower'}  ${what}: ${figures}`
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  return 1
})
