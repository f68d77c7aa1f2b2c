import { readFileSync, writeFileSync } from 'node:fs'
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import type { WorkloadName } from './workloads.ts'

/** The figures of a run, as recorded.json holds them. Parts that were not measured are absent. */
export interface Recorded {
  readonly at: string
  readonly rounds: number
  readonly seconds: number
  readonly driver: string
  readonly machine: ReturnType<typeof describeMachine>
  readonly peers?: Comparison | undefined
  /** Servers are named by their number of threads; the ratios of one thread are those of two threads against it. */
  readonly threads?: Comparison | undefined
  readonly postgres?: PostgresComparison | undefined
  readonly transfer?: TransferComparison | undefined
  readonly slowDisk?: Comparison | undefined
  /** Servers are named by the size of their catalogue. */
  readonly growth?: Comparison | undefined
}

/** Medians over the rounds, by contender name. */
export interface Comparison {
  readonly workloads: Readonly<Partial<Record<WorkloadName, Readonly<Record<string, Figures>>>>>
  readonly servers: Readonly<Record<string, Footprint>>
}

export interface PostgresComparison {
  readonly local: Comparison
  /** With a round trip of 5 ms to PostgreSQL. */
  readonly distant: Comparison
  /** The same with four instances on one database. */
  readonly distantFour: Comparison
}

/** A million animals, between PostgreSQL and a file. */
export type TransferComparison = Readonly<Record<'export' | 'import', TransferFigures>>

export interface TransferFigures {
  readonly seconds: number
  /** PostgreSQL's COPY of the same rows. */
  readonly copySeconds: number
  /** The petstore's time divided by that of COPY, in the same round. */
  readonly ratio?: Spread
  readonly peakMb: number
}

export interface Figures {
  readonly requestsPerSecond: number
  readonly p50Ms?: number
  readonly p99Ms?: number
  /** For each request; null on systems without /proc. */
  readonly cpuMicroseconds?: number | null
  /** Against the petstore in the same round: its requests per second divided by these. In `growth`: CPU time per
   *  request, divided by that with the smallest catalogue. Absent for the petstore itself. */
  readonly ratio?: Spread
  /** The petstore's CPU time per request divided by this one, in the same round. In `threads`: that of two threads. */
  readonly cpuRatio?: Spread
  /** The CPU time in `Worker` threads: a petstore with one serving thread has only the writer. */
  readonly workerMicroseconds?: number
}

interface Footprint {
  readonly firstResponseMs?: number
  readonly peakMb?: number | null
}

/** The median of some rounds, the lowest and the highest. */
export interface Spread {
  readonly median: number
  readonly low: number
  readonly high: number
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  if (values.length === 0 || values.some(Number.isNaN)) return undefined
  return { median: median(values), low: Math.min(...values), high: Math.max(...values) }
}

const file = join(import.meta.dir, 'recorded.json')

/** Throws if there is no recorded.json. */
export function readRecord(): Recorded {
  return JSON.parse(readFileSync(file, 'utf8'))
}

export function writeRecord(recorded: Recorded): void {
  const round = (_key: string, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value
  writeFileSync(file, `${JSON.stringify(recorded, round, 2)}\n`)
}

export function describeMachine() {
  const manifestOf = (path: string) => JSON.parse(readFileSync(join(import.meta.dir, path), 'utf8'))
  const { config, dependencies, optionalDependencies } = manifestOf('package.json')
  return {
    system: `${platform()} ${release()} ${arch()}`,
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    versions: {
      petstore: manifestOf('../package.json').version,
      bun: Bun.version,
      node: programVersion(['node', '--version'], /v(\S+)/),
      nginx: programVersion(['nginx', '-v'], /nginx\/(\S+)/),
      wrk: programVersion(['wrk', '-v'], /wrk (\S+)/),
      ...config,
      ...dependencies,
      ...optionalDependencies,
    },
  }
}

function programVersion(command: readonly string[], pattern: RegExp): string {
  if (!Bun.which(command[0] ?? '')) return 'not installed'
  const { stdout, stderr } = Bun.spawnSync([...command])
  return pattern.exec(`${stdout}${stderr}`)?.[1] ?? 'unknown'
}
