import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Spread } from '../harness/figures.ts'
import type { Machine } from '../harness/machine.ts'
import type { WorkName } from '../harness/work.ts'
import type { Outcome } from './outcome.ts'
import { measuredWorks } from './tables.ts'
import { ratioTo } from './targets.ts'

/** The ratios of a run, for programs: petstore's rate divided by the contender's. */
export interface Recorded {
  readonly at: string
  readonly rounds: number
  readonly seconds: number
  readonly driver: string
  readonly machine: Machine
  readonly ratios: Readonly<Partial<Record<WorkName, Readonly<Record<string, Spread>>>>>
}

export const recordFile = join(import.meta.dir, '../recorded.json')

export function recordOf(outcome: Outcome): Recorded {
  const { at, rounds, seconds, driver, machine, peers } = outcome
  const others = peers.map(({ contender }) => contender.name).filter(name => name !== 'petstore')
  const ratios = measuredWorks(outcome).map(({ name: work }) => {
    const seen = others.map(name => [name, ratioTo(outcome, name, work)] as const)
    return [
      work,
      Object.fromEntries(seen.flatMap(([name, ratio]) => (ratio ? [[name, rounded(ratio)]] : []))),
    ]
  })
  return { at: at.toISOString(), rounds, seconds, driver, machine, ratios: Object.fromEntries(ratios) }
}

export function readRecord(): Recorded | undefined {
  try {
    return JSON.parse(readFileSync(recordFile, 'utf8'))
  } catch {
    return undefined
  }
}

function rounded({ median, low, high }: Spread): Spread {
  const round = (value: number) => Number(value.toPrecision(3))
  return { median: round(median), low: round(low), high: round(high) }
}
