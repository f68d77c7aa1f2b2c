import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { allWorkloads, type Contender, type Given, titles, type Workload } from './contenders.ts'
import { median, spreadOf } from './format.ts'
import { type Measured, type Sending, sendLoad } from './load.ts'
import type { Comparison, Figures } from './record.ts'
import { type Server, start } from './start.ts'
import { verify } from './verify.ts'

/** One contender under one load. */
interface Sample extends Measured {
  readonly contender: string
  readonly workload: Workload
  readonly round: number
  /** For each request. */
  readonly cpuMicroseconds: number
  /** Since its start. */
  readonly peakMb: number
}

export interface Plan extends Given {
  readonly contenders: readonly Contender[]
  readonly sending?: Sending
}

/** Measures the contenders in turn, workload by workload. Each round starts them again and checks their responses. */
export async function measureRounds(bench: Bench, plan: Plan): Promise<readonly Sample[]> {
  const samples: Sample[] = []
  let contenders = plan.contenders.filter(contender => isInstalled(bench, contender))
  for (let round = 1; round <= bench.rounds; round++) {
    bench.log(`round ${round} of ${bench.rounds}`)
    const measured = await measureRound(bench, { ...plan, contenders })
    samples.push(...measured.map(each => ({ ...each, round })))
    // The first contender of a round is the last of the next.
    contenders = [...contenders.slice(1), ...contenders.slice(0, 1)]
  }
  return samples
}

function isInstalled(bench: Bench, { name, packages = [] }: Contender): boolean {
  const missing = packages.filter(each => !existsSync(join(import.meta.dir, 'node_modules', each)))
  if (missing.length > 0) bench.log(`left out: ${name} needs ${missing.join(', ')}`)
  return missing.length === 0
}

async function measureRound(bench: Bench, plan: Plan): Promise<readonly Omit<Sample, 'round'>[]> {
  await using stack = new AsyncDisposableStack()
  const servers: Server[] = []
  for (const contender of plan.contenders) {
    const server = stack.use(await start(bench, contender, plan))
    await verify(server, plan)
    servers.push(server)
  }
  const samples: Omit<Sample, 'round'>[] = []
  for (const workload of allWorkloads) {
    for (const server of servers.filter(({ contender }) => contender.workloads.includes(workload))) {
      samples.push(await measure(bench, server, workload, plan.sending))
    }
  }
  return samples
}

async function measure(
  bench: Bench,
  server: Server,
  workload: Workload,
  sending: Sending | undefined,
): Promise<Omit<Sample, 'round'>> {
  // The first load warms the server up: runtimes compile hot code.
  await sendLoad(bench, server, workload, sending)
  const before = server.usage()
  const measured = await sendLoad(bench, server, workload, sending)
  const after = server.usage()
  const contender = server.contender.name
  const what = `${titles[workload]}: ${contender}`
  bench.log(`${what}: ${Math.round(measured.requestsPerSecond).toLocaleString('en')} requests/s`)
  if (measured.failures > 0) bench.log(`not counted: ${measured.failures} requests failed: ${what}`)
  const cpuMicroseconds = ((after.cpuMs - before.cpuMs) * 1_000) / measured.requests
  return { ...measured, contender, workload, cpuMicroseconds, peakMb: after.peakMb }
}

/** Medians of the rounds without failed requests, and ratios to the reference in the same round. */
export function compare(samples: readonly Sample[], reference: string): Comparison {
  const comparison: Record<string, Record<string, Figures>> = {}
  const valid = samples.filter(({ failures }) => failures === 0)
  for (const [workload, ofWorkload] of Map.groupBy(valid, each => each.workload)) {
    const ours = ofWorkload.filter(each => each.contender === reference)
    const figures = [...Map.groupBy(ofWorkload, each => each.contender)].map(([contender, theirs]) => {
      return [contender, { ...mediansOf(theirs), ...(contender !== reference && ratiosOf(ours, theirs)) }]
    })
    comparison[workload] = Object.fromEntries(figures)
  }
  return comparison
}

function mediansOf(samples: readonly Sample[]): Figures {
  const medianOf = (figure: keyof Figures & keyof Sample) => median(samples.map(each => each[figure]))
  return {
    requestsPerSecond: medianOf('requestsPerSecond'),
    p99Ms: medianOf('p99Ms'),
    cpuMicroseconds: medianOf('cpuMicroseconds'),
    peakMb: medianOf('peakMb'),
  }
}

function ratiosOf(ours: readonly Sample[], theirs: readonly Sample[]): Pick<Figures, 'ratio' | 'cpuRatio'> {
  const pairs = ours.flatMap(our => {
    const their = theirs.find(({ round }) => round === our.round)
    return their ? [{ our, their }] : []
  })
  return {
    ratio: spreadOf(pairs.map(({ our, their }) => our.requestsPerSecond / their.requestsPerSecond)),
    cpuRatio: spreadOf(pairs.map(({ our, their }) => our.cpuMicroseconds / their.cpuMicroseconds)),
  }
}
