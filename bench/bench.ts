import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Spawn, Subprocess } from 'bun'

const stopMsMax = 5_000

/** A run with its processes and folders; none of them outlives it. */
export class Bench implements AsyncDisposable {
  readonly rounds: number
  /** For each load. */
  readonly seconds: number
  readonly #startedMs = performance.now()
  readonly #root = mkdtempSync(join(tmpdir(), 'petstore-bench-'))
  readonly #running = new Set<Subprocess>()

  constructor(rounds: number, seconds: number) {
    if (!Bun.which('wrk')) throw new Error('wrk is not installed: install it to send the load')
    this.rounds = rounds
    this.seconds = seconds
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => this.#abort())
  }

  log(line: string): void {
    const elapsedSeconds = Math.round((performance.now() - this.#startedMs) / 1_000)
    process.stderr.write(`${String(elapsedSeconds).padStart(5)} s  ${line}\n`)
  }

  spawn(
    command: readonly string[],
    options: Spawn.SpawnOptions<Spawn.Writable, Spawn.Readable, Spawn.Readable>,
  ): Subprocess {
    const child = Bun.spawn([...command], options)
    this.#running.add(child)
    child.exited.then(() => this.#running.delete(child))
    return child
  }

  folder(): string {
    return mkdtempSync(join(this.#root, 'folder-'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map(stop))
    rmSync(this.#root, { recursive: true, force: true })
  }

  #abort(): never {
    for (const child of this.#running) child.kill('SIGKILL')
    rmSync(this.#root, { recursive: true, force: true })
    process.exit(130)
  }
}

export async function stop(child: Subprocess): Promise<void> {
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
  await child.exited
  clearTimeout(timer)
}
