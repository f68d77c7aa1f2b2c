import { existsSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { writeCursor } from '../src/page.ts'
import type { Bench } from './bench.ts'
import { runPetstore } from './catalogue.ts'
import { petPath, petsPath, petstore, serveCommand } from './contenders.ts'
import { chartStyle, median, none, show, table } from './format.ts'
import { benchAuthorization, newPet } from './load.ts'
import { type Server, start, startPostgres } from './start.ts'

const growthSizes: readonly number[] = [1_000_000, 10_000_000, 30_000_000]

/** The timed requests. None of the pages is in the server's page cache. */
const timedTitles = {
  first: 'First page',
  middle: 'Middle page',
  rare: 'Rare status',
  get: 'Get one',
  create: 'Create',
}
type Timed = keyof typeof timedTitles
const allTimed = Object.keys(timedTitles) as readonly Timed[]
const [warmUps, requests] = [300, 300]

/** One process of the petstore on a catalogue of one size. */
interface SizeFigures {
  readonly animals: number
  /** In the step that made the catalogue this large. */
  readonly importedPerSecond: number
  readonly storeMb: number
  /** Until the first response. */
  readonly startMs: number
  /** Medians of requests that are sent one after another. */
  readonly responseMs: Readonly<Record<Timed, number>>
  /** Of the server process; null on systems without /proc. */
  readonly peakMb: number | null
  /** Null for PostgreSQL: `petstore backup` copies SQLite stores only. */
  readonly backupSeconds: number | null
  readonly exportSeconds: number
}

/** One entry for each size; none if the engine cannot run here. */
export interface GrowthFigures {
  readonly SQLite: readonly SizeFigures[]
  readonly PostgreSQL: readonly SizeFigures[]
}

/** Measures each engine with a catalogue that grows to these sizes. */
export async function measureGrowth(bench: Bench): Promise<GrowthFigures> {
  const folder = bench.folder()
  const onSqlite = await measureSizes(bench, `sqlite:${join(folder, 'pets.db')}`)
  rmSync(folder, { recursive: true })
  const cluster = await startPostgres(bench)
  if (!cluster) return { SQLite: onSqlite, PostgreSQL: [] }
  await using server = cluster
  return { SQLite: onSqlite, PostgreSQL: await measureSizes(bench, server.url()) }
}

async function measureSizes(bench: Bench, url: string): Promise<readonly SizeFigures[]> {
  const figures: SizeFigures[] = []
  const engine = url.startsWith('sqlite:') ? 'SQLite' : 'PostgreSQL'
  for (const animals of growthSizes) {
    const before = figures.at(-1)?.animals ?? 0
    bench.log(`${engine}: importing up to ${animals.toLocaleString('en')} animals`)
    const lines = new Response(linesAfter(before, animals)).body
    const importSeconds = await timeCommand(bench, ['import', '-', '--database-url', url], lines)
    const storeMb = (await settledBytes(url)) / 1e6
    bench.log(`${engine}: measuring`)
    const served = await measureServer(bench, url, animals)
    const backupSeconds = engine === 'SQLite' ? await timeBackup(bench, url) : null
    const exportSeconds = await timeCommand(bench, ['export', '--database-url', url])
    const importedPerSecond = Math.round((animals - before) / importSeconds)
    figures.push({ animals, importedPerSecond, storeMb, ...served, backupSeconds, exportSeconds })
  }
  return figures
}

/** Returns the seconds that a command of the petstore takes. */
async function timeCommand(bench: Bench, args: readonly string[], stdin?: ReadableStream | null): Promise<number> {
  const startedMs = performance.now()
  await runPetstore(bench, args, stdin)
  return (performance.now() - startedMs) / 1_000
}

async function timeBackup(bench: Bench, url: string): Promise<number> {
  const folder = bench.folder()
  const seconds = await timeCommand(bench, ['backup', join(folder, 'copy.db'), '--database-url', url])
  rmSync(folder, { recursive: true })
  return seconds
}

/** NDJSON in chunks of the animals after one up to another. */
async function* linesAfter(after: number, last: number): AsyncGenerator<Uint8Array> {
  for (let from = after + 1; from <= last; from += 1_000) {
    const length = Math.min(1_000, last - from + 1)
    yield Buffer.from(Array.from({ length }, (_, i) => lineAt(from + i)).join(''))
  }
}

/** Names have 10 to 40 characters. Of 10,000 animals 7,000 are available, 2,999 sold and 1 pending. */
function lineAt(n: number): string {
  const name = String(n).padEnd(10 + (n % 31), '-animal')
  const status = n % 10_000 === 9_999 ? 'pending' : n % 10 < 7 ? 'available' : 'sold'
  return `{"name":"${name}","categoryId":${n % 50},"status":"${status}"}\n`
}

/** The size of the store, after the work that would otherwise run in the background during the requests. */
async function settledBytes(url: string): Promise<number> {
  Bun.spawnSync(['sync'])
  const file = url.replace('sqlite:', '')
  if (file !== url) return bytesOf(file) + bytesOf(`${file}-wal`)
  await using sql = new SQL(url, { max: 1 })
  await sql`VACUUM (ANALYZE) pets`
  await sql`CHECKPOINT`
  return Number((await sql`SELECT pg_total_relation_size('pets') AS bytes`)[0].bytes)
}

const bytesOf = (file: string) => (existsSync(file) ? statSync(file).size : 0)

async function measureServer(bench: Bench, url: string, animals: number) {
  const contender = { ...petstore, prepare() {}, env: { DATABASE_URL: url }, command: serveCommand }
  const startedMs = performance.now()
  await using server = await start(bench, contender, { catalogue: { file: '', animals } })
  const startMs = performance.now() - startedMs
  const responseMs = { first: 0, middle: 0, rare: 0, get: 0, create: 0 }
  for (const timed of allTimed) responseMs[timed] = await timeRequests(server, timed)
  return { startMs, responseMs, peakMb: server.usage().peakMb }
}

async function timeRequests(server: Server, timed: Timed): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < warmUps + requests; i++) {
    // A creation empties the page cache.
    if (timed === 'first') await send(server, 'create', i)
    const startedMs = performance.now()
    await send(server, timed, i)
    times.push(performance.now() - startedMs)
  }
  return median(times.slice(warmUps))
}

async function send({ origin, animals }: Server, timed: Timed, i: number): Promise<void> {
  // Multiples of the golden ratio are spread evenly, and no two are equal.
  const spread = (i * 0.618_033_988_749_895) % 1
  const middle = BigInt(Math.floor(animals * (0.25 + spread / 2)))
  const path = {
    first: petsPath,
    middle: `${petsPath}?cursor=${writeCursor(middle, undefined)}`,
    rare: `${petsPath}?status=pending&cursor=${writeCursor(middle, 'pending')}`,
    get: petPath(1 + Math.floor(animals * spread)),
    create: petsPath,
  }[timed]
  const headers = { authorization: benchAuthorization, 'content-type': 'application/json' }
  const creation = timed === 'create' && { method: 'POST', body: newPet }
  const response = await fetch(`${origin}${path}`, { headers, ...creation })
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`${path} returned ${response.status}`)
}

const compact = (count: number, compactDisplay: 'long' | 'short') =>
  count.toLocaleString('en', { notation: 'compact', compactDisplay })

/** `2.5 s`, `4.2 min` or `1.5 h` */
function showTime(seconds: number | null): string {
  if (seconds === null) return none
  const [amount, unit] =
    seconds < 100 ? [seconds, 's'] : seconds < 6_000 ? [seconds / 60, 'min'] : [seconds / 3_600, 'h']
  return `${amount.toFixed(1)} ${unit}`
}

/** Sizes that were not measured: their figures are multiples of the largest one's. */
const estimatedSizes = [100_000_000, 1_000_000_000]

/** A row for each engine and size. */
export function growthTable(figures: GrowthFigures): string {
  const engines: readonly [string, readonly SizeFigures[]][] = Object.entries(figures)
  const rows = engines.flatMap(([engine, sizes]) => {
    const importSeconds = sizes.map(({ animals, importedPerSecond }, i) => {
      return (animals - (sizes[i - 1]?.animals ?? 0)) / importedPerSecond
    })
    const importedIn = (count: number) => importSeconds.slice(0, count).reduce((sum, each) => sum + each, 0)
    const bulkCells = (size: SizeFigures, importTime: number, times = 1) => [
      `${((size.storeMb * times) / 1_000).toFixed(1)} GB`,
      ...[importTime, size.exportSeconds].map(each => showTime(each * times)),
      showTime(size.backupSeconds && size.backupSeconds * times),
    ]
    const measured = sizes.map((size, i) => [
      `${engine}, ${compact(size.animals, 'long')}`,
      ...allTimed.map(timed => show(size.responseMs[timed])),
      ...[show(size.startMs), show(size.peakMb)],
      ...bulkCells(size, importedIn(i + 1)),
    ])
    const largest = sizes.at(-1)
    const estimated = estimatedSizes.map(animals => [
      `${engine}, ${compact(animals, 'long')}, by arithmetic`,
      ...Array<string>(allTimed.length + 2).fill(''),
      ...(largest ? bulkCells(largest, importedIn(sizes.length), animals / largest.animals) : []),
    ])
    return [...measured, ...(largest ? estimated : [])]
  })
  const head = [...allTimed.map(timed => `${timedTitles[timed]}, ms`), 'Start, ms', 'Memory, MB', 'Store']
  return table(['Animals', ...head, 'Import', 'Export', 'Backup'], rows)
}

const lineStyle = `${chartStyle}
  .grid { stroke: #7d8590; stroke-opacity: 0.3 }
  polyline { fill: none; stroke: currentColor; stroke-width: 2 }
  .label { fill: currentColor }
  .first { color: #0969da } .middle { color: #1a7f37 } .rare { color: #bc4c00 }
  .get { color: #656d76 } .create { color: #8250df }
  @media (prefers-color-scheme: dark) {
    .first { color: #4493f8 } .middle { color: #3fb950 } .rare { color: #db6d28 }
    .get { color: #9198a1 } .create { color: #ab7df8 }
  }`
const [top, bottom, width, lineHeight] = [40, 240, 200, 16]

/** Response times by size as SVG, both on logarithmic scales. */
export function growthChart(figures: GrowthFigures): string {
  const engines: readonly [string, readonly SizeFigures[]][] = Object.entries(figures)
  const panels = engines.filter(([, sizes]) => sizes.length > 0)
  const times = panels.flatMap(([, sizes]) => sizes.flatMap(each => Object.values(each.responseMs)))
  const [low, high] = [Math.floor(Math.log10(Math.min(...times))), Math.ceil(Math.log10(Math.max(...times)))]
  const decades = Array.from({ length: high - low + 1 }, (_, i) => Number(`1e${low + i}`))
  const y = (ms: number) => Math.round(bottom - ((Math.log10(ms) - low) / (high - low)) * (bottom - top))
  const drawn = panels.flatMap(([engine, sizes], i) => drawPanel(engine, sizes, { left: 50 + i * 380, y, decades }))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 270" role="img" aria-label="Response times by size">
<style>${lineStyle}
</style>
<rect class="paper" width="100%" height="100%"/>
${drawn.join('\n')}
</svg>
`
}

interface Axes {
  readonly left: number
  readonly y: (ms: number) => number
  readonly decades: readonly number[]
}

function drawPanel(engine: string, sizes: readonly SizeFigures[], { left, y, decades }: Axes): readonly string[] {
  const [smallest = 1, largest = 1] = [sizes[0]?.animals, sizes.at(-1)?.animals]
  const x = (animals: number) =>
    Math.round(left + (Math.log(animals / smallest) / (Math.log(largest / smallest) || 1)) * width)
  const text = (x: number, y: number, content: string, attributes = '') =>
    `<text x="${x}" y="${y + 4}" ${attributes}>${content}</text>`
  const lines = allTimed.map(timed => {
    const points = sizes.map(({ animals, responseMs }) => `${x(animals)},${y(responseMs[timed])}`)
    return `<polyline class="${timed}" points="${points.join(' ')}"/>`
  })
  const ends = allTimed.map(timed => ({ timed, end: y(sizes.at(-1)?.responseMs[timed] ?? 1) }))
  let free = 0
  const labels = ends
    .toSorted((a, b) => a.end - b.end)
    .map(({ timed, end }, i) => {
      // The labels below this one must fit too.
      const at = Math.max(Math.min(end, bottom - (ends.length - 1 - i) * lineHeight), free)
      free = at + lineHeight
      return text(left + width + 10, at, timedTitles[timed], `class="label ${timed}"`)
    })
  return [
    text(left, 18, `${engine}: milliseconds by animals`),
    ...decades.map(ms => `<path class="grid" d="M${left} ${y(ms)}h${width}"/>`),
    ...decades.map(ms => text(left - 8, y(ms), String(ms), 'text-anchor="end"')),
    ...sizes.map(({ animals }) => text(x(animals), bottom + 18, compact(animals, 'short'), 'text-anchor="middle"')),
    ...lines,
    ...labels,
  ]
}
