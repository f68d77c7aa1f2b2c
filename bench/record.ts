import { readFileSync, writeFileSync } from 'node:fs'
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Workload } from './contenders.ts'

export const parts = ['peers', 'processes', 'postgres'] as const
export type Part = (typeof parts)[number]

/** The figures of a run, as recorded.json holds them. Parts that were not measured are absent. */
export interface Recorded extends Partial<Record<Part, Comparison>> {
  readonly at: string
  readonly rounds: number
  readonly seconds: number
  readonly machine: string
}

/** Medians over the rounds, by workload and contender. */
export type Comparison = Readonly<Partial<Record<Workload, Readonly<Record<string, Figures>>>>>

export interface Figures {
  readonly requestsPerSecond: number
  readonly p99Ms?: number
  /** For each request; null on systems without /proc. */
  readonly cpuMicroseconds?: number | null
  readonly peakMb?: number | null
  /** The petstore's requests per second divided by these, in the same round. Absent for the petstore itself. */
  readonly ratio?: Spread | undefined
  /** The petstore's CPU time per request divided by this one, in the same round. */
  readonly cpuRatio?: Spread | undefined
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

export function readRecord(): Recorded {
  return JSON.parse(readFileSync(file, 'utf8'))
}

export function writeRecord(recorded: Recorded): void {
  const round = (_key: string, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value
  writeFileSync(file, `${JSON.stringify(recorded, round, 2)}\n`)
}

export function describeMachine(): string {
  const node = Bun.spawnSync(['node', '--version']).stdout.toString().trim()
  const memoryGb = Math.round(totalmem() / 1024 ** 3)
  const hardware = `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${memoryGb} GB`
  return `${hardware}, ${platform()} ${release()} ${arch()}, Bun ${Bun.version}, Node ${node.slice(1)}`
}
