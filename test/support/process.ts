import { expect } from 'bun:test'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const projectFolder = fileURLToPath(new URL('../..', import.meta.url))
export const program = join(projectFolder, 'bin/petstore')

export const readProjectFile = (path: string) => readFileSync(join(projectFolder, path), 'utf8')

/** Every wait is for an event. This limit only ends a test whose event never happens. */
export const hangMs = 60_000
/** For programs that fetch packages or build. */
export const downloadMs = 5 * hangMs

export interface Surroundings {
  readonly cwd: string
  /** Added to PATH and HOME. The program gets nothing else from our own environment. */
  readonly env?: Readonly<Record<string, string>>
  readonly waitMs?: number
}

export interface Ended {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** By default `bin/petstore serve --port 0`, in a folder of its own that is gone with the server. */
type ServerOptions = Partial<Surroundings> & { readonly args?: readonly string[]; readonly command?: readonly string[] }

/** For stores whose durability is not tested: a commit waits for no disk. */
export const memoryFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** A folder of its own for one test, gone with it: `using folder = temporaryFolder()`. */
export function temporaryFolder(parent = tmpdir()): { readonly path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(parent, 'petstore-test-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

let outputs = 0

/** A file for the output of a program. `npm test` shows the ends of those of a test file that fails. */
export function outputFile(program: string): string {
  const folder = join(projectFolder, 'test/output', relative(projectFolder, Bun.main))
  // Those of the last run.
  if (outputs === 0) rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  outputs += 1
  return join(folder, `${String(outputs).padStart(3, '0')}-${program}.log`)
}

/** The memory that a process occupies, as the system counts it. */
export function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

// Below the ports that the system gives to port 0. Each of 8 workers begins in a range of its own.
const worker = Number(process.env['BUN_TEST_WORKER_ID'] ?? 0) % 8
let lastPort = 20_000 + worker * 1_500 + Math.floor(Math.random() * 750)

/** A port of 127.0.0.1 that is free now, and was not given before. */
export function freePort(): number {
  for (;;) {
    lastPort += 1
    try {
      Bun.listen({ hostname: '127.0.0.1', port: lastPort, exclusive: true, socket: { data() {} } }).stop(true)
      return lastPort
    } catch (error) {
      if ((error as { code?: string }).code !== 'EADDRINUSE') throw error
    }
  }
}

/** What the program logged, other than requests: its JSON lines on stderr, as `level message`. */
export function loggedBy({ stderr }: Pick<Ended, 'stderr'>): readonly string[] {
  const lines = stderr.split('\n').filter(line => line.startsWith('{'))
  const logged = lines.map(line => JSON.parse(line)).filter(({ message }) => message !== 'request')
  return logged.map(({ level, message }) => `${level} ${message}`)
}

const { PATH = '' } = process.env
export const inherited = { PATH }

/** The variables by which npm and apt-get reach their servers from this machine. */
const networkVariable = /^(https?_proxy|no_proxy|node_extra_ca_certs|npm_config_(registry|userconfig|cache))$/i
export const network = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) => (value && networkVariable.test(name) ? [[name, value]] : [])),
)

/** `bin/petstore ARGS`, until it has ended. */
export const petstore = (args: readonly string[], surroundings: Surroundings) => run([program, ...args], surroundings)

/** What a command that must fail prints on stderr: no stack trace, and nothing on stdout. */
export async function refusal(args: readonly string[], surroundings: Surroundings, exitCode = 1): Promise<string> {
  const ended = await petstore(args, surroundings)
  expect(ended).toMatchObject({ exitCode, stdout: '' })
  expect(ended.stderr).not.toMatch(/\n\s+at |\.ts:/)
  expect(ended.stderr).toEndWith('\n')
  return ended.stderr
}

export async function run(command: readonly string[], surroundings: Surroundings): Promise<Ended> {
  await using child = new Child(command, surroundings)
  return await child.ended()
}

/** What the command prints on stdout. Throws with all its output if it fails. */
export async function readOutput(command: readonly string[], surroundings: Surroundings): Promise<string> {
  const { exitCode, stdout, stderr } = await run(command, surroundings)
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}:\n${stdout}${stderr}`)
  return stdout
}

/** Creates a key on the command line, in the store of the folder `cwd`. */
export async function createKey(cwd: string, name: string, ...options: string[]): Promise<string> {
  return (await readOutput([program, 'keys', 'create', '--name', name, ...options], { cwd })).trimEnd()
}

/** Runs until the end of the test, if it is not stopped before: `await using server = await startServer(…)`. */
export async function startServer(options: ServerOptions = {}): Promise<Server> {
  const { args = ['serve', '--port', '0'], command = [program, ...args] } = options
  await using stack = new AsyncDisposableStack()
  const cwd = options.cwd ?? stack.use(temporaryFolder()).path
  // PostgreSQL on a busy machine may need more than the 2 s of a connection.
  const env = { PETSTORE_WAIT_FOR_DATABASE: '300s', ...options.env }
  const server = stack.use(new Server(command, { ...options, cwd, env }))
  server.url = await server.says('the address on stdout', () => server.greetedAt())
  const owned = stack.move()
  return Object.assign(server, { [Symbol.asyncDispose]: () => owned.disposeAsync() })
}

type Probe<T> = () => Promise<T | undefined> | T | undefined

/** Calls the probe repeatedly until it gives a value. */
export async function until<T>(what: string, probe: Probe<T>, waitMs = hangMs): Promise<T> {
  // Not Date.now(), which some tests set back.
  const deadline = performance.now() + waitMs
  for (;;) {
    const answer = await probe()
    if (answer !== undefined) return answer
    if (performance.now() > deadline) throw new Error(`Waited ${waitMs} ms for ${what}, which did not happen`)
    await Bun.sleep(10)
  }
}

const setpriv = Bun.which('setpriv')
/** Begins a command that ends with this process, however that ends. */
const withUs = setpriv ? [setpriv, '--pdeathsig=KILL'] : []

class Child implements AsyncDisposable {
  /** Everything that it has printed so far. */
  stdout = ''
  stderr = ''
  readonly cwd: string
  readonly pid: number
  protected end: Ended | undefined
  readonly #command: string
  readonly #waitMs: number | undefined
  readonly #over: Promise<void>

  constructor(command: readonly string[], { cwd, env = {}, waitMs }: Surroundings) {
    const { HOME = cwd } = process.env
    const child = Bun.spawn([...withUs, ...command], {
      cwd,
      env: { ...inherited, HOME, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // Its own process group: npm and npx put processes between us and the program, and all of them must end.
      detached: true,
    })
    this.cwd = cwd
    this.pid = child.pid
    this.#command = command.join(' ')
    this.#waitMs = waitMs
    const output = outputFile(basename(command[0] ?? ''))
    writeFileSync(output, `$ ${this.#command}\n`)
    const collect = async (name: 'stdout' | 'stderr') => {
      for await (const text of child[name].pipeThrough(new TextDecoderStream())) {
        this[name] += text
        appendFileSync(output, text)
      }
    }
    this.#over = Promise.all([collect('stdout'), collect('stderr')]).then(async () => {
      this.end = { exitCode: await child.exited, stdout: this.stdout, stderr: this.stderr }
    })
  }

  ended(): Promise<Ended> {
    return this.says('its end', () => this.end)
  }

  /** Like `until`; an error also shows the command and everything it printed. */
  async says<T>(what: string, probe: Probe<T>): Promise<T> {
    try {
      return await until(what, probe, this.#waitMs)
    } catch (error) {
      throw new Error(`${error}\n${this.#command}\nstdout: ${this.stdout}\nstderr: ${this.stderr}`)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      process.kill(-this.pid, 'SIGKILL')
    } catch (error) {
      // The group is empty, as it should be.
      if ((error as { code?: string }).code !== 'ESRCH') throw error
    }
    await this.#over
  }
}

export class Server extends Child {
  /** The address that it printed: http://127.0.0.1:PORT/v1 */
  url = ''

  get port(): number {
    return Number(new URL(this.url).port)
  }

  greetedAt(): string | undefined {
    if (this.end) throw new Error('It ended before it served')
    return / serves (https?:\S+) [\s\S]*Stop with Ctrl-C/.exec(this.stdout)?.[1]
  }

  fetch(path: string, key: string, init?: { readonly method: string; readonly body?: string }): Promise<Response> {
    return fetch(`${this.url}${path}`, { ...init, headers: { authorization: `Bearer ${key}` } })
  }

  stop(signal: NodeJS.Signals): Promise<Ended> {
    process.kill(this.pid, signal)
    return this.ended()
  }
}
