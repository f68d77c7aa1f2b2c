import { readFileSync, writeFileSync } from 'node:fs'
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Workload } from './contenders.ts'
import type { Spread } from './format.ts'
import type { GrowthFigures } from './growth.ts'
import type { InstancesFigures } from './instances.ts'

export const parts = ['peers', 'processes', 'postgres', 'instances', 'growth'] as const
export type Part = (typeof parts)[number]

interface PartFigures {
  readonly peers: PeerFigures
  readonly processes: Comparison
  readonly postgres: Comparison
  readonly instances: InstancesFigures
  readonly growth: GrowthFigures
}

export interface PeerFigures {
  /** No server writes a log. */
  readonly quiet: Comparison
  /** The petstore and Fastify write a log; plain Bun and fixed bytes do not. */
  readonly logging: Comparison
}

export interface Conditions {
  readonly at: string
  readonly commit: string
  readonly rounds: number
  readonly seconds: number
  readonly machine: string
}

/** What recorded.json holds. Parts that were never measured are absent. */
export type Recorded = { readonly [P in Part]?: Conditions & { readonly figures: PartFigures[P] } }

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

const file = join(import.meta.dir, 'recorded.json')

export function readRecord(): Recorded {
  return JSON.parse(readFileSync(file, 'utf8'))
}

export function writeRecord(recorded: Recorded): void {
  const round = (_key: string, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value
  writeFileSync(file, `${JSON.stringify(recorded, round, 2)}\n`)
}

export function conditionsOf({ rounds, seconds }: Pick<Conditions, 'rounds' | 'seconds'>): Conditions {
  const commit = output('git', 'rev-parse', '--short', 'HEAD')
  const isChanged = output('git', 'status', '--porcelain', '--', 'src') !== ''
  const at = new Date().toISOString()
  return { at, commit: isChanged ? `${commit} with changes` : commit, rounds, seconds, machine: describeMachine() }
}

function output(...command: readonly string[]): string {
  return Bun.spawnSync([...command], { cwd: import.meta.dir })
    .stdout.toString()
    .trim()
}

function describeMachine(): string {
  const node = output('node', '--version')
  const memoryGb = Math.round(totalmem() / 1024 ** 3)
  const hardware = `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${memoryGb} GB`
  return `${hardware}, ${platform()} ${release()} ${arch()}, Bun ${Bun.version}, Node ${node.slice(1)}`
}
