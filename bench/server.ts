import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, until } from '../test/support/process.ts'
import type { Catalogues } from './catalogues.ts'
import type { Contender, Part } from './contenders.ts'
import { type Load, newPet, petsPath, requestsOf } from './loads.ts'

/** Any 16 characters: the servers listen on 127.0.0.1 for a few minutes. */
const apiKey = 'bench-key-0123456789'
export const authorization = `Bearer ${apiKey}`

/** A contender that answers requests. */
export interface Server extends AsyncDisposable {
  readonly contender: Contender
  /** http://127.0.0.1:PORT */
  readonly origin: string
  /** Gone with the server. */
  readonly folder: string
  usage(): ReturnType<typeof usageOf>
}

/** Starts a contender on a free port, with its own copy of its catalogue. */
export async function start(contender: Contender, catalogues: Catalogues): Promise<Server> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.adopt(catalogues.newFolder(), path => rmSync(path, { recursive: true }))
  const url = stack.adopt(await catalogues.copy(contender, folder), each => catalogues.drop(each))
  const port = freePort()
  const { PATH = '', HOME = '' } = process.env
  const settings = { PORT: String(port), DATABASE_URL: url, PETSTORE_API_KEY: apiKey, ...contender.env }
  const sharing = contender.processes ? { PETSTORE_REUSE_PORT: 'true' } : {}
  const processes = Array.from({ length: contender.processes ?? 1 }, () => {
    const child = Bun.spawn([...contender.command], {
      cwd: folder,
      env: { PATH, HOME, NODE_ENV: 'production', ...settings, ...sharing },
      stdout: Bun.file(join(folder, 'stdout')),
      stderr: Bun.file(join(folder, 'stderr')),
    })
    // At once: nothing uses its data again.
    stack.defer(() => {
      child.kill('SIGKILL')
      return child.exited.then(() => {})
    })
    return child
  })
  const origin = `http://127.0.0.1:${port}`
  const responds = async () => {
    if (processes.some(({ exitCode }) => exitCode !== null)) {
      throw new Error(`${contender.name} did not start: ${readFileSync(join(folder, 'stderr'), 'utf8')}`)
    }
    const response = await fetch(`${origin}${petsPath}`, { headers: { authorization } }).catch(() => undefined)
    return response?.ok || undefined
  }
  await until(`${contender.name} to start`, responds)
  const owned = stack.move()
  const usage = () => usageOf(processes.map(({ pid }) => pid))
  return { contender, origin, folder, usage, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Linux reports CPU time in units of 10 ms. */
const tickMs = 10

/** The CPU time of all threads and the peak of the memory since the start; not a number on systems without /proc. */
function usageOf(pids: readonly number[]): { readonly cpuMs: number; readonly peakMb: number } {
  if (!existsSync('/proc/self/stat')) return { cpuMs: Number.NaN, peakMb: Number.NaN }
  let [ticks, peakKb] = [0, 0]
  for (const pid of pids) {
    // The program's name, in parentheses, may contain spaces: count the fields after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    ticks += Number(fields[11]) + Number(fields[12])
    peakKb += Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  }
  return { cpuMs: ticks * tickMs, peakMb: (peakKb * 1_024) / 1e6 }
}

interface Sent {
  readonly requests: number
  readonly seconds: number
  readonly p99Ms: number
  /** Responses other than 2xx, and broken connections. */
  readonly failures: number
}

/** Sends a load with wrk. */
export async function send(load: Load, server: Server, seconds: number, { connections = 64 }: Part): Promise<Sent> {
  // A lower priority than the server's: the load usually comes from elsewhere. Several processes would leave wrk no core.
  const niceness = server.contender.processes ? 0 : 10
  const file = join(server.folder, 'requests')
  writeFileSync(file, requestsOf(load, server.contender).join('\n'))
  const flags = ['-t1', `-c${connections}`, `-d${seconds}s`, '-H', `Authorization: ${authorization}`]
  const script = ['-s', join(import.meta.dir, 'wrk.lua'), server.origin, '--', file, petsPath, newPet]
  const wrk = Bun.spawn(['nice', '-n', String(niceness), 'wrk', ...flags, ...script])
  const output = await wrk.stdout.text()
  if ((await wrk.exited) !== 0) throw new Error(`wrk failed: ${output}`)
  return JSON.parse(output.trim().split('\n').at(-1) ?? '')
}
