import { join } from 'node:path'
import type { Bench } from './bench.ts'
import type { Contender, Workload } from './contenders.ts'

/** Any 16 characters: the servers listen on 127.0.0.1 for a few minutes. */
export const benchKey = 'bench-key-0123456789'
export const benchAuthorization = `Bearer ${benchKey}`
export const newPet = '{"name":"Rex","categoryId":7,"status":"available"}'

/** A server that the load goes to. */
export interface Target {
  readonly contender: Contender
  /** http://127.0.0.1:PORT */
  readonly origin: string
  readonly authorization: string
  readonly animals: number
}

export interface Measured {
  readonly requestsPerSecond: number
  readonly requests: number
  readonly p99Ms: number
  /** Responses other than 2xx, and broken connections. */
  readonly failures: number
}

/** Sends requests with wrk over 64 connections. A higher niceness is a lower priority. */
export async function sendLoad(bench: Bench, target: Target, workload: Workload, niceness: number): Promise<Measured> {
  const command = ['nice', '-n', String(niceness), ...wrkCommand(bench, target, workload)]
  const child = bench.spawn(command, { stdout: 'pipe', stderr: 'inherit' })
  const report = await new Response(child.stdout as ReadableStream).text()
  if ((await child.exited) !== 0) throw new Error(`wrk failed: ${report}`)
  return readReport(report)
}

function wrkCommand({ seconds }: Bench, target: Target, workload: Workload): readonly string[] {
  const { contender, origin, authorization, animals } = target
  const { pets, pet, list } = contender.paths
  const flags = ['-t1', '-c64', `-d${seconds}s`, '--latency', '-H', `Authorization: ${authorization}`]
  // Without a script wrk sends a fixed request, which costs it least.
  if (workload === 'list' || workload === 'filtered') return ['wrk', ...flags, `${origin}${contender.paths[workload]}`]
  // Ids of the most common length: these responses are as long as the one of the fixed-bytes server.
  const fromId = 10 ** Math.floor(Math.log10(animals / 2))
  const toId = Math.min(fromId * 10, animals) - 1
  const args = [workload, pets, pet, list, String(fromId), String(toId), newPet]
  return ['wrk', ...flags, '-s', join(import.meta.dir, 'wrk.lua'), `${origin}${pets}`, '--', ...args]
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
    p99Ms: milliseconds(found(/^\s+99%\s+(\S+)/m)),
    failures: [badResponses, ...socketErrors.slice(1)].reduce((sum, count) => sum + Number(count), 0),
  }
}

function milliseconds(text: string): number {
  const [, amount = '', unit = ''] = /^([\d.]+)(us|ms|s)$/.exec(text) ?? []
  return Number(amount) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN)
}
