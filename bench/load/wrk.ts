import { join } from 'node:path'
import type { Session } from '../harness/session.ts'
import { benchKey, type Load, type Measured, mixOfFifty, newPet, type Requests } from './load.ts'

/** Drives one server with wrk for some seconds. */
export async function driveWithWrk(
  { origin, requests, connections, seconds }: Load,
  spawn: Session['spawn'],
): Promise<Measured> {
  const { path, script = [], scriptArgs = [] } = wrkArgsFor(requests)
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', ...script]
  const wrk = spawn(
    ['wrk', ...args, '-H', `Authorization: Bearer ${benchKey}`, `${origin}${path}`, '--', ...scriptArgs],
    { stdout: 'pipe', stderr: 'inherit' },
  )
  const report = await new Response(wrk.stdout as ReadableStream).text()
  if ((await wrk.exited) !== 0) throw new Error(`wrk failed: ${report}`)
  return read(report)
}

interface WrkArgs {
  readonly path: string
  readonly script?: readonly string[]
  readonly scriptArgs?: readonly string[]
}

function wrkArgsFor(requests: Requests): WrkArgs {
  const script = (name: string) => ['-s', join(import.meta.dir, `${name}.lua`)]
  switch (requests.kind) {
    case 'read':
      return { path: requests.path }
    case 'create':
      return { path: requests.createPath, script: script('create'), scriptArgs: [newPet] }
    case 'get': {
      const { getPrefix, fromId, toId } = requests
      return { path: '/', script: script('get'), scriptArgs: [getPrefix, String(fromId), String(toId)] }
    }
    case 'mix': {
      const { path, createPath, getPrefix, fromId, toId } = requests
      const shares = [mixOfFifty.list, mixOfFifty.get, mixOfFifty.create]
      const scriptArgs = [getPrefix, fromId, toId, path, createPath, newPet, ...shares].map(String)
      return { path: '/', script: script('mix'), scriptArgs }
    }
  }
}

function read(report: string): Measured {
  return {
    requestsPerSecond: Number(found(report, /Requests\/sec:\s+([\d.]+)/)),
    requests: Number(found(report, /(\d+) requests in/)),
    p50Ms: milliseconds(found(report, /^\s+50%\s+(\S+)/m)),
    p99Ms: milliseconds(found(report, /^\s+99%\s+(\S+)/m)),
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
