import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Part } from './contenders.ts'
import { allLoads, type Load, loads } from './loads.ts'

/** One contender under one load in one round. */
export interface Sample {
  readonly contender: string
  readonly load: Load
  readonly round: number
  readonly requestsPerSecond: number
  /** Per request. */
  readonly cpuMicroseconds: number
  readonly p99Ms: number
  /** Since its start. */
  readonly peakMb: number
}

type Figure = 'requestsPerSecond' | 'cpuMicroseconds' | 'p99Ms'

/** Markdown: the first contender against the others, then the figures of all, with a column for each load. */
export function tablesOf({ contenders }: Part, samples: readonly Sample[]): string {
  const names = contenders.map(({ name }) => name)
  const [first = '', ...others] = names
  const measured = allLoads.filter(load => samples.some(each => each.load === load))
  const titles = measured.map(load => loads[load])
  const samplesOf = (name: string, load: Load) => samples.filter(each => each.contender === name && each.load === load)
  const cell = (name: string, load: Load, figure: Figure) => show(samplesOf(name, load).map(each => each[figure]))
  const cells = (name: string) => measured.map(load => cell(name, load, 'requestsPerSecond'))
  /** What the first contender has, divided by what this one has in the same round. */
  const ratio = (name: string, load: Load, figure: Figure) => {
    const pairs = samplesOf(name, load).flatMap(theirs => {
      const ours = samplesOf(first, load).find(({ round }) => round === theirs.round)
      return ours ? [ours[figure] / theirs[figure]] : []
    })
    return show(pairs)
  }
  const ratios = (title: string, figure: Figure) =>
    table(
      [`${title}, ${first} against`, ...titles],
      others.map(name => [name, ...measured.map(load => ratio(name, load, figure))]),
    )
  const [main = 'mix'] = measured
  /** A server is started for each round, and its peak is complete after the last load. */
  const peaks = (name: string) => {
    const ofServer = samples.filter(({ contender }) => contender === name)
    return Object.values(Object.groupBy(ofServer, ({ round }) => round)).map((all = []) =>
      Math.max(...all.map(each => each.peakMb)),
    )
  }
  const comparison = [ratios('Requests per second', 'requestsPerSecond'), ratios('CPU time', 'cpuMicroseconds')]
  const figures = table(
    ['Requests per second', ...titles, `p99 of ${loads[main]}, ms`, 'Memory, MB'],
    names.map(name => [name, ...cells(name), cell(name, main, 'p99Ms'), show(peaks(name))]),
  )
  return [...(others.length > 0 ? comparison : []), figures].join('\n\n')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|---|${'--:|'.repeat(head.length - 1)}`, ...rows.map(line)].join('\n')
}

/** `5.88 (4.22–6.92)`: the median, the lowest and the highest round. */
function show(values: readonly number[]): string {
  if (values.length === 0 || values.some(Number.isNaN)) return '–'
  const sorted = values.toSorted((a, b) => a - b)
  const half = (sorted.length - 1) / 2
  const [lower = 0, upper = lower] = sorted.slice(Math.floor(half), Math.ceil(half) + 1)
  const [median, low, high] = [(lower + upper) / 2, Math.min(...values), Math.max(...values)].map(showNumber)
  return low === high ? `${median}` : `${median} (${low}–${high})`
}

const showNumber = (value: number) => value.toLocaleString('en', { maximumSignificantDigits: 3 })

/** Replaces the section of a part in its page. The rest of the page is written by hand. */
export function writeSection(part: string, section: string): void {
  const [start, end] = [`<!--bench:${part}-->`, `<!--/bench:${part}-->`]
  const pages = ['benchmarks.md', 'scaling.md'].map(page => join(import.meta.dir, '../docs', page))
  const file = pages.find(page => readFileSync(page, 'utf8').includes(start))
  if (!file) throw new Error(`No page has the section ${start}`)
  const [before, after] = readFileSync(file, 'utf8').split(new RegExp(`${start}[^]*${end}`))
  writeFileSync(file, `${before}${start}\n\n${section}\n\n${end}${after}`)
}

/** A line on stderr, with the time since the start. */
export function log(line: string): void {
  const elapsedSeconds = Math.round(performance.now() / 1_000)
  process.stderr.write(`${String(elapsedSeconds).padStart(5)} s  ${line}\n`)
}

/** When, which commit and on which machine. */
export function conditions(rounds: number, seconds: number): string {
  const date = new Date().toISOString().slice(0, 10)
  const commit = output('git', 'rev-parse', '--short', 'HEAD')
  const changes = output('git', 'status', '--porcelain', '--', 'src') === '' ? '' : ' with changes'
  const memoryGb = Math.round(totalmem() / 1024 ** 3)
  const machine = `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${memoryGb} GB, ${platform()} ${release()}`
  const runtimes = `Bun ${Bun.version}, Node ${output('node', '--version').slice(1)}`
  return `${date}, commit ${commit}${changes}, ${rounds} rounds of ${seconds} s. ${machine}, ${runtimes}.`
}

function output(...command: readonly string[]): string {
  return Bun.spawnSync([...command], { cwd: import.meta.dir })
    .stdout.toString()
    .trim()
}
