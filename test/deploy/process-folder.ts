import { mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asPostgres, own, signalTo } from '../support/postgres.ts'

/** Waits for the end of its input, then kills every process whose working folder is inside "$1", and removes the folder. */
const cleanUp = `
  cat >/dev/null
  for round in 1 2 3 4 5 6 7 8 9 10; do
    found=
    for process in /proc/[0-9]*; do
      case $(readlink "$process/cwd") in "$1"/*) found=1; kill -9 "\${process#/proc/}" ;; esac
    done
    [ "$found" ] || break
    sleep 0.1
  done
  rm -rf "$1"`

/** Programs, each in a folder of its own. All processes that work there end with this object, or with this process. */
export class ProcessFolder implements AsyncDisposable {
  readonly #path = mkdtempSync(join(realpathSync(tmpdir()), 'petstore-deploy-'))
  // In a session of its own, which Ctrl-C does not reach.
  readonly #cleaner = Bun.spawn(['sh', '-c', cleanUp, 'clean-up', this.#path], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })

  constructor() {
    own(this.#path)
  }

  /** The folder of a program, which exists from now on. */
  folder(name: string): string {
    const path = join(this.#path, name)
    if (mkdirSync(path, { recursive: true })) own(path)
    return path
  }

  /** Starts a program as PostgreSQL's user. Its output goes to a file. */
  start(name: string, ...command: readonly string[]): void {
    const cwd = this.folder(name)
    const log = openSync(join(cwd, 'log'), 'a')
    const { PATH = '' } = process.env
    Bun.spawn([...asPostgres, ...command], { cwd, env: { PATH, HOME: cwd }, stdio: ['ignore', log, log] })
  }

  /** The last lines that a program printed. */
  log(name: string): string {
    const lines = readFileSync(join(this.folder(name), 'log'), 'utf8').split('\n')
    return lines.slice(-15).join('\n')
  }

  /** Sends a signal to every process of a program that has this text in its command line. */
  signal(name: string, signal: 'SIGCONT' | 'SIGKILL' | 'SIGSTOP', text = ''): void {
    const reached = new Set<number>()
    for (;;) {
      // One that is not stopped yet may have started another one.
      const found = this.#pids(name, text).filter(pid => !reached.has(pid))
      if (found.length === 0) return
      for (const pid of found) {
        reached.add(pid)
        signalTo(pid, signal)
      }
    }
  }

  #pids(name: string, text: string): number[] {
    const folder = `${this.folder(name)}/`
    const isMeant = (pid: string) =>
      `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(folder) &&
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
    return readdirSync('/proc').flatMap(pid => {
      try {
        return /^\d+$/.test(pid) && isMeant(pid) ? Number(pid) : []
      } catch {
        // It has just ended, or belongs to another user.
        return []
      }
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleaner.stdin.end()
    await this.#cleaner.exited
  }
}
