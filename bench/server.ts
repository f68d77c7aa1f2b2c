import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask, type Cluster, startCluster, stopSharedCluster } from '../test/support/postgres.ts'
import { freePort, program, readOutput, residentBytes, temporaryFolder, until } from '../test/support/process.ts'
import { animalAt, type Load, petsPath, requestsOf } from './loads.ts'
import type { Contender } from './parts.ts'

/** Any key of 16 characters or more: the servers listen on 127.0.0.1 for a few minutes. */
const apiKey = 'bench-key-0123456789'
const newPet = '{"name":"Rex","categoryId":7,"status":"available"}'

/** New stores with animals, gone at the end. */
export class Stores implements AsyncDisposable {
  // Not in /tmp, which may be memory.
  readonly #folder = temporaryFolder('/var/tmp')
  readonly folder = this.#folder.path
  #cluster: Cluster | undefined
  #files = 0

  /** The address of a new store with the contender's animals. */
  async fill({ engine, animals }: Contender): Promise<string> {
    const url = engine === 'SQLite' ? `sqlite:${join(this.folder, `${++this.#files}.db`)}` : await this.#newDatabase()
    const stdin = new Response(linesOf(animals)).body
    const child = Bun.spawn([program, 'import', '--keep-ids', '-', '--database-url', url], { stdin, stderr: 'pipe' })
    const messages = await child.stderr.text()
    if ((await child.exited) !== 0) throw new Error(`petstore import failed: ${messages}`)
    // Otherwise PostgreSQL would do this during a measurement, or know nothing of the table.
    if (engine === 'PostgreSQL') await ask(url, 'VACUUM (ANALYZE) pets')
    return url
  }

  async #newDatabase(): Promise<string> {
    // Otherwise the tests' server does not wait for the disk.
    this.#cluster ??= await startCluster(['fsync = on', 'autovacuum = off'])
    return (await this.#cluster.newDatabase()).url
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster?.[Symbol.asyncDispose]()
    await stopSharedCluster()
    this.#folder[Symbol.dispose]()
  }
}

/** NDJSON in chunks: ten million lines are too long for one string. */
async function* linesOf(animals: number): AsyncGenerator<Uint8Array> {
  for (let after = 0; after < animals; after += 1_000) {
    const lines = Array.from({ length: 1_000 }, (_, i) => `${JSON.stringify(animalAt(after + 1 + i))}\n`)
    yield Buffer.from(lines.join(''))
  }
}

/** A contender that serves. */
export class Server implements AsyncDisposable {
  readonly #contender: Contender
  readonly #folder: string
  readonly #origin: string
  readonly #processes: readonly Bun.Subprocess[]
  #wrk: Bun.Subprocess | undefined

  constructor(contender: Contender, url: string, folder: string) {
    this.#contender = contender
    this.#folder = folder
    const port = String(freePort())
    this.#origin = `http://127.0.0.1:${port}`
    const { PATH = '', HOME = '' } = process.env
    const settings = { PORT: port, DATABASE_URL: url, PETSTORE_API_KEY: apiKey, PETSTORE_REUSE_PORT: 'true' }
    this.#processes = Array.from({ length: contender.processes ?? 1 }, () =>
      Bun.spawn([...this.#onCore(0), ...contender.command], {
        cwd: folder,
        env: { PATH, HOME, NODE_ENV: 'production', ...settings, ...contender.env },
        stdio: ['ignore', Bun.file('/dev/null'), Bun.file('/dev/null')],
      }),
    )
  }

  /** Waits until it serves. Throws unless it has the animals and keeps to the interface, exact integers included. */
  async verify(): Promise<void> {
    const { name, animals, cursor, isInexact } = this.#contender
    const read = async (path: string) => {
      const headers = { authorization: `Bearer ${apiKey}` }
      return (await fetch(`${this.#origin}${petsPath}${path}`, { headers })).json()
    }
    await until(`${name} to start`, () => read('').catch(() => undefined))
    const page = await read(`?limit=2&status=sold&cursor=${cursor(animals / 2, 'sold')}`)
    const pet = await read(`/${animals}`)
    const expected = [1, 2, 3, 4, 5, 6]
      .map(offset => animalAt(animals / 2 + offset))
      .filter(({ status }) => status === 'sold')
    if (!Bun.deepEquals([page, pet], [expected, animalAt(animals)])) throw new Error(`${name} has other animals`)
    const command = [program, 'conform', `${this.#origin}/v1`, '--key', apiKey, '--yes']
    if (!isInexact) await readOutput(command, { cwd: this.#folder, waitMs: 60_000 })
  }

  /** Sends a load with wrk, which may be paused. */
  send(load: Load, seconds: number) {
    const { animals, cursor, connections = 64 } = this.#contender
    const requests = join(this.#folder, `${new URL(this.#origin).port}-${load}`)
    if (!existsSync(requests)) writeFileSync(requests, requestsOf(load, animals, cursor).join('\n'))
    const flags = ['-t1', `-c${connections}`, `-d${seconds}s`, '-H', `Authorization: Bearer ${apiKey}`]
    const script = ['-s', join(import.meta.dir, 'wrk.lua'), this.#origin, '--', requests, petsPath, newPet]
    const cpuNs = this.#cpuNs()
    const wrk = Bun.spawn([...this.#onCore(1), 'wrk', ...flags, ...script])
    this.#wrk = wrk
    let [activeMs, resumedMs, pauses] = [0, performance.now(), 0]
    const result = async () => {
      const output = await wrk.stdout.text()
      activeMs += performance.now() - resumedMs
      const { requests, failures, p99Ms } = JSON.parse(output.trim().split('\n').at(-1) ?? '')
      if (failures > 0) throw new Error(`${failures} requests to ${this.#contender.name} failed`)
      // In each pause, the server has answered the request of each connection.
      const inTime = requests - pauses * connections
      return { requestsPerSecond: (inTime / activeMs) * 1_000, cpuTime: (this.#cpuNs() - cpuNs) / requests, p99Ms }
    }
    return {
      sent: result(),
      /** Before it has sent anything. */
      wait() {
        wrk.kill('SIGSTOP')
      },
      pause() {
        wrk.kill('SIGSTOP')
        pauses++
        activeMs += performance.now() - resumedMs
      },
      resume() {
        wrk.kill('SIGCONT')
        resumedMs = performance.now()
      },
    }
  }

  memoryMb(): number {
    return this.#sum(residentBytes) / 1e6
  }

  /** The CPU time of all threads. */
  #cpuNs(): number {
    return this.#sum(pid => {
      const times = readdirSync(`/proc/${pid}/task`).map(thread =>
        readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'),
      )
      return times.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0)
    })
  }

  #sum(of: (pid: number) => number): number {
    return this.#processes.reduce((sum, { pid }) => sum + of(pid), 0)
  }

  #onCore(core: number): readonly string[] {
    return this.#contender.processes === undefined ? ['taskset', '-c', String(core)] : []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // At once: nothing uses its data again, and wrk may be paused.
    this.#wrk?.kill('SIGKILL')
    for (const child of this.#processes) child.kill('SIGKILL')
    await Promise.all(this.#processes.map(({ exited }) => exited))
  }
}
