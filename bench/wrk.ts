import { join } from 'node:path'
import { benchKey } from './contender.ts'

export interface Load {
  readonly url: string
  readonly connections: number
  readonly seconds: number
  /** A script beside this file, for other requests than GET. */
  readonly script?: string
}

interface Measured {
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers other than 2xx, and broken connections. */
  readonly failures: number
}

/** Drives one server with wrk for some seconds. */
export async function drive({ url, connections, seconds, script }: Load): Promise<Measured> {
  const args = [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '--latency',
    '-H',
    `Authorization: Bearer ${benchKey}`,
  ]
  const scripted = script ? ['-s', join(import.meta.dir, script)] : []
  // The load would come from another machine: here it stands back for the server.
  const wrk = Bun.spawn(['nice', '-n', '10', 'wrk', ...args, ...scripted, url], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const report = await wrk.stdout.text()
  if ((await wrk.exited) !== 0) throw new Error(`wrk failed: ${report}`)
  return {
    requestsPerSecond: Number(found(report, /Requests\/sec:\s+([\d.]+)/)),
    p50Ms: milliseconds(found(report, /50%\s+(\S+)/)),
    p99Ms: milliseconds(found(report, /99%\s+(\S+)/)),
    failures: Number(/Non-2xx or 3xx responses: (\d+)/.exec(report)?.[1] ?? 0) + socketErrors(report),
  }
}

function found(report: string, pattern: RegExp): string {
  const value = pattern.exec(report)?.[1]
  if (value === undefined) throw new Error(`wrk reported nothing for ${pattern}: ${report}`)
  return value
}

function milliseconds(text: string): number {
  const [, amount = '', unit = ''] = /^([\d.]+)(us|ms|s)$/.exec(text) ?? []
  return Number(amount) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN)
}

function socketErrors(report: string): number {
  const [, ...counts] =
    /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(report) ?? []
  return counts.reduce((sum, count) => sum + Number(count), 0)
}
