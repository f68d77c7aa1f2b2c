// `npm run bench`: measures the petstore against other servers in one run.
import { parseArgs } from 'node:util'
import { Bench } from './bench.ts'
import { comparisons } from './comparisons.ts'
import { describeMachine, parts, type Recorded, readRecord, writeRecord } from './record.ts'
import { printReport, writeReport } from './report.ts'

const usage = `Measures the petstore against other servers.

Usage: npm run bench -- [options]

  --quick         1 round of 1 s for each load
  --part <name>   only this part, and more than one if given again: ${parts.join(', ')}
  --write         also write the results of a quick or partial run; other parts keep their recorded figures
  --page          measure nothing; write docs/benchmarks.md again from bench/recorded.json

A full run writes docs/benchmarks.md, its chart and bench/recorded.json. It needs wrk.
`

const options = {
  quick: { type: 'boolean', default: false },
  part: { type: 'string', multiple: true },
  write: { type: 'boolean', default: false },
  page: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

async function main(): Promise<void> {
  const { quick, part = parts, write, page, help } = parseArgs({ options }).values
  if (help) return void process.stdout.write(usage)
  if (page) return writeReport(readRecord())
  const unknown = part.find(name => !parts.some(each => each === name))
  if (unknown !== undefined) throw new Error(`--part is "${unknown}": expected one of ${parts.join(', ')}`)
  const isPartial = part.length < parts.length
  const recorded = { ...(isPartial && readRecord()), ...(await measureParts(quick, part)) }
  process.stdout.write(printReport(recorded))
  if (!write && (quick || isPartial)) return
  writeRecord(recorded)
  writeReport(readRecord())
}

async function measureParts(quick: boolean, names: readonly string[]): Promise<Recorded> {
  const [rounds, seconds] = quick ? [1, 1] : [5, 2]
  await using bench = new Bench(rounds, seconds)
  const measured: Partial<Recorded> = {}
  for (const part of parts.filter(each => names.includes(each))) {
    bench.log(`part ${part}`)
    const comparison = await comparisons[part](bench)
    if (comparison) Object.assign(measured, { [part]: comparison })
  }
  return { at: new Date().toISOString(), rounds, seconds, machine: describeMachine(), ...measured }
}

process.exitCode = await main().then(
  () => 0,
  (error: Error) => {
    process.stderr.write(`petstore bench: ${error.message}\n`)
    return 1
  },
)
