import { join } from 'node:path'
import type { Session } from './session.ts'
import { petPath, type Requests } from './workloads.ts'

/** Any 16 characters: the servers listen on 127.0.0.1 for a few minutes. */
export const benchKey = 'bench-key-0123456789'
export const benchAuthorization = `Bearer ${benchKey}`
export const newPet = '{"name":"Rex","categoryId":7,"status":"available"}'

interface Load {
  readonly origin: string
  readonly authorization: string
  readonly requests: Requests
  readonly connections: number
  readonly seconds: number
  /** Whether the server's threads occupy all cores: then the load would get none at a lower priority. */
  readonly samePriority?: boolean | undefined
}

export interface Measured {
  readonly requestsPerSecond: number
  readonly requests: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Responses other than 2xx, and broken connections. */
  readonly failures: number
}

/** A program that sends load. */
export interface Driver {
  readonly name: 'wrk' | 'autocannon'
  drive(load: Load): Promise<Measured>
}

/** wrk if it is installed; otherwise autocannon, which npm installs but which is slower itself. */
export function createDriver(session: Session): Driver {
  const run = async (command: readonly string[], { samePriority = false }: Load) => {
    // In production the load comes from other machines, so here it gives way to the server.
    const priority = samePriority ? '0' : '10'
    const child = session.spawn(['nice', '-n', priority, ...command], { stdout: 'pipe', stderr: 'inherit' })
    const report = await new Response(child.stdout as ReadableStream).text()
    if ((await child.exited) !== 0) throw new Error(`${command[0]} failed: ${report}`)
    return report
  }
  if (Bun.which('wrk')) return { name: 'wrk', drive: async load => readWrk(await run(wrkCommand(load), load)) }
  return { name: 'autocannon', drive: async load => readAutocannon(await run(autocannonCommand(load), load)) }
}

function wrkCommand({ origin, authorization, requests, connections, seconds }: Load): readonly string[] {
  const { kind, petsPath, petFormat, listPath, fromId, toId } = requests
  const flags = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency']
  const headers = ['-H', `Authorization: ${authorization}`]
  // Without a script wrk sends a fixed request, which costs it least.
  if (kind === 'read') return ['wrk', ...flags, ...headers, `${origin}${listPath}`]
  const script = ['-s', join(import.meta.dir, 'wrk.lua')]
  const args = [kind, petsPath, petFormat, listPath, fromId, toId, newPet, `${crypto.randomUUID()}-`].map(String)
  return ['wrk', ...flags, ...headers, ...script, `${origin}${petsPath}`, '--', ...args]
}

function readWrk(report: string): Measured {
  const found = (pattern: RegExp): string => {
    const value = pattern.exec(report)?.[1]
    if (value === undefined) throw new Error(`wrk printed no ${pattern}: ${report}`)
    return value
  }
  const socketErrors =
    /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(report)?.slice(1) ?? []
  const badResponses = /Non-2xx or 3xx responses: (\d+)/.exec(report)?.[1] ?? '0'
  return {
    requestsPerSecond: Number(found(/Requests\/sec:\s+([\d.]+)/)),
    requests: Number(found(/(\d+) requests in/)),
    p50Ms: milliseconds(found(/^\s+50%\s+(\S+)/m)),
    p99Ms: milliseconds(found(/^\s+99%\s+(\S+)/m)),
    failures: [badResponses, ...socketErrors].reduce((sum, count) => sum + Number(count), 0),
  }
}

function milliseconds(text: string): number {
  const [, amount = '', unit = ''] = /^([\d.]+)(us|ms|s)$/.exec(text) ?? []
  return Number(amount) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN)
}

function autocannonCommand(load: Load): readonly string[] {
  const { origin, connections, seconds } = load
  const plan = { url: origin, connections, duration: seconds, requests: autocannonRequests(load) }
  return ['node', join(import.meta.dir, 'autocannon.js'), JSON.stringify(plan)]
}

function autocannonRequests({ authorization, requests }: Load): readonly object[] {
  const { kind, petsPath, petFormat, listPath, fromId, toId } = requests
  const read = (path: string) => ({ method: 'GET', path, headers: { authorization } })
  const get = () => read(petPath(petFormat, fromId + Math.floor(Math.random() * (toId - fromId))))
  const headers = { authorization, 'content-type': 'application/json' }
  const create = { method: 'POST', path: petsPath, headers, body: newPet }
  if (kind === 'read') return [read(listPath)]
  if (kind === 'create' || kind === 'keyed') return [{ ...create, keyed: kind === 'keyed' }]
  if (kind === 'get') return Array.from({ length: 200 }, get)
  // The same mix as in wrk.lua.
  return Array.from({ length: 200 }, (_, i) => {
    const turn = (i * 11) % 50
    if (turn < 45) return read(listPath)
    return turn < 49 ? get() : create
  })
}

function readAutocannon(report: string): Measured {
  const counted: Omit<Measured, 'requestsPerSecond'> & { readonly seconds: number } = JSON.parse(report)
  return { ...counted, requestsPerSecond: counted.requests / counted.seconds }
}
