import {
  type Both,
  type Commits,
  creators,
  type ReaderFigures,
  readEveryMs,
  readers,
} from '../comparisons/commits.ts'
import { type Seen, samplesOf } from '../comparisons/peers.ts'
import { fsyncMs } from '../comparisons/slow-disk.ts'
import { median, type Spread, showSpread } from '../harness/figures.ts'
import { showWork, type Work, works } from '../harness/work.ts'
import type { Outcome } from './outcome.ts'
import type { Table } from './table.ts'
import { ratioTo, targetsOf, verdictOn } from './targets.ts'

const none = '–'
const round = (value: number) => Math.round(value).toLocaleString('en')
const fine = (value: number) => (Number.isNaN(value) ? none : value.toFixed(value < 10 ? 2 : 1))
const shown = (spread: Spread | undefined) => (spread ? showSpread(spread) : none)

export function targetTable(outcome: Outcome): Table {
  return {
    title: 'What was wanted, and what was seen',
    head: ['What', 'Wanted', 'Seen', 'Verdict'],
    rows: targetsOf(outcome).map(target => [
      target.what,
      `${target.bound} ${target.wanted}${target.unit === 'times' ? '' : ` ${target.unit}`}`,
      shown(target.seen),
      verdictOn(target),
    ]),
  }
}

/** The works that this run has measured. */
export function measuredWorks({ peers }: Outcome): readonly Work[] {
  return works.filter(({ name }) => peers.some(seen => samplesOf(seen, name).length > 0))
}

/** One table for each work. */
export function workTables(outcome: Outcome): readonly Table[] {
  return measuredWorks(outcome).map(work => ({
    title: showWork(work),
    head: ['Contender', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs a request', 'petstore / this'],
    rows: outcome.peers
      .filter(seen => samplesOf(seen, work.name).length > 0)
      .map(seen => workRow(outcome, seen, work)),
  }))
}

function workRow(outcome: Outcome, seen: Seen, { name }: Work): readonly string[] {
  const samples = samplesOf(seen, name)
  const middle = (figure: (sample: (typeof samples)[number]) => number) => median(samples.map(figure))
  return [
    seen.contender.title,
    round(middle(({ requestsPerSecond }) => requestsPerSecond)),
    fine(middle(({ p50Ms }) => p50Ms)),
    fine(middle(({ p99Ms }) => p99Ms)),
    fine(middle(({ cpuMicroseconds }) => cpuMicroseconds ?? Number.NaN)),
    seen.contender.name === 'petstore' ? '1' : shown(ratioTo(outcome, seen.contender.name, name)),
  ]
}

/** Everything at a glance: one row for each contender, one column for each work. */
export function ratioTable(outcome: Outcome): Table {
  const columns = measuredWorks(outcome)
  return {
    title: 'How many times as fast the petstore is (median, and how far the rounds lie apart)',
    head: ['Contender', ...columns.map(({ title, connections }) => `${title}, ${connections} conn.`)],
    rows: outcome.peers
      .filter(({ contender }) => contender.name !== 'petstore')
      .map(({ contender }) => [
        contender.title,
        ...columns.map(({ name }) => shown(ratioTo(outcome, contender.name, name))),
      ]),
  }
}

export function footprintTable({ peers }: Outcome): Table {
  return {
    title: 'Start and memory',
    head: ['Contender', 'start to first answer, ms', 'peak memory, MB'],
    rows: peers.map(({ contender, firstAnswerMs, peakBytes }) => [
      contender.title,
      fine(median(firstAnswerMs)),
      peakBytes.length === 0 ? none : fine(median(peakBytes) / 1e6),
    ]),
  }
}

export function growthTable({ growth }: Outcome): Table | undefined {
  if (!growth) return undefined
  const { sizes, lines, peakBytes } = growth
  const named = sizes.map(size => size.toLocaleString('en'))
  return {
    title: 'Growth of the catalogue',
    head: [
      'Work',
      ...named.map(size => `requests/s, ${size}`),
      ...named.slice(1).map(size => `cost, ${size}`),
    ],
    rows: [
      ...lines.map(({ work, rates, costs }) => [
        work.title.replace('a million deep', 'deep in the catalogue'),
        ...rates.map(rate => round(rate.median)),
        ...costs.slice(1).map(shown),
      ]),
      ['peak memory, MB', ...peakBytes.map(bytes => fine(bytes / 1e6)), ...sizes.slice(1).map(() => none)],
    ],
  }
}

export function postgresTable({ postgres }: Outcome): Table | undefined {
  if (!postgres) return undefined
  return {
    title: 'On PostgreSQL',
    head: [
      'Work',
      'petstore, requests/s',
      'Fastify + pg',
      'petstore / Fastify',
      'petstore, CPU µs',
      'Fastify, CPU µs',
    ],
    rows: postgres.map(({ work, ours, fastify, ratio }) => [
      showWork(work),
      round(ours.rate.median),
      round(fastify.rate.median),
      shown(ratio),
      fine(ours.cpuMicroseconds.median),
      fine(fastify.cpuMicroseconds.median),
    ]),
  }
}

/** What care costs and gains: comparisons of the service with itself. */
export function careTable({ slowDisk, commits, client = [] }: Outcome): Table {
  const rows: (readonly string[])[] = []
  if (slowDisk) {
    const what = `durable creates/s with an fsync of ${fsyncMs} ms: petstore, Fastify`
    rows.push(compared(what, slowDisk.ours, slowDisk.fastify, slowDisk.ratio))
  }
  if (commits) rows.push(...commitRows(commits))
  for (const { title, animalsPerSecond, bareAnimalsPerSecond, ratio } of client) {
    const what = `walk, animals/s, ${title}: client, bare fetch`
    rows.push(compared(what, animalsPerSecond, bareAnimalsPerSecond, ratio))
  }
  return { title: 'What care costs and gains', head: ['What', 'first', 'second', 'first / second'], rows }
}

/** From fixed bytes to all that we do: absent where it was not measured. */
export function stepsTable({ steps }: Outcome): Table | undefined {
  return (
    steps && {
      title: 'List of 20, step by step',
      head: ['What the server does', 'requests/s', 'CPU µs a request', 'of fixed bytes'],
      rows: steps.map(({ title, requestsPerSecond, cpuMicroseconds, share }) => [
        title,
        round(requestsPerSecond.median),
        fine(cpuMicroseconds.median),
        shown(share),
      ]),
    }
  )
}

function compared(what: string, one: Spread, other: Spread, ratio: Spread | undefined): readonly string[] {
  const figure = ({ median }: Spread) => (median < 100 ? fine(median) : round(median))
  return [what, figure(one), figure(other), shown(ratio)]
}

function commitRows({ eager, paced }: Commits): readonly (readonly string[])[] {
  const who = `${creators} create, ${readers} read`
  const rarely = `, each reader once in ${readEveryMs} ms`
  const rate = (what: string, { inGroups, oneByOne, gain }: Both) =>
    compared(`${what}: in groups, one by one`, inGroups, oneByOne, gain)
  const delay = (what: string, { aloneP99Ms, meanwhileP99Ms, delay }: ReaderFigures) =>
    compared(`readers' p99 in ms, ${what}: with writers, without`, meanwhileP99Ms, aloneP99Ms, delay)
  return [
    rate(`${who}: creates/s`, eager.createsPerSecond),
    rate(`${who}: reads/s meanwhile`, eager.readsPerSecond),
    rate(`${who}${rarely}: creates/s`, paced.createsPerSecond),
    delay('in groups', eager.inGroups),
    delay('one by one', eager.oneByOne),
    delay(`in groups${rarely}`, paced.inGroups),
    delay(`one by one${rarely}`, paced.oneByOne),
  ]
}
