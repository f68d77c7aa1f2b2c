import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import type { Contender, Given } from './contenders.ts'
import { benchAuthorization, benchKey } from './load.ts'
import { type Session, stop } from './session.ts'

/** A contender that answers requests. */
export interface Server extends AsyncDisposable {
  readonly contender: Contender
  /** http://127.0.0.1:PORT */
  readonly origin: string
  readonly authorization: string
  readonly animals: number
  readonly firstResponseMs: number
  usage(): Usage
}

const startMsMax = 30_000
const pollMs = 2

/** Starts a contender in its own folder, on a free port, with its own copy of the catalogue. */
export async function start(session: Session, contender: Contender, given: Given): Promise<Server> {
  const folder = session.folder(contender.name)
  const place = { folder, port: await freePort(), file: join(folder, 'served') }
  await contender.prepare(place, given, session)
  const origin = `http://127.0.0.1:${place.port}`
  const authorization = contender.authorization?.(place) ?? benchAuthorization
  const { PATH = '', HOME = '' } = process.env
  const startedMs = performance.now()
  const spawn = () =>
    session.spawn(contender.command(place), {
      cwd: folder,
      env: { PATH, HOME, NODE_ENV: 'production', PETSTORE_API_KEY: benchKey, ...contender.env },
      stdout: Bun.file(join(folder, 'stdout')),
      stderr: Bun.file(join(folder, 'stderr')),
    })
  const first = spawn()
  const responds = await waitForResponse(`${origin}${contender.paths.list}`, authorization, first)
  const firstResponseMs = performance.now() - startedMs
  if (!responds) {
    await stop(first)
    throw new Error(`did not start: ${lastLine(folder)}`)
  }
  const instances = [first, ...Array.from({ length: (contender.instances ?? 1) - 1 }, spawn)]
  return {
    contender,
    origin,
    authorization,
    animals: Math.min(given.catalogue.animals, contender.animalsMax ?? Number.POSITIVE_INFINITY),
    firstResponseMs,
    usage: () => sumOf(instances.map(({ pid }) => usageOf(pid))),
    async [Symbol.asyncDispose]() {
      await Promise.all(instances.map(stop))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function waitForResponse(url: string, authorization: string, child: Subprocess): Promise<boolean> {
  const deadlineMs = performance.now() + startMsMax
  while (performance.now() < deadlineMs && child.exitCode === null) {
    try {
      const response = await fetch(url, { headers: { authorization } })
      await response.arrayBuffer()
      return response.ok
    } catch {
      await Bun.sleep(pollMs)
    }
  }
  return false
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

function lastLine(folder: string): string {
  const outputs = ['stderr', 'stdout'].map(file => readFileSync(join(folder, file), 'utf8').trim())
  return outputs.find(Boolean)?.split('\n').at(-1) ?? 'it printed nothing'
}

/** The CPU time and memory of a server since its start, with all its threads and child processes. */
interface Usage {
  readonly cpuMs: number
  /** The part of `cpuMs` that threads named `Worker` used: Bun's name for them. */
  readonly workerMs: number
  readonly peakMb: number
}

/** Linux reports CPU time in units of 10 ms. */
const tickMs = 10

/** Not a number on systems without /proc. */
export function usageOf(pid: number): Usage {
  if (!existsSync(`/proc/${pid}/stat`)) return { cpuMs: Number.NaN, workerMs: Number.NaN, peakMb: Number.NaN }
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const peakKb = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0)
  const threads = readdirSync(`/proc/${pid}/task`).map(thread => `/proc/${pid}/task/${thread}`)
  const children = threads
    .flatMap(thread => readFileSync(`${thread}/children`, 'utf8').split(' '))
    .filter(Boolean)
    .map(child => usageOf(Number(child)))
  const workers = threads
    .map(thread => readFileSync(`${thread}/stat`, 'utf8'))
    .filter(stat => stat.includes('(Worker)'))
  const own = {
    cpuMs: cpuMsIn(readFileSync(`/proc/${pid}/stat`, 'utf8')),
    workerMs: workers.reduce((sum, stat) => sum + cpuMsIn(stat), 0),
    peakMb: (peakKb * 1_024) / 1e6,
  }
  return sumOf([own, ...children])
}

function cpuMsIn(stat: string): number {
  // The program's name, in parentheses, may contain spaces: count the fields after it.
  const fields = stat.replace(/^.*\) /s, '').split(' ')
  return (Number(fields[11]) + Number(fields[12])) * tickMs
}

function sumOf(usages: readonly Usage[]): Usage {
  return usages.reduce((sum, { cpuMs, workerMs, peakMb }) => ({
    cpuMs: sum.cpuMs + cpuMs,
    workerMs: sum.workerMs + workerMs,
    peakMb: sum.peakMb + peakMb,
  }))
}
