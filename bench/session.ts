import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Spawn, Subprocess } from 'bun'

/** A stopped server flushes its log, and json-server its animals. */
const stopMsMax = 5_000

/** The processes and folders of a run; none of them outlives it. */
export class Session implements AsyncDisposable {
  readonly #root = mkdtempSync(join(tmpdir(), 'petstore-bench-'))
  readonly #running = new Set<Subprocess>()
  #folders = 0

  constructor() {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => this.#abort())
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

  /** Creates a folder that is deleted with the session. */
  folder(name: string): string {
    const path = join(this.#root, `${++this.#folders}-${name}`)
    mkdirSync(path)
    return path
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
