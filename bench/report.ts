import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Contender, contenders, petstore } from './contenders.ts'
import type { Comparison, Recorded, Spread } from './record.ts'
import { selectWorkloads, type Workload, type WorkloadName } from './workloads.ts'

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
  writeFileSync(chart, drawChart(recorded))
}

/** The same sections, for a terminal. */
export function printReport(recorded: Recorded): string {
  const sections = Object.entries(sectionsOf(recorded)).map(([name, section]) => `## ${name}\n\n${section}\n`)
  return sections.join('\n')
}

function sectionsOf(recorded: Recorded): Readonly<Record<string, string>> {
  return {
    conditions: conditions(recorded),
    ratios: ratioTable(recorded),
    costs: costTable(recorded),
    targets: targetTable(recorded),
    threads: threadTable(recorded),
    cores: coreTable(recorded),
    postgres: postgresTable(recorded),
    transfer: transferTable(recorded),
    'slow-disk': fastifyTable(recorded.slowDisk),
    growth: growthTable(recorded),
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

function conditions({ at, rounds, seconds, driver, machine }: Recorded): string {
  const { processor, cores, memoryGb, system } = machine
  const effort = `${rounds} ${rounds === 1 ? 'round' : 'rounds'} of ${seconds} s for each load, sent by ${driver}`
  return `${at.slice(0, 10)}: ${effort}, on ${processor}, ${cores} cores, ${memoryGb} GB, ${system}.`
}

/** The contenders of the first comparison that were measured, in the order of the tables. */
function measuredIn({ peers }: Recorded): readonly Contender[] {
  return contenders.filter(({ name }) => peers?.servers[name])
}

const isFixed = ({ name }: Contender) => name.startsWith('fixed-')

function ratioTable(recorded: Recorded): string {
  const columns = selectWorkloads('list', 'filtered', 'get', 'create', 'mix')
  return table(
    ['The petstore against', ...columns.map(({ title }) => title)],
    measuredIn(recorded)
      .filter(each => each !== petstore && !isFixed(each))
      .map(({ name, title }) => [
        title,
        ...columns.map(column => short(recorded.peers?.workloads[column.name]?.[name]?.ratio?.median)),
      ]),
  )
}

const mainWorkloads = selectWorkloads('list', 'get', 'create')

function costTable(recorded: Recorded): string {
  return table(
    ['Server', ...mainWorkloads.map(({ title }) => `${title}, µs`), 'Mix, p99 ms', 'Start, ms', 'Memory, MB'],
    measuredIn(recorded).map(({ name, title }) => [
      title,
      ...mainWorkloads.map(each => short(recorded.peers?.workloads[each.name]?.[name]?.cpuMicroseconds)),
      short(recorded.peers?.workloads.mix?.[name]?.p99Ms),
      short(recorded.peers?.servers[name]?.firstResponseMs),
      short(recorded.peers?.servers[name]?.peakMb),
    ]),
  )
}

function fastifyTable(comparison: Comparison | undefined): string {
  const rows = mainWorkloads.flatMap(({ name, title }) => {
    const { petstore: ours, fastify } = comparison?.workloads[name] ?? {}
    if (!ours || !fastify) return []
    return [[title, whole(ours.requestsPerSecond), whole(fastify.requestsPerSecond), showRatio(fastify.ratio)]]
  })
  return table(['Requests per second', 'petstore', 'Fastify', 'Ratio'], rows)
}

function targetTable({ peers, threads }: Recorded): string {
  const cpu = (workload: WorkloadName, name: string) => showRatio(peers?.workloads[workload]?.[name]?.cpuRatio)
  const speed = (workload: WorkloadName, name: string, comparison = peers) =>
    showRatio(comparison?.workloads[workload]?.[name]?.ratio)
  return table(
    ['The petstore', 'Target', 'Measured'],
    [
      ['List of 20: CPU time, against Bun.serve with fixed bytes', '≤ 1.40', cpu('list', 'fixed-bun')],
      ['Get one: CPU time, against plain Bun.serve + bun:sqlite', '≤ 1.40', cpu('get', 'plain-bun')],
      ['Durable create: requests/s, against Fastify', '≥ 4.00', speed('create', 'fastify')],
      ['Mix 90/8/2: requests/s, against Fastify', '≥ 5.00', speed('mix', 'fastify')],
      ['List of 20: requests/s, two threads against one', '≥ 1.30', speed('list', '1', threads)],
      ['Get one: requests/s, two threads against one', '≥ 1.50', speed('get', '1', threads)],
      ['Durable create: requests/s, two threads against one', '≥ 0.95', speed('create', '1', threads)],
      ['Memory of the second thread, MB', '≤ 12.0', short(secondThreadMb(threads))],
    ],
  )
}

function secondThreadMb(threads: Comparison | undefined): number | undefined {
  const [one, two] = ['1', '2'].map(name => threads?.servers[name]?.peakMb)
  return one && two ? two - one : undefined
}

function threadTable({ threads }: Recorded): string {
  const rows = mainWorkloads.flatMap(({ name, title }) => {
    const { 1: one, 2: two } = threads?.workloads[name] ?? {}
    if (!one || !two) return []
    const rates = [one, two].map(each => whole(each.requestsPerSecond))
    const costs = [one, two].map(each => short(each.cpuMicroseconds))
    return [[title, ...rates, showRatio(one.ratio), ...costs, showRatio(one.cpuRatio)]]
  })
  const memory = ['1', '2'].map(name => short(threads?.servers[name]?.peakMb))
  return table(
    ['', '1 thread, requests/s', '2 threads', 'Ratio', '1 thread, CPU µs', '2 threads', 'Ratio'],
    rows.length === 0 ? [] : [...rows, ['Peak memory, MB', ...memory, none, none, none, none]],
  )
}

/** Calculated from the CPU time of a request: one core is left to the writer, and each other one serves. */
function coreTable({ threads }: Recorded): string {
  const [list, get, create] = mainWorkloads.map(({ name }) => threads?.workloads[name]?.['2']?.cpuMicroseconds)
  const writer = threads?.workloads.create?.['1']?.workerMicroseconds
  if (!list || !get || !create || !writer) return table([], [])
  const rows = [4, 8, 16].map(cores => {
    const perSecond = (microseconds: number) => ((cores - 1) * 1e6) / microseconds
    const rates = [perSecond(list), perSecond(get), Math.min(perSecond(create - writer), 1e6 / writer)]
    return [String(cores), String(cores - 1), ...rates.map(rate => whole(Number(rate.toPrecision(2))))]
  })
  return table(['Cores', 'Serving threads', ...mainWorkloads.map(({ title }) => `${title}, requests/s`)], rows)
}

function postgresTable({ postgres }: Recorded): string {
  const row = (comparison: Comparison | undefined, { name, title }: Workload, where = '') => {
    const { petstore: ours, bun_sql: bunSql, fastify } = comparison?.workloads[name] ?? {}
    if (!ours) return []
    const cells = [ours, bunSql, fastify].map(each => whole(each?.requestsPerSecond))
    return [[`${title}${where}`, ...cells, showRatio(bunSql?.ratio), showRatio(fastify?.ratio)]]
  }
  const keyed = selectWorkloads('keyed')
  const rows = [
    ...selectWorkloads('list', 'get', 'create', 'keyed').flatMap(each => row(postgres?.local, each)),
    ...keyed.flatMap(each => row(postgres?.distant, each, ', PostgreSQL 5 ms away')),
    ...keyed.flatMap(each => row(postgres?.distantFour, each, ', 5 ms away, four instances')),
  ]
  return table(
    ['Requests per second', 'petstore', 'Bun.sql', 'Fastify', 'petstore / Bun.sql', 'petstore / Fastify'],
    rows,
  )
}

function transferTable({ transfer }: Recorded): string {
  const rows = (['export', 'import'] as const).flatMap(what => {
    const figures = transfer?.[what]
    if (!figures) return []
    const { seconds, copySeconds, ratio, peakMb } = figures
    return [[`petstore ${what}`, short(seconds), short(copySeconds), showRatio(ratio), short(peakMb)]]
  })
  return table(['A million animals', 'Seconds', 'COPY, seconds', 'Ratio', 'Memory, MB'], rows)
}

function growthTable({ growth = { workloads: {}, servers: {} } }: Recorded): string {
  const sizes = Object.keys(growth.servers)
  const costs = selectWorkloads('list', 'filtered', 'deep', 'get', 'create').map(({ name, title }) => [
    title,
    ...sizes.map((size, i) => (i === 0 ? '1.00' : showRatio(growth.workloads[name]?.[size]?.ratio))),
  ])
  const memory = ['Peak memory, MB', ...sizes.map(size => short(growth.servers[size]?.peakMb))]
  const head = ['Animals', ...sizes.map(size => Number(size).toLocaleString('en'))]
  return table(head, sizes.length === 0 ? [] : [...costs, memory])
}

const style = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .paper { fill: #fff }
  .bar { fill: #7d8590 }
  .ours { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .paper { fill: #0d1117 }
    .ours { fill: #4493f8 }
  }`

const chartWidth = 760
const labelWidth = 220
const barWidthMax = 440
const rowHeight = 22

/** Bars of requests per second, one group for each workload, as SVG. */
function drawChart(recorded: Recorded): string {
  const shown = measuredIn(recorded).filter(each => !isFixed(each))
  let y = 0
  const groups = mainWorkloads.map(workload => {
    const { svg, height } = drawGroup(recorded, workload, shown, y)
    y += height
    return svg
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${chartWidth} ${y + 8}" role="img" aria-label="Requests per second">
<style>${style}
</style>
<rect class="paper" width="100%" height="100%"/>
${groups.join('\n')}
</svg>
`
}

function drawGroup(recorded: Recorded, { name, title }: Workload, shown: readonly Contender[], top: number) {
  const bars = shown.flatMap(contender => {
    const rate = recorded.peers?.workloads[name]?.[contender.name]?.requestsPerSecond
    return rate === undefined ? [] : [{ contender, rate }]
  })
  const rateMax = Math.max(...bars.map(({ rate }) => rate))
  const rows = bars.map(({ contender, rate }, i) => {
    const y = top + 36 + i * rowHeight
    const width = Math.max(1, Math.round((rate / rateMax) * barWidthMax))
    return `<text x="${labelWidth}" y="${y + 13}" text-anchor="end">${contender.title}</text>
<rect class="bar${contender === petstore ? ' ours' : ''}" x="${labelWidth + 10}" y="${y}" width="${width}" height="16"/>
<text x="${labelWidth + width + 18}" y="${y + 13}">${whole(rate)}</text>`
  })
  const heading = `<text class="title" x="16" y="${top + 24}">${title}, requests per second</text>`
  return { svg: [heading, ...rows].join('\n'), height: 44 + bars.length * rowHeight }
}
