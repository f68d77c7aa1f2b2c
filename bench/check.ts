// `npm run bench:check`: fails if the petstore is slower than recorded, measured against the same servers.
import { Bench } from './bench.ts'
import { comparePeers } from './comparisons.ts'
import { fastify, fixedBun, petstore, titles, type Workload } from './contenders.ts'
import { isInstalled } from './measure.ts'
import { readRecord } from './record.ts'
import { showRatio } from './report.ts'

/** A ratio below this share of the recorded one counts as slower. */
const shareMin = 0.8
const workloads: readonly Workload[] = ['list', 'get', 'create']

async function main(): Promise<number> {
  const recorded = readRecord().peers
  await using bench = new Bench(5, 2)
  const peers = [fixedBun, { ...fastify, workloads }].filter(each => isInstalled(bench, each))
  const measured = await comparePeers(bench, [{ ...petstore, workloads }, ...peers])
  let [ratios, slower] = [0, 0]
  for (const workload of workloads) {
    for (const { name } of peers) {
      const before = recorded?.[workload]?.[name]?.ratio
      const now = measured[workload]?.[name]?.ratio
      if (!before) continue
      // Without a figure, requests failed in every round.
      const isSlower = !now || now.median < shareMin * before.median
      const figures = `${showRatio(now)}, recorded ${showRatio(before)}`
      process.stdout.write(`${isSlower ? 'slower' : 'ok    '}  ${titles[workload]}, petstore / ${name}: ${figures}\n`)
      ratios++
      if (isSlower) slower++
    }
  }
  process.stdout.write(`${slower} of ${ratios} ratios are below ${shareMin} of the recorded one\n`)
  return slower === 0 && ratios > 0 ? 0 : 1
}

process.exitCode = await main().catch((error: Error) => {
  process.stderr.write(`petstore bench: ${error.message}\n`)
  return 1
})
