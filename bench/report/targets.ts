import { ratesOf } from '../comparisons/peers.ts'
import { fsyncMs } from '../comparisons/slow-disk.ts'
import { ratios, type Spread } from '../harness/figures.ts'
import type { WorkName } from '../harness/work.ts'
import { type Outcome, seenOf } from './outcome.ts'

/** What the service is meant to reach, and what it did. */
export interface Target {
  readonly what: string
  readonly bound: 'at least' | 'at most'
  readonly wanted: number
  readonly unit: string
  /** Absent where it was not measured. */
  readonly seen: Spread | undefined
}

export type Verdict = 'reached' | 'missed' | 'not measured'

/** By the median. */
export function verdictOn({ bound, wanted, seen }: Target): Verdict {
  if (!seen) return 'not measured'
  return (bound === 'at least' ? seen.median >= wanted : seen.median <= wanted) ? 'reached' : 'missed'
}

export function targetsOf(outcome: Outcome): readonly Target[] {
  return [
    ...againstPeers(outcome),
    ...onPostgres(outcome),
    ...whenGrown(outcome),
    ...footprint(outcome),
    ...whileWriting(outcome),
  ]
}

/** How often the petstore does what the other does once. */
export function ratioTo(outcome: Pick<Outcome, 'peers'>, name: string, work: WorkName): Spread | undefined {
  return ratios(ratesOf(seenOf(outcome, 'petstore'), work), ratesOf(seenOf(outcome, name), work))
}

function againstPeers(outcome: Outcome): readonly Target[] {
  const times = (what: string, wanted: number, seen: Spread | undefined): Target => ({
    what,
    bound: 'at least',
    wanted,
    unit: 'times',
    seen,
  })
  const to = (name: string, work: WorkName) => ratioTo(outcome, name, work)
  return [
    times('list of 20, of Bun.serve with the same bytes', 0.85, to('fixed-bun', 'list')),
    times('list of 20, of Fastify + better-sqlite3', 7, to('fastify', 'list')),
    times('get one, of Bun.serve with the same bytes', 0.85, to('fixed-bun', 'get')),
    times('get one, of Fastify + better-sqlite3', 3.5, to('fastify', 'get')),
    times('durable create, of Fastify + better-sqlite3', 4, to('fastify', 'create')),
    times(`durable create with an fsync of ${fsyncMs} ms, of Fastify`, 10, outcome.slowDisk?.ratio),
    times('mix, of Fastify + better-sqlite3', 5, to('fastify', 'mix')),
  ]
}

function onPostgres({ postgres = [] }: Outcome): readonly Target[] {
  return postgres.map(({ work, ratio }) => ({
    what: `on PostgreSQL, ${work.title}, of Fastify + pg`,
    bound: 'at least',
    wanted: 1.5,
    unit: 'times',
    seen: ratio,
  }))
}

const grownTo = 10_000_000

function whenGrown({ growth }: Outcome): readonly Target[] {
  const index = growth?.sizes.indexOf(grownTo) ?? -1
  const costs = (growth?.lines ?? []).map(
    ({ work, costs }): Target => ({
      what: `cost with 10 million animals, of that with 1 thousand: ${work.title}`,
      bound: 'at most',
      wanted: 1.15,
      unit: 'times',
      seen: costs[index],
    }),
  )
  const peakMb = (growth?.peakBytes[index] ?? Number.NaN) / 1e6
  const memory: Target = {
    what: 'peak memory under load with 10 million animals',
    bound: 'at most',
    wanted: 80,
    unit: 'MB',
    seen: Number.isNaN(peakMb) ? undefined : { median: peakMb, low: peakMb, high: peakMb },
  }
  return [...costs, memory]
}

function footprint(outcome: Outcome): readonly Target[] {
  const [ours, plain] = [seenOf(outcome, 'petstore'), seenOf(outcome, 'plain-bun')]
  const seen = ratios(ours?.firstAnswerMs ?? [], plain?.firstAnswerMs ?? [])
  return [
    {
      what: 'start to first answer, of the shortest Bun server',
      bound: 'at most',
      wanted: 3,
      unit: 'times',
      seen,
    },
  ]
}

function whileWriting({ commits }: Outcome): readonly Target[] {
  return [
    {
      what: '32 create while 8 read: creates, of one commit for each',
      bound: 'at least',
      wanted: 4,
      unit: 'times',
      seen: commits?.eager.createsPerSecond.gain,
    },
    {
      what: "32 create while 8 read: readers' p99, of that without writers",
      bound: 'at most',
      wanted: 2,
      unit: 'times',
      seen: commits?.eager.inGroups.delay,
    },
  ]
}
