// `npm run bench`: measures the petstore against other servers in one run.
import { parseArgs } from 'node:util'
import { Bench } from './bench.ts'
import { measurements } from './comparisons.ts'
import { conditionsOf, type Part, parts, type Recorded, readRecord, writeRecord } from './record.ts'
import { printReport, writeReport } from './report.ts'

const usage = `Measures the petstore against other servers.

Usage: npm run bench -- [options]

  --quick         1 round of 1 s for each load
  --part <name>   only this part, and more than one if given again: ${parts.join(', ')};
                  without it, all but growth, which needs 10 GB of disk
  --write         also write the results of a quick or partial run; other parts keep their recorded figures
  --page          measure nothing; write docs/benchmarks.md again from bench/recorded.json

A full run writes docs/benchmarks.md, docs/scaling.md, their charts and bench/recorded.json. It needs wrk.
`

/** A growing catalogue takes about 15 minutes and 10 GB of disk. */
const defaultParts: readonly string[] = parts.filter(each => each !== 'growth')

const options = {
  quick: { type: 'boolean', default: false },
  part: { type: 'string', multiple: true },
  write: { type: 'boolean', default: false },
  page: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

async function main(): Promise<void> {
  const { quick, part = defaultParts, write, page, help } = parseArgs({ options }).values
  if (help) return void process.stdout.write(usage)
  if (page) return writeReport(readRecord())
  const unknown = part.find(name => !parts.some(each => each === name))
  if (unknown !== undefined) throw new Error(`--part is "${unknown}": expected one of ${parts.join(', ')}`)
  const measured = await measureParts(
    quick,
    parts.filter(each => part.includes(each)),
  )
  process.stdout.write(printReport(measured))
  const isComplete = defaultParts.every(each => part.includes(each))
  if (!write && (quick || !isComplete)) return
  writeRecord({ ...readRecord(), ...measured })
  writeReport(readRecord())
}

async function measureParts(quick: boolean, chosen: readonly Part[]): Promise<Recorded> {
  const effort = quick ? { rounds: 1, seconds: 1 } : { rounds: 7, seconds: 2 }
  await using bench = new Bench(effort.rounds, effort.seconds)
  const measured: Record<string, unknown> = {}
  for (const part of chosen) {
    bench.log(`part ${part}`)
    const figures = await measurements[part](bench)
    if (figures) measured[part] = { ...conditionsOf(effort), figures }
  }
  return measured
}

process.exitCode = await main().then(
  () => 0,
  (error: Error) => {
    process.stderr.write(`petstore bench: ${error.message}\n`)
    return 1
  },
)
