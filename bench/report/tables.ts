import { creators, type ReaderFigures, readEveryMs, readers } from '../comparisons/commits.ts'
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
export function careTable({ slowDisk, commits, logging, client = [] }: Outcome): Table {
  const row = (what: string, one: Spread, other: Spread, ratio: Spread | undefined) => [
    what,
    one.median < 100 ? fine(one.median) : round(one.median),
    other.median < 100 ? fine(other.median) : round(other.median),
    shown(ratio),
  ]
  const rows: (readonly string[])[] = []
  if (slowDisk) {
    const what = `durable creates/s with an fsync of ${fsyncMs} ms: petstore, Fastify`
    rows.push(row(what, slowDisk.ours, slowDisk.fastify, slowDisk.ratio))
  }
  if (commits) {
    const { inGroups, oneByOne, gain } = commits
    const who = `${creators} create, ${readers} read`
    const delay = (name: string, { aloneP99Ms, meanwhileP99Ms, delay }: ReaderFigures) =>
      row(`readers' p99 in ms, ${name}: with writers, without`, meanwhileP99Ms, aloneP99Ms, delay)
    const [grouped, single] = [inGroups.eager.createsPerSecond, oneByOne.eager.createsPerSecond]
    rows.push(
      row(`${who}: creates/s in groups, one by one`, grouped, single, gain),
      delay('in groups', inGroups.eager),
      delay('one by one', oneByOne.eager),
      delay(`in groups, each reader once in ${readEveryMs} ms`, inGroups.paced),
      delay(`one by one, each reader once in ${readEveryMs} ms`, oneByOne.paced),
    )
  }
  if (logging)
    rows.push(
      row('list of 20, requests/s: with a log, without', logging.withLog, logging.without, logging.ratio),
    )
  for (const { title, animalsPerSecond, bareAnimalsPerSecond, ratio } of client) {
    rows.push(
      row(`walk, animals/s, ${title}: client, bare fetch`, animalsPerSecond, bareAnimalsPerSecond, ratio),
    )
  }
  return { title: 'What care costs and gains', head: ['What', 'first', 'second', 'first / second'], rows }
}
