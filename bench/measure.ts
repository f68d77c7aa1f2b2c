import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Cluster, startCluster } from '../test/support/postgres.ts'
import type { Contender, Given } from './contenders.ts'
import { createDriver, type Driver, type Measured } from './load.ts'
import { type Comparison, type Figures, median, type Spread, spreadOf } from './record.ts'
import { Session } from './session.ts'
import { type Server, start } from './start.ts'
import { verify } from './verify.ts'
import { requestsFor, type Workload, type WorkloadName } from './workloads.ts'

export interface Effort {
  readonly rounds: number
  /** For each load. */
  readonly seconds: number
  /** Before anything is timed: Node takes some seconds to compile hot code. */
  readonly warmupSeconds: number
}

/** What a run works with. */
export class Bench implements AsyncDisposable {
  readonly session = new Session()
  readonly driver: Driver = createDriver(this.session)
  readonly effort: Effort
  readonly #startedMs = performance.now()

  constructor(effort: Effort) {
    this.effort = effort
    if (this.driver.name === 'autocannon') this.log('wrk is not installed: using autocannon, which is slower')
  }

  log(line: string): void {
    const elapsedSeconds = Math.round((performance.now() - this.#startedMs) / 1_000)
    process.stderr.write(`${String(elapsedSeconds).padStart(5)} s  ${line}\n`)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.session[Symbol.asyncDispose]()
  }
}

/** One server under one load. */
interface Sample extends Measured {
  /** For each request. */
  readonly cpuMicroseconds: number
  readonly workerMicroseconds: number
}

/** One figure for each round, by contender name. */
export class Results {
  readonly #samples = new Map<string, Map<WorkloadName, Sample[]>>()
  readonly #footprints = new Map<string, { firstResponseMs: number; peakMb: number }[]>()

  addSample(name: string, workload: WorkloadName, sample: Sample): void {
    const ofServer = this.#samples.getOrInsertComputed(name, () => new Map())
    ofServer.getOrInsertComputed(workload, () => []).push(sample)
  }

  addFootprint({ contender, firstResponseMs, usage }: Server): void {
    const ofServer = this.#footprints.getOrInsertComputed(contender.name, () => [])
    ofServer.push({ firstResponseMs, peakMb: usage().peakMb })
  }

  remove(name: string): void {
    this.#samples.delete(name)
    this.#footprints.delete(name)
  }

  /** Of each round, the reference's requests per second by the server's, or the server's CPU time by the reference's. */
  ratio(reference: string, name: string, workload: WorkloadName, kind: 'speed' | 'cost'): Spread | undefined {
    const theirs = this.#of(name, workload)
    const ratios = this.#of(reference, workload).flatMap((ours, round) => {
      const their = theirs[round]
      if (!their || !isValid(ours) || !isValid(their)) return []
      return kind === 'speed'
        ? ours.requestsPerSecond / their.requestsPerSecond
        : their.cpuMicroseconds / ours.cpuMicroseconds
    })
    return spreadOf(ratios)
  }

  compare(reference: string, kind: 'speed' | 'cost' = 'speed'): Comparison {
    const workloads: Partial<Record<WorkloadName, Record<string, Figures>>> = {}
    for (const [name, ofServer] of this.#samples) {
      for (const workload of ofServer.keys()) {
        const samples = this.#of(name, workload).filter(isValid)
        if (samples.length === 0) continue
        const ratio = name === reference ? undefined : this.ratio(reference, name, workload, kind)
        const cpuRatio = ratio && kind === 'speed' ? this.ratio(name, reference, workload, 'cost') : undefined
        workloads[workload] ??= {}
        workloads[workload][name] = { ...mediansOf(samples), ...(ratio && { ratio }), ...(cpuRatio && { cpuRatio }) }
      }
    }
    const servers = [...this.#footprints].map(([name, rounds]) => {
      const firstResponseMs = median(rounds.map(each => each.firstResponseMs))
      return [name, { firstResponseMs, peakMb: median(rounds.map(each => each.peakMb)) }]
    })
    return { workloads, servers: Object.fromEntries(servers) }
  }

  #of(name: string, workload: WorkloadName): readonly Sample[] {
    return this.#samples.get(name)?.get(workload) ?? []
  }
}

const isValid = ({ failures }: Sample) => failures === 0

function mediansOf(samples: readonly Sample[]): Figures {
  const workerMicroseconds = median(samples.map(each => each.workerMicroseconds))
  return {
    requestsPerSecond: median(samples.map(each => each.requestsPerSecond)),
    p50Ms: median(samples.map(each => each.p50Ms)),
    p99Ms: median(samples.map(each => each.p99Ms)),
    cpuMicroseconds: median(samples.map(each => each.cpuMicroseconds)),
    ...(workerMicroseconds > 0 && { workerMicroseconds }),
  }
}

export interface Plan {
  readonly contenders: readonly Contender[]
  readonly workloads: readonly Workload[]
  readonly given: Given
  readonly samePriority?: boolean
  /** Whether to run each load before it is measured: each thread compiles its own code, and gets only a part of the load. */
  readonly warmUpEach?: boolean
}

/** Measures all contenders in turn, workload by workload. Each round starts them again and checks their responses. */
export async function measureRounds(bench: Bench, plan: Plan, results = new Results()): Promise<Results> {
  let contenders = plan.contenders.filter(contender => isInstalled(bench, contender))
  const { rounds } = bench.effort
  for (let round = 1; round <= rounds; round++) {
    bench.log(`round ${round} of ${rounds}`)
    const failed = await playRound(bench, { ...plan, contenders }, results)
    for (const { name } of failed) results.remove(name)
    contenders = contenders.filter(contender => !failed.includes(contender))
    // The first contender of a round is the last of the next.
    contenders = [...contenders.slice(1), ...contenders.slice(0, 1)]
  }
  return results
}

/** Returns the contenders that did not start or gave wrong responses. */
async function playRound(bench: Bench, plan: Plan, results: Results): Promise<readonly Contender[]> {
  await using stack = new AsyncDisposableStack()
  const servers: Server[] = []
  const failed: Contender[] = []
  for (const contender of plan.contenders) {
    try {
      const server = stack.use(await start(bench.session, contender, plan.given))
      await verify(server, plan.given.responses)
      await warmUp(bench, server)
      servers.push(server)
    } catch (error) {
      const message = `${contender.title} ${(error as Error).message}`
      // Without the petstore there is nothing to compare.
      if (contender.name === 'petstore') throw new Error(message)
      bench.log(`left out: ${message}`)
      failed.push(contender)
    }
  }
  for (const workload of plan.workloads) {
    for (const server of servers.filter(({ contender }) => contender.workloads.includes(workload.name))) {
      results.addSample(server.contender.name, workload.name, await measure(bench, server, workload, plan))
    }
  }
  for (const server of servers) results.addFootprint(server)
  return failed
}

async function warmUp({ driver, effort }: Bench, { contender, origin, authorization, animals }: Server): Promise<void> {
  const workload = contender.workloads.includes('mix') ? 'mix' : 'list'
  const requests = requestsFor(contender.paths, workload, animals)
  await driver.drive({ origin, authorization, requests, connections: 64, seconds: effort.warmupSeconds })
}

async function measure(bench: Bench, server: Server, workload: Workload, plan: Plan): Promise<Sample> {
  const { samePriority } = plan
  const { contender, origin, authorization, animals } = server
  const { name, title, connections } = workload
  const requests = requestsFor(contender.paths, name, animals)
  const { seconds, warmupSeconds } = bench.effort
  const load = { origin, authorization, requests, connections, seconds, samePriority }
  if (plan.warmUpEach) await bench.driver.drive({ ...load, seconds: warmupSeconds })
  const before = server.usage()
  const measured = await bench.driver.drive(load)
  const after = server.usage()
  const what = `${title}: ${contender.title}`
  bench.log(`${what}: ${Math.round(measured.requestsPerSecond).toLocaleString('en')} requests/s`)
  if (measured.failures > 0) bench.log(`not counted: ${measured.failures} requests failed: ${what}`)
  const perRequest = (ms: number) => (ms * 1_000) / measured.requests
  return {
    ...measured,
    cpuMicroseconds: perRequest(after.cpuMs - before.cpuMs),
    workerMicroseconds: perRequest(after.workerMs - before.workerMs),
  }
}

export function isInstalled(bench: Bench, { title, packages = [], programs = [] }: Contender): boolean {
  const missing = [
    ...packages.filter(name => !existsSync(join(import.meta.dir, 'node_modules', name))),
    ...programs.filter(name => !Bun.which(name)),
  ]
  if (missing.length > 0) bench.log(`left out: ${title} needs ${missing.join(', ')}`)
  return missing.length === 0
}

/** Undefined if PostgreSQL cannot run here. */
export async function withCluster<T>(bench: Bench, work: (cluster: Cluster) => Promise<T>): Promise<T | undefined> {
  const cluster = await startCluster().catch((error: Error) => bench.log(`left out: ${error.message}`))
  if (!cluster) return undefined
  await using server = cluster
  return await work(server)
}
