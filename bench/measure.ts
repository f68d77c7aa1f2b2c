import { allLoads, type Load, loads } from './loads.ts'
import type { Contender, Pair } from './parts.ts'
import { Server, Stores } from './server.ts'

/** Of each server in a pair of turns. */
const turnSeconds = 2
/** Within a pair, the servers alternate after this time: the machine's speed changes from one second to the next. */
const sliceMs = 200
/** In between, a server answers what was sent to it. */
const gapMs = 30
/** Quartiles further apart than this part of the median say nothing: the load is repeated. */
const spreadMax = 0.15
const attemptsMax = 3

/** What one server has, divided by what the other one has at the same time. */
interface Ratios {
  readonly requestsPerSecond: number[]
  readonly cpuTime: number[]
}

/** Starts all servers, compares them in pairs under one load or all, and returns Markdown. */
export async function measure(pairs: readonly Pair[], count: number, only?: string): Promise<string> {
  const isUsed = (load: Load) => load === (only ?? load) && pairs.some(({ loads }) => loads.includes(load))
  const used = allLoads.filter(isUsed)
  const [first] = used
  if (!first) return `It has no load "${only}".`
  await using stack = new AsyncDisposableStack()
  const stores = stack.use(new Stores())
  const stop = () => void stack.disposeAsync().finally(() => process.exit(130))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, stop)
    stack.defer(() => void process.off(signal, stop))
  }
  const servers = new Map<Contender, Server>()
  for (const contender of new Set(pairs.flatMap(({ server, against }) => [server, against]))) {
    const server = stack.use(new Server(contender, await stores.fill(contender), stores.folder))
    log(`${contender.name} starts`)
    await server.verify()
    servers.set(contender, server)
  }
  const serverOf = (contender: Contender) => servers.get(contender) as Server
  const found = new Map<string, Ratios>()
  for (const load of used) {
    // Runtimes compile hot code.
    for (const server of servers.values()) await server.send(load, turnSeconds).sent
    for (const pair of pairs.filter(({ loads }) => loads.includes(load))) {
      const compare = () => compareUnder(load, serverOf(pair.server), serverOf(pair.against), count)
      found.set(`${pair.name} ${load}`, await untilClear(`${loads[load]}: ${pair.name}`, compare))
    }
  }
  const ratios = (title: string, figure: keyof Ratios) => {
    const cell = (pair: Pair, load: Load) => show(found.get(`${pair.name} ${load}`)?.[figure])
    const rows = pairs.map(pair => [pair.name, ...used.map(load => cell(pair, load))])
    return table([title, ...used.map(load => loads[load])], rows)
  }
  return [
    ratios('Requests per second', 'requestsPerSecond'),
    ratios('CPU time per request', 'cpuTime'),
    await tableOfServers(first, servers),
  ].join('\n\n')
}

/** Undisturbed turns: a pause would show as latency. */
async function tableOfServers(load: Load, servers: ReadonlyMap<Contender, Server>): Promise<string> {
  const rounds = await Array.fromAsync({ length: 5 }, () =>
    Array.fromAsync(servers.values(), server => server.send(load, turnSeconds).sent),
  )
  const rows = [...servers].map(([{ name }, server], index) => {
    const turns = rounds.flatMap(round => round[index] ?? [])
    const medians = [turns.map(turn => turn.requestsPerSecond), turns.map(turn => turn.p99Ms), [server.memoryMb()]]
    return [name, ...medians.map(values => showNumber(quartiles(values).median))]
  })
  return table([loads[load], 'Requests per second', 'p99, ms', 'Memory, MB'], rows)
}

/** Repeats a comparison until its quartiles are close together, and returns the clearest one. */
async function untilClear(title: string, compare: () => Promise<Ratios>): Promise<Ratios> {
  const found = [await compare()]
  const best = () => found.toSorted((a, b) => spreadOf(a) - spreadOf(b))[0] as Ratios
  while (spreadOf(best()) > spreadMax && found.length < attemptsMax) found.push(await compare())
  const repeated = found.length === 1 ? '' : `, in ${found.length} attempts`
  const gaveUp = spreadOf(best()) > spreadMax ? '; gave up: the quartiles are too far apart' : ''
  log(`${title}: ${show(best().requestsPerSecond)}, CPU time ${show(best().cpuTime)}${repeated}${gaveUp}`)
  return best()
}

function spreadOf(ratios: Ratios): number {
  const all = [ratios.requestsPerSecond, ratios.cpuTime].map(quartiles)
  return Math.max(...all.map(({ low, median, high }) => (high - low) / median))
}

async function compareUnder(load: Load, ours: Server, theirs: Server, count: number): Promise<Ratios> {
  const ratios: Ratios = { requestsPerSecond: [], cpuTime: [] }
  for (let pair = 0; pair < count; pair++) {
    const sendings = [ours, theirs].map(server => server.send(load, turnSeconds * 2))
    const all = Promise.all(sendings.map(({ sent }) => sent))
    // Until it is awaited.
    all.catch(() => {})
    let [active, waiting] = pair % 2 === 0 ? sendings : sendings.toReversed()
    waiting?.wait()
    for (let ms = 0; ms < turnSeconds * 2_000; ms += sliceMs + gapMs) {
      await Bun.sleep(sliceMs)
      active?.pause()
      await Bun.sleep(gapMs)
      waiting?.resume()
      ;[active, waiting] = [waiting, active]
    }
    waiting?.resume()
    const [our, their] = await all
    if (!our || !their) continue
    ratios.requestsPerSecond.push(our.requestsPerSecond / their.requestsPerSecond)
    ratios.cpuTime.push(our.cpuTime / their.cpuTime)
  }
  return ratios
}

/** The median, and the values between which the middle half lies. */
export function quartiles(values: readonly number[]) {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part: number) => sorted[Math.round((sorted.length - 1) * part)] ?? Number.NaN
  return { low: at(0.25), median: at(0.5), high: at(0.75) }
}

/** `5.88 (5.62–5.92)` */
function show(values: readonly number[] | undefined): string {
  if (!values) return '–'
  const { low, median, high } = quartiles(values)
  return `${showNumber(median)} (${showNumber(low)}–${showNumber(high)})`
}

export const showNumber = (value: number) => value.toLocaleString('en', { maximumSignificantDigits: 3 })

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|---|${'--:|'.repeat(head.length - 1)}`, ...rows.map(line)].join('\n')
}

function log(line: string): void {
  process.stderr.write(`${String(Math.round(performance.now() / 1_000)).padStart(5)} s  ${line}\n`)
}
