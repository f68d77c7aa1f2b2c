import {
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { asPostgresWithUs, own, signalTo } from '../support/postgres.ts'
import { temporaryFolder, until } from '../support/process.ts'

/** Programs, each in a folder of its own. All processes that work there end with this object. */
export class ProcessFolder implements AsyncDisposable {
  readonly #path = realpathSync(temporaryFolder().path)

  constructor() {
    own(this.#path)
  }

  /** The folder of a program, which exists from now on. */
  folder(name: string): string {
    const path = join(this.#path, name)
    if (mkdirSync(path, { recursive: true })) own(path)
    return path
  }

  /** Starts a program as PostgreSQL's user, in its folder with these files. Its output goes to a file. */
  start(name: string, files: Readonly<Record<string, string>>, ...command: readonly string[]): void {
    const cwd = this.folder(name)
    for (const [file, text] of Object.entries(files)) writeFileSync(join(cwd, file), text)
    const log = openSync(join(cwd, 'log'), 'a')
    const { PATH = '' } = process.env
    Bun.spawn([...asPostgresWithUs, ...command], { cwd, env: { PATH, HOME: cwd }, stdio: ['ignore', log, log] })
  }

  log = (name: string) => readFileSync(join(this.folder(name), 'log'), 'utf8')

  /** Like `until`; an error also shows the last lines that this program printed. */
  until<T>(name: string, probe: () => Promise<T | undefined>): Promise<T> {
    return until(name, () => probe().catch(() => undefined)).catch(error => {
      throw new Error(`${error.message}\n${this.log(name).split('\n').slice(-15).join('\n')}`)
    })
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

  #pids(name: string, text = ''): number[] {
    const folder = `${join(this.#path, name)}/`
    return readdirSync('/proc').flatMap(pid => {
      try {
        const isMeant = `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(folder)
        return isMeant && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text) ? Number(pid) : []
      } catch {
        // Not a process, or it has just ended, or belongs to another user.
        return []
      }
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await until('the end of all programs', () => {
      this.signal('', 'SIGKILL')
      return this.#pids('').length === 0 || undefined
    })
    rmSync(this.#path, { recursive: true })
  }
}
