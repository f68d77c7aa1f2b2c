import { join } from 'node:path'
import type { Session } from '../harness/session.ts'
import { benchKey, type Load, type Measured, mixOfFifty, newPet, type Requests } from './load.ts'

const scatteredRequests = 200

/** What autocannon counts, as autocannon.js passes it on. */
interface Counted {
  readonly requests: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failures: number
}

/** Drives one server with autocannon for some seconds: slower than wrk itself, but npm can install it. */
export async function driveWithAutocannon(
  { origin, requests, connections, seconds }: Load,
  spawn: Session['spawn'],
): Promise<Measured> {
  const plan = { url: origin, connections, duration: seconds, requests: requestsFor(requests) }
  const program = spawn(['node', join(import.meta.dir, 'autocannon.js'), JSON.stringify(plan)], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const report = await new Response(program.stdout as ReadableStream).text()
  if ((await program.exited) !== 0) throw new Error('autocannon failed: is it installed in bench/?')
  const counted: Counted = JSON.parse(report)
  return { ...counted, requestsPerSecond: counted.requests / counted.seconds }
}

const authorization = `Bearer ${benchKey}`
const read = (path: string) => ({ method: 'GET', path, headers: { authorization } })
const create = (path: string) => ({
  method: 'POST',
  path,
  headers: { authorization, 'content-type': 'application/json' },
  body: newPet,
})

function requestsFor(requests: Requests) {
  switch (requests.kind) {
    case 'read':
      return [read(requests.path)]
    case 'create':
      return [create(requests.createPath)]
    case 'get':
      return Array.from({ length: scatteredRequests }, () => read(somePath(requests)))
    case 'mix': {
      const { list, get } = mixOfFifty
      return Array.from({ length: scatteredRequests }, (_, i) => {
        const turn = (i * 11) % 50
        if (turn < list) return read(requests.path)
        return turn < list + get ? read(somePath(requests)) : create(requests.createPath)
      })
    }
  }
}

function somePath({ getPrefix, fromId, toId }: { getPrefix: string; fromId: number; toId: number }): string {
  return `${getPrefix}${fromId + Math.floor(Math.random() * (toId - fromId))}`
}
