import { type Seen, samplesOf } from '../comparisons/peers.ts'
import { spreadOf } from '../harness/figures.ts'
import { type WorkName, works } from '../harness/work.ts'
import { type Bar, drawBars, type Panel } from './bars.ts'
import { drawGrowth } from './growth-chart.ts'
import type { Outcome } from './outcome.ts'

/** A chart of the document, as a file. */
export interface Chart {
  readonly file: string
  readonly label: string
  readonly svg: string
}

const throughputWorks: readonly WorkName[] = ['list', 'get', 'create', 'mix']

export function chartsOf(outcome: Outcome): readonly Chart[] {
  const { peers, growth } = outcome
  const charts: Chart[] = []
  const add = (file: string, label: string, svg: string) => charts.push({ file, label, svg })
  if (peers.length > 0) {
    const label = 'Requests a second at 64 connections, of each contender'
    add(
      'benchmark-throughput.svg',
      label,
      drawBars(
        label,
        throughputWorks.flatMap(name => throughput(outcome, name)),
      ),
    )
    const second = 'Start and memory of each contender'
    add('benchmark-footprint.svg', second, drawBars(second, footprint(peers)))
  }
  if (growth) add('benchmark-growth.svg', 'What a request costs as the catalogue grows', drawGrowth(growth))
  return charts
}

function throughput({ peers }: Outcome, name: WorkName): readonly Panel[] {
  const rates = peers.map(
    seen => [seen, samplesOf(seen, name).map(sample => sample.requestsPerSecond)] as const,
  )
  const bars = rates.flatMap(([seen, values]) => barOf(seen, values))
  if (bars.length === 0) return []
  const title = works.find(work => work.name === name)?.title ?? name
  return [{ title, unit: 'requests a second', bars }]
}

function footprint(peers: readonly Seen[]): readonly Panel[] {
  const panels: readonly Panel[] = [
    { title: 'peak memory', unit: 'MB', bars: peers.flatMap(seen => barOf(seen, seen.peakBytes.map(toMb))) },
    {
      title: 'start to first answer',
      unit: 'ms',
      bars: peers.flatMap(seen => barOf(seen, seen.firstAnswerMs)),
    },
  ]
  return panels.filter(({ bars }) => bars.length > 0)
}

const toMb = (bytes: number) => bytes / 1e6

function barOf({ contender }: Seen, values: readonly number[]): readonly Bar[] {
  if (values.length === 0) return []
  const { median: value, low, high } = spreadOf(values)
  const kind =
    contender.name === 'petstore' ? 'ours' : contender.name.startsWith('fixed-') ? 'ceiling' : 'other'
  return [{ name: contender.title, kind, value, low, high }]
}
