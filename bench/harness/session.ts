import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BunFile, Subprocess } from 'bun'

/** What a run has started and made; however it ends, nothing of it is left. */
export interface Session extends AsyncDisposable {
  spawn(command: readonly string[], options: SessionSpawnOptions): Subprocess
  /** A new folder, gone with the session. */
  folder(name: string): string
}

interface SessionSpawnOptions {
  readonly cwd?: string
  readonly env?: Record<string, string>
  readonly stdout: 'pipe' | BunFile
  readonly stderr: 'inherit' | BunFile
}

/** A stopped server writes its log into its file, and json-server its animals: that takes a moment. */
const patienceMs = 5_000

export function openSession(): Session {
  const root = mkdtempSync(join(tmpdir(), 'petstore-bench-'))
  const running = new Set<Subprocess>()
  let folders = 0

  const interrupted = () => {
    for (const child of running) child.kill('SIGKILL')
    rmSync(root, { recursive: true, force: true })
    process.exit(130)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupted)

  return {
    spawn(command, options) {
      const child = Bun.spawn([...command], options)
      running.add(child)
      child.exited.then(() => running.delete(child))
      return child
    },
    folder(name) {
      const path = join(root, `${++folders}-${name}`)
      mkdirSync(path)
      return path
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...running].map(stop))
      rmSync(root, { recursive: true, force: true })
    },
  }
}

/** Ends one process by its id, and waits until it is gone. */
export async function stop(child: Subprocess): Promise<void> {
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs)
  await child.exited
  clearTimeout(timer)
}
