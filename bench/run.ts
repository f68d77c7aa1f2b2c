// `npm run bench`: what the care for durability costs and gains, as ratios between servers measured in one run.
import { type Contender, contenders, start } from './contender.ts'
import { type Paced, readPaced } from './paced.ts'
import { drive, type Measured } from './wrk.ts'

const quick = process.argv.includes('--quick')
const rounds = quick ? 1 : 3
const seconds = quick ? 2 : 5
const creators = 32
const readers = 8
const readEveryMs = 10

interface Round {
  readonly readingAlone: Paced
  readonly creating: Measured
  readonly readingMeanwhile: Paced
}

async function round(contender: Contender): Promise<Round> {
  await using server = await start(contender)
  const pets = `${server.url}/pets`
  const create = (duration: number) =>
    drive({ url: pets, connections: creators, seconds: duration, script: 'create.lua' })
  const read = () => readPaced(pets, readers, readEveryMs, seconds)
  // The list has something to show, and the code is warm, before anything is timed.
  await create(1)
  const readingAlone = await read()
  const [creating, readingMeanwhile] = await Promise.all([create(seconds), read()])
  return { readingAlone, creating, readingMeanwhile }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function main(): Promise<number> {
  if (!Bun.which('wrk')) {
    process.stderr.write('petstore bench: wrk is not installed; install the package wrk of your system\n')
    return 1
  }
  const measured = { ours: [] as Round[], commitEach: [] as Round[] }
  for (let i = 1; i <= rounds; i++) {
    for (const name of ['ours', 'commitEach'] as const) {
      process.stderr.write(`round ${i} of ${rounds}: ${contenders[name].name}\n`)
      measured[name].push(await round(contenders[name]))
    }
  }
  return report(measured.ours, measured.commitEach)
}

function report(ours: readonly Round[], commitEach: readonly Round[]): number {
  const rate = (all: readonly Round[]) => median(all.map(({ creating }) => creating.requestsPerSecond))
  const slowdown = (all: readonly Round[]) =>
    median(all.map(({ readingAlone, readingMeanwhile }) => readingMeanwhile.p99Ms / readingAlone.p99Ms))
  const ratios = ours.map(
    (own, i) => own.creating.requestsPerSecond / (commitEach[i]?.creating.requestsPerSecond ?? 0),
  )
  const failures = [...ours, ...commitEach]
    .flatMap(each => Object.values(each))
    .reduce((n, m: Paced) => n + m.failures, 0)
  say(
    `${creators} connections create, ${readers} list every ${readEveryMs} ms; medians of ${rounds} rounds of ${seconds} s`,
  )
  say(`durable creates a second:  ${rate(ours).toFixed(0)}, each by itself ${rate(commitEach).toFixed(0)}`)
  say(
    `creates, ratio:            ${median(ratios).toFixed(2)} (from ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
  )
  say(
    `readers' p99, with writers / without: ${slowdown(ours).toFixed(2)}, each by itself ${slowdown(commitEach).toFixed(2)}`,
  )
  if (failures > 0) say(`${failures} requests failed: these figures mean nothing`)
  return failures > 0 ? 1 : 0
}

process.exitCode = await main()
