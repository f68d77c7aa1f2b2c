import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fastify, fixedBun, loggingFastify, loggingPetstore, petstore, plainBun, titles } from './contenders.ts'
import { chartStyle, none, type Spread, show, showSpread, table, whole } from './format.ts'
import { growthChart, growthTable } from './growth.ts'
import { instancesTable } from './instances.ts'
import type { Comparison, Conditions, PeerFigures, Recorded } from './record.ts'

const docs = join(import.meta.dir, '../docs')

/** Replaces the generated sections of the pages, and their charts. The rest of the pages is written by hand. */
export function writeReport(recorded: Recorded): void {
  for (const [page, sections] of Object.entries(pagesOf(recorded))) {
    const file = join(docs, page)
    writeFileSync(file, withSections(readFileSync(file, 'utf8'), sections))
  }
  const { peers, growth } = recorded
  if (peers) writeFileSync(join(docs, 'images/benchmark-throughput.svg'), drawChart(peers.figures.quiet))
  if (growth) writeFileSync(join(docs, 'images/growth.svg'), growthChart(growth.figures))
}

function withSections(page: string, sections: Readonly<Record<string, string>>): string {
  let text = page
  for (const [name, section] of Object.entries(sections)) {
    const [start, end] = [`<!--bench:${name}-->\n`, `<!--/bench:${name}-->`]
    const [from, to] = [text.indexOf(start), text.indexOf(end)]
    if (from < 0 || to < from) throw new Error(`The page has no section ${start.trim()} … ${end}`)
    text = `${text.slice(0, from + start.length)}\n${section}\n\n${text.slice(to)}`
  }
  return text
}

/** The same sections, for a terminal. */
export function printReport(recorded: Recorded): string {
  const sections = Object.values(pagesOf(recorded)).flatMap(Object.entries<string>)
  return sections.map(([name, section]) => `## ${name}\n\n${section}\n`).join('\n')
}

function pagesOf({
  peers,
  processes,
  postgres,
  instances,
  growth,
}: Recorded): Readonly<Record<string, Readonly<Record<string, string>>>> {
  return {
    'benchmarks.md': {
      ratios: `${ratioTable(peers?.figures)}\n\n${conditions(peers)}`,
      costs: costTable(peers?.figures),
      targets: targetTable(peers?.figures),
      processes: `${processTable(processes?.figures)}\n\n${conditions(processes)}`,
      postgres: `${postgresTable(postgres?.figures)}\n\n${conditions(postgres)}`,
      machine: peers ? `${peers.machine}.` : none,
    },
    'scaling.md': {
      instances: instances ? `${instancesTable(instances.figures)}\n\n${conditions(instances)}` : none,
      growth: growth ? `${growthTable(growth.figures)}\n\n${datedCommit(growth)}.` : none,
    },
  }
}

const datedCommit = ({ at, commit }: Conditions) => `${at.slice(0, 10)}, commit ${commit}`

function conditions(part: Conditions | undefined): string {
  if (!part) return ''
  const { rounds, seconds } = part
  return `${datedCommit(part)}, ${rounds} ${rounds === 1 ? 'round' : 'rounds'} of ${seconds} s for each load.`
}

const namesIn = (comparison: Comparison = {}) => Object.keys(comparison.list ?? {})

const ratioWorkloads = ['mix', 'list', 'pages', 'get', 'create'] as const

function ratioTable({ quiet, logging }: Partial<PeerFigures> = {}): string {
  const row = (title: string, comparison: Comparison | undefined, name: string) => [
    title,
    ...ratioWorkloads.map(workload => show(comparison?.[workload]?.[name]?.ratio?.median)),
  ]
  const rows = namesIn(quiet)
    .filter(name => name !== petstore.name && name !== fixedBun.name)
    .map(name => row(name, quiet, name))
  const head = ['The petstore against', ...ratioWorkloads.map(workload => titles[workload])]
  return table(head, [...rows, row('Fastify, both with their logs', logging, loggingFastify.name)])
}

const processWorkloads = ['list', 'get', 'create'] as const
const costWorkloads = ['list', 'pages', 'get', 'create'] as const

function costTable({ quiet, logging }: Partial<PeerFigures> = {}): string {
  const row = (comparison: Comparison | undefined, name: string) => [
    name,
    ...costWorkloads.map(workload => show(comparison?.[workload]?.[name]?.cpuMicroseconds)),
    show(comparison?.mix?.[name]?.p99Ms),
    show((comparison?.mix?.[name] ?? comparison?.get?.[name])?.peakMb),
  ]
  const head = ['Server', ...costWorkloads.map(each => `${titles[each]}, µs`), 'Mix, p99 ms', 'Memory, MB']
  const withLog = [loggingPetstore, loggingFastify].map(({ name }) => row(logging, name))
  return table(head, [...namesIn(quiet).map(name => row(quiet, name)), ...withLog])
}

// Why a target may be missed.
const ofRuntime = 'For URL, headers and request id alone, Bun takes 1.3 times as long'
const ofIntegers = 'Exact integers, and more response headers'
const ofHeaders = 'Nine response headers instead of three'
const ofDisk = 'The faster the disk, the less is gained by committing together'

type Goal = readonly [what: string, bound: '≤' | '≥', limit: number, measured: Spread | undefined, whyMissed: string]

function targetTable({ quiet, logging }: Partial<PeerFigures> = {}): string {
  const [fixed, plain] = [fixedBun.name, plainBun.name]
  const goals: readonly Goal[] = [
    ['First page: CPU time, against fixed bytes', '≤', 1.45, quiet?.list?.[fixed]?.cpuRatio, ofRuntime],
    ['First page with the log', '≤', 1.7, logging?.list?.[fixed]?.cpuRatio, ofRuntime],
    ['Random pages: CPU time, against plain Bun', '≤', 1.2, quiet?.pages?.[plain]?.cpuRatio, ofIntegers],
    ['Get random ones: CPU time, against plain Bun', '≤', 1.2, quiet?.get?.[plain]?.cpuRatio, ofHeaders],
    ['Get random ones with the log', '≤', 1.41, logging?.get?.[plain]?.cpuRatio, ofHeaders],
    ['Get the same one: CPU time, against plain Bun', '≤', 1.2, quiet?.same?.[plain]?.cpuRatio, ofHeaders],
    ['Get the same one with the log', '≤', 1.41, logging?.same?.[plain]?.cpuRatio, ofHeaders],
    ['Durable create: requests per second, against Fastify', '≥', 4, quiet?.create?.[fastify.name]?.ratio, ofDisk],
  ]
  const rows = goals.map(([what, bound, limit, measured, whyMissed]) => {
    const isMet = measured && (bound === '≤' ? measured.median <= limit : measured.median >= limit)
    return [what, `${bound} ${limit.toFixed(2)}`, showSpread(measured), isMet || !measured ? '' : whyMissed]
  })
  return table(['The petstore', 'Target', 'Measured', 'Missed because'], rows)
}

function processTable(processes: Comparison | undefined): string {
  const rows = processWorkloads.flatMap(workload => {
    const { 1: one, 2: two } = processes?.[workload] ?? {}
    if (!one || !two) return []
    const rates = [one.requestsPerSecond, two.requestsPerSecond]
    return [[titles[workload], ...rates.map(whole), show(two.requestsPerSecond / one.requestsPerSecond)]]
  })
  return table(['Requests per second', 'One process', 'Two processes', 'Ratio'], rows)
}

function postgresTable(postgres: Comparison | undefined): string {
  const rows = costWorkloads.flatMap(workload => {
    const { petstore: ours, 'Bun.sql': theirs } = postgres?.[workload] ?? {}
    if (!ours || !theirs) return []
    return [
      [titles[workload], whole(ours.requestsPerSecond), whole(theirs.requestsPerSecond), showSpread(theirs.ratio)],
    ]
  })
  return table(['Requests per second', 'petstore', 'Bun.sql', 'Ratio'], rows)
}

const barStyle = `${chartStyle}
  .bar { fill: #7d8590 }
  .ours { fill: #0969da }
  @media (prefers-color-scheme: dark) { .ours { fill: #4493f8 } }`

/** Bars of the requests per second of the mix, as SVG. */
function drawChart(quiet: Comparison | undefined): string {
  const rates = Object.entries(quiet?.mix ?? {}).map(([name, figures]) => ({ name, rate: figures.requestsPerSecond }))
  const rateMax = Math.max(...rates.map(({ rate }) => rate))
  const bars = rates.map(({ name, rate }, i) => {
    const [y, width] = [12 + i * 22, Math.round((rate / rateMax) * 440)]
    return `<text x="220" y="${y + 13}" text-anchor="end">${name}</text>
<rect class="bar${name === petstore.name ? ' ours' : ''}" x="230" y="${y}" width="${width}" height="16"/>
<text x="${width + 238}" y="${y + 13}">${whole(rate)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 ${20 + rates.length * 22}" role="img" aria-label="Requests per second">
<style>${barStyle}
</style>
<rect class="paper" width="100%" height="100%"/>
${bars.join('\n')}
</svg>
`
}
