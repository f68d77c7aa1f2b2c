// `npm run bench:check`: fails if the petstore costs more than recorded, measured against the same servers.
import { Bench } from './bench.ts'
import { comparePeers } from './comparisons.ts'
import { fixedBun, petstore, plainBun, titles, type Workload } from './contenders.ts'
import { showSpread } from './format.ts'
import { readRecord } from './record.ts'

/** Runs of the same code differ by less than this: see docs/benchmarks.md. */
const increaseMax = 1.25
const compared: readonly (readonly [Workload, string])[] = [
  ['list', fixedBun.name],
  ['pages', plainBun.name],
  ['get', plainBun.name],
  ['create', plainBun.name],
]

async function main(): Promise<number> {
  const recorded = readRecord().peers?.figures.quiet
  if (!recorded) throw new Error('nothing is recorded: run npm run bench first')
  await using bench = new Bench(7, 2)
  const contenders = [petstore, plainBun, fixedBun].map(each => {
    const pairs = compared.filter(([, name]) => each === petstore || each.name === name)
    return { ...each, workloads: pairs.map(([workload]) => workload) }
  })
  const { quiet } = await comparePeers(bench, contenders)
  let [ratios, slower] = [0, 0]
  for (const [workload, name] of compared) {
    const before = recorded[workload]?.[name]?.cpuRatio
    const now = quiet[workload]?.[name]?.cpuRatio
    if (!before) continue
    // Without a figure, requests failed in every round.
    const isSlower = !now || now.median > increaseMax * before.median
    const figures = `${showSpread(now)}, recorded ${showSpread(before)}`
    process.stdout.write(`${isSlower ? 'slower' : 'ok    '}  ${titles[workload]}, CPU time / ${name}: ${figures}\n`)
    ratios++
    if (isSlower) slower++
  }
  process.stdout.write(`${slower} of ${ratios} ratios are above ${increaseMax} times the recorded one\n`)
  return slower === 0 && ratios > 0 ? 0 : 1
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  return 1
})
