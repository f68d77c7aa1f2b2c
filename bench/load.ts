import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { animalAt } from './catalogue.ts'
import { type Contender, petPath, petsPath, type Workload } from './contenders.ts'

/** Any 16 characters: the servers listen on 127.0.0.1 for a few minutes. */
export const benchKey = 'bench-key-0123456789'
export const benchAuthorization = `Bearer ${benchKey}`
/** The animal that the fixed-bytes server sends. */
export const fixedPetId = 555_555
export const newPet = '{"name":"Rex","categoryId":7,"status":"available"}'

/** A server that the load goes to. */
export interface Target {
  readonly contender: Contender
  /** http://127.0.0.1:PORT */
  readonly origin: string
  readonly animals: number
}

export interface Measured {
  readonly requestsPerSecond: number
  readonly requests: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Responses other than 2xx, and broken connections. */
  readonly failures: number
}

/** How wrk sends its requests. */
export interface Sending {
  /** 64 by default. */
  readonly connections?: number
  /** By default 10, a lower priority than the server's: in production the load comes from other machines. */
  readonly niceness?: number
}

export async function sendLoad(
  bench: Bench,
  target: Target,
  workload: Workload,
  { connections = 64, niceness = 10 }: Sending = {},
): Promise<Measured> {
  const flags = ['-t1', `-c${connections}`, `-d${bench.seconds}s`, '--latency']
  const command = ['nice', '-n', String(niceness), 'wrk', ...flags, '-H', `Authorization: ${benchAuthorization}`]
  const child = bench.spawn([...command, ...requestsOf(bench, target, workload)], { stdout: 'pipe', stderr: 'inherit' })
  const report = await new Response(child.stdout as ReadableStream).text()
  if ((await child.exited) !== 0) throw new Error(`wrk failed: ${report}`)
  return readReport(report)
}

function requestsOf(bench: Bench, { contender, origin, animals }: Target, workload: Workload): readonly string[] {
  // Without a script wrk sends a fixed request, which costs it least.
  if (workload === 'list') return [`${origin}${petsPath}`]
  if (workload === 'same') return [`${origin}${petPath(fixedPetId)}`]
  const paths = join(bench.folder(), 'paths')
  writeFileSync(paths, pathsOf(workload, contender, animals).join('\n'))
  const kind = workload === 'mix' || workload === 'create' ? workload : 'read'
  return ['-s', join(import.meta.dir, 'wrk.lua'), `${origin}${petsPath}`, '--', kind, paths, petsPath, newPet]
}

const pathsCount = 10_000

/** Paths of GET requests, in the same order for every contender. In the mix, 4 of 49 get an animal; half of the others are first pages. */
function pathsOf(workload: Workload, contender: Contender, animals: number): readonly string[] {
  const random = randomNumbers()
  // Ids of the most common length: these responses are as long as the one of the fixed-bytes server.
  const fromId = 10 ** Math.floor(Math.log10(animals / 2))
  const get = () => petPath(fromId + random(Math.min(fromId * 10, animals) - fromId))
  const page = () => pagePath(contender, random(animals - 1_000), random)
  const mixed = (turn: number) => (turn % 49 < 4 ? get() : turn % 2 === 0 ? petsPath : page())
  const read = workload === 'mix' ? mixed : workload === 'pages' ? page : get
  return Array.from({ length: pathsCount }, (_, turn) => read(turn))
}

/** A page after an animal: half of them of one status, with a limit from 10 to 100. */
function pagePath({ cursor }: Contender, after: number, random: (below: number) => number): string {
  const limit = [10, 20, 50, 100][random(4)]
  const status = random(2) === 0 ? animalAt(random(3)).status : undefined
  return `${petsPath}?limit=${limit}${status ? `&status=${status}` : ''}&cursor=${cursor(after, status)}`
}

/** The same sequence each time. */
function randomNumbers(): (below: number) => number {
  let state = 4711
  return below => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

function readReport(report: string): Measured {
  const found = (pattern: RegExp): string => {
    const value = pattern.exec(report)?.[1]
    if (value === undefined) throw new Error(`wrk printed no ${pattern}: ${report}`)
    return value
  }
  const socketErrors = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(report) ?? []
  const badResponses = /Non-2xx or 3xx responses: (\d+)/.exec(report)?.[1] ?? '0'
  return {
    requestsPerSecond: Number(found(/Requests\/sec:\s+([\d.]+)/)),
    requests: Number(found(/(\d+) requests in/)),
    p50Ms: milliseconds(found(/^\s+50%\s+(\S+)/m)),
    p99Ms: milliseconds(found(/^\s+99%\s+(\S+)/m)),
    failures: [badResponses, ...socketErrors.slice(1)].reduce((sum, count) => sum + Number(count), 0),
  }
}

function milliseconds(text: string): number {
  const [, amount = '', unit = ''] = /^([\d.]+)(us|ms|s)$/.exec(text) ?? []
  return Number(amount) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN)
}
