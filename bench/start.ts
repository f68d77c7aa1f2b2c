import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { type Cluster, startCluster } from '../test/support/postgres.ts'
import { freePort } from '../test/support/process.ts'
import { type Bench, stop } from './bench.ts'
import { type Contender, type Given, petsPath } from './contenders.ts'
import { benchAuthorization, benchKey, type Target } from './load.ts'

/** A contender that answers requests. */
export interface Server extends Target, AsyncDisposable {
  usage(): Usage
}

const startMsMax = 30_000
const pollMs = 2

/** Starts a contender in its own folder, on a free port, with its own copy of the catalogue. */
export async function start(bench: Bench, contender: Contender, given: Given): Promise<Server> {
  const folder = bench.folder()
  const place = { port: freePort(), file: join(folder, 'served') }
  await contender.prepare(place, given, bench)
  const origin = `http://127.0.0.1:${place.port}`
  const { PATH = '', HOME = '' } = process.env
  const spawn = () =>
    bench.spawn(contender.command(place), {
      cwd: folder,
      env: { PATH, HOME, NODE_ENV: 'production', PETSTORE_API_KEY: benchKey, ...contender.env },
      stdout: Bun.file(join(folder, 'stdout')),
      stderr: Bun.file(join(folder, 'stderr')),
    })
  const first = spawn()
  await waitForResponse(`${origin}${petsPath}`, first).catch(async () => {
    await stop(first)
    throw new Error(`${contender.name} did not start: ${readFileSync(join(folder, 'stderr'), 'utf8').trim()}`)
  })
  const processes = [first, ...Array.from({ length: (contender.processes ?? 1) - 1 }, spawn)]
  return {
    contender,
    origin,
    animals: given.catalogue.animals,
    usage: () => sumOf(processes.map(({ pid }) => usageOf(pid))),
    async [Symbol.asyncDispose]() {
      await Promise.all(processes.map(stop))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function waitForResponse(url: string, child: Subprocess): Promise<void> {
  const deadlineMs = performance.now() + startMsMax
  while (performance.now() < deadlineMs && child.exitCode === null) {
    const response = await fetch(url, { headers: { authorization: benchAuthorization } }).catch(() => undefined)
    await response?.arrayBuffer()
    if (response?.ok) return
    await Bun.sleep(pollMs)
  }
  throw new Error('no response')
}

/** The CPU time and memory of a server since its start, with all its threads. */
interface Usage {
  readonly cpuMs: number
  readonly peakMb: number
}

/** Linux reports CPU time in units of 10 ms. */
const tickMs = 10

/** Not a number on systems without /proc. */
function usageOf(pid: number): Usage {
  if (!existsSync(`/proc/${pid}/stat`)) return { cpuMs: Number.NaN, peakMb: Number.NaN }
  // The program's name, in parentheses, may contain spaces: count the fields after it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  const peakKb = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * tickMs, peakMb: (peakKb * 1_024) / 1e6 }
}

function sumOf(usages: readonly Usage[]): Usage {
  return usages.reduce((sum, { cpuMs, peakMb }) => ({ cpuMs: sum.cpuMs + cpuMs, peakMb: sum.peakMb + peakMb }))
}

/** Undefined if PostgreSQL cannot run here. */
export async function startPostgres(bench: Bench): Promise<Cluster | undefined> {
  return startCluster().catch((error: Error) => void bench.log(`left out: ${error.message}`))
}
