import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { allWorkloads, fastify, fixedBun, petstore, plainBun, titles, type Workload } from './contenders.ts'
import type { Comparison, Recorded, Spread } from './record.ts'

const page = join(import.meta.dir, '../docs/benchmarks.md')
const chart = join(import.meta.dir, '../docs/images/benchmark-throughput.svg')

/** Replaces the generated sections of the page and its chart. The rest of the page is written by hand. */
export function writeReport(recorded: Recorded): void {
  let text = readFileSync(page, 'utf8')
  for (const [name, section] of Object.entries(sectionsOf(recorded))) {
    const [start, end] = [`<!--bench:${name}-->\n`, `<!--/bench:${name}-->`]
    const [from, to] = [text.indexOf(start), text.indexOf(end)]
    if (from < 0 || to < from) throw new Error(`docs/benchmarks.md has no section ${start.trim()} … ${end}`)
    text = `${text.slice(0, from + start.length)}\n${section}\n\n${text.slice(to)}`
  }
  writeFileSync(page, text)
  writeFileSync(chart, drawChart(recorded.peers))
}

/** The same sections, for a terminal. */
export function printReport(recorded: Recorded): string {
  const sections = Object.entries(sectionsOf(recorded)).map(([name, section]) => `## ${name}\n\n${section}\n`)
  return sections.join('\n')
}

function sectionsOf(recorded: Recorded): Readonly<Record<string, string>> {
  const { peers, processes, postgres } = recorded
  return {
    conditions: conditions(recorded),
    ratios: ratioTable(peers),
    costs: costTable(peers),
    targets: targetTable(peers),
    processes: processTable(processes),
    postgres: postgresTable(postgres),
  }
}

const none = '–'
const whole = (value: number | null | undefined) => (value == null ? none : Math.round(value).toLocaleString('en'))

/** Three significant digits, or more for large values. */
function short(value: number | null | undefined): string {
  if (value == null || value >= 100) return whole(value)
  return value.toFixed(value < 10 ? 2 : 1)
}

/** `5.88 (4.22–6.92)`: the median, the lowest and the highest round. */
export function showRatio(spread: Spread | undefined): string {
  if (!spread) return none
  const { median, low, high } = spread
  return low === high ? short(median) : `${short(median)} (${short(low)}–${short(high)})`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return 'Not measured.'
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|---|${'--:|'.repeat(head.length - 1)}`, ...rows.map(line)].join('\n')
}

function conditions({ at, rounds, seconds, machine }: Recorded): string {
  const effort = `${rounds} ${rounds === 1 ? 'round' : 'rounds'} of ${seconds} s for each load`
  return `${at.slice(0, 10)}: ${effort}, on ${machine}.`
}

const namesIn = (comparison: Comparison = {}) => Object.keys(comparison.list ?? {})

function ratioTable(peers: Comparison | undefined): string {
  const rows = namesIn(peers)
    .filter(name => name !== petstore.name && name !== fixedBun.name)
    .map(name => [name, ...allWorkloads.map(workload => short(peers?.[workload]?.[name]?.ratio?.median))])
  return table(['The petstore against', ...Object.values(titles)], rows)
}

const mainWorkloads = ['list', 'get', 'create'] as const

function costTable(peers: Comparison | undefined): string {
  const rows = namesIn(peers).map(name => [
    name,
    ...mainWorkloads.map(workload => short(peers?.[workload]?.[name]?.cpuMicroseconds)),
    short(peers?.mix?.[name]?.p99Ms),
    short((peers?.mix?.[name] ?? peers?.get?.[name])?.peakMb),
  ])
  return table(['Server', ...mainWorkloads.map(each => `${titles[each]}, µs`), 'Mix, p99 ms', 'Memory, MB'], rows)
}

function targetTable(peers: Comparison | undefined): string {
  const cpu = (workload: Workload, name: string) => showRatio(peers?.[workload]?.[name]?.cpuRatio)
  const speed = (workload: Workload, name: string) => showRatio(peers?.[workload]?.[name]?.ratio)
  return table(
    ['The petstore', 'Target', 'Measured'],
    [
      ['List of 20: CPU time, against Bun.serve with fixed bytes', '≤ 1.40', cpu('list', fixedBun.name)],
      ['Get one: CPU time, against plain Bun.serve + bun:sqlite', '≤ 1.40', cpu('get', plainBun.name)],
      ['Durable create: requests/s, against Fastify', '≥ 4.00', speed('create', fastify.name)],
      ['Mix 90/8/2: requests/s, against Fastify', '≥ 5.00', speed('mix', fastify.name)],
    ],
  )
}

function processTable(processes: Comparison | undefined): string {
  const rows = mainWorkloads.flatMap(workload => {
    const { 1: one, 2: two } = processes?.[workload] ?? {}
    if (!one || !two) return []
    const rates = [one.requestsPerSecond, two.requestsPerSecond]
    return [[titles[workload], ...rates.map(whole), short(two.requestsPerSecond / one.requestsPerSecond)]]
  })
  return table(['Requests per second', 'One process', 'Two processes', 'Ratio'], rows)
}

function postgresTable(postgres: Comparison | undefined): string {
  const rows = mainWorkloads.flatMap(workload => {
    const { petstore: ours, 'Bun.sql': theirs } = postgres?.[workload] ?? {}
    if (!ours || !theirs) return []
    return [[titles[workload], whole(ours.requestsPerSecond), whole(theirs.requestsPerSecond), showRatio(theirs.ratio)]]
  })
  return table(['Requests per second', 'petstore', 'Bun.sql', 'Ratio'], rows)
}

const chartStyle = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .paper { fill: #fff }
  .bar { fill: #7d8590 }
  .ours { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .paper { fill: #0d1117 }
    .ours { fill: #4493f8 }
  }`

/** Bars of the requests per second of the mix, as SVG. */
function drawChart(peers: Comparison | undefined): string {
  const rates = Object.entries(peers?.mix ?? {}).map(([name, figures]) => ({ name, rate: figures.requestsPerSecond }))
  const rateMax = Math.max(...rates.map(({ rate }) => rate))
  const bars = rates.map(({ name, rate }, i) => {
    const [y, width] = [12 + i * 22, Math.round((rate / rateMax) * 440)]
    return `<text x="220" y="${y + 13}" text-anchor="end">${name}</text>
<rect class="bar${name === petstore.name ? ' ours' : ''}" x="230" y="${y}" width="${width}" height="16"/>
<text x="${width + 238}" y="${y + 13}">${whole(rate)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 ${20 + rates.length * 22}" role="img" aria-label="Requests per second">
<style>${chartStyle}
</style>
<rect class="paper" width="100%" height="100%"/>
${bars.join('\n')}
</svg>
`
}
