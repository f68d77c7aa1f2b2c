import { expect } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const projectFolder = fileURLToPath(new URL('../..', import.meta.url))
const petstoreProgram = join(projectFolder, 'bin/petstore')

/** Long enough for a busy machine, but shorter than a test's own limit, so that our clearer message comes first. */
const waitMsDefault = 20_000
export const testMsMax = 60_000

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

export interface Server extends AsyncDisposable {
  /** The address that it printed: http://127.0.0.1:PORT/v1 */
  readonly url: string
  /** Everything that it has printed so far. */
  readonly stdout: string
  readonly stderr: string
  readonly pid: number
  fetch(path: string, key: string, init?: { readonly method: string; readonly body: string }): Promise<Response>
  /** Sends the signals, each once the one before has been noticed, and waits for the end. */
  stop(...signals: NodeJS.Signals[]): Promise<Ended>
  /** Like Ctrl-C in a terminal: npm and shells between us and the program get the signal too. */
  stopAll(signal: NodeJS.Signals): Promise<Ended>
}

export interface ServerOptions extends Surroundings {
  /** What follows `bin/petstore`. */
  readonly args?: readonly string[]
  /** Another way to start it than `bin/petstore`. */
  readonly command?: readonly string[]
}

/** A folder of its own for one test, gone with it: `using folder = temporaryFolder()`. */
export function temporaryFolder(): { readonly path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), 'petstore-test-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** The memory that a process occupies, as the system counts it. */
export function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

/** A port of 127.0.0.1 that is free now. */
export function freePort(): number {
  const probe = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = probe
  probe.stop(true)
  return port
}

/** What the program logged, other than requests: its JSON lines on stderr, as `level message`. */
export function loggedBy({ stderr }: Ended): readonly string[] {
  return stderr
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line))
    .filter(({ message }) => message !== 'request')
    .map(({ level, message }) => `${level} ${message}`)
}

/** `bin/petstore ARGS`, until it has ended. */
export function petstore(args: readonly string[], surroundings: Surroundings): Promise<Ended> {
  return run([petstoreProgram, ...args], surroundings)
}

export async function run(command: readonly string[], surroundings: Surroundings): Promise<Ended> {
  await using child = launch(command, surroundings)
  return await child.ended()
}

/** One key of `keys list --json`. */
interface ListedKey {
  readonly name: string
  readonly firstCharacters: string
  readonly access: string
  readonly expiresAt: string | null
  readonly revokedAt: string | null
  readonly lastUsedAt: string | null
  readonly deprecatedUses: number
  readonly deprecatedLastUsedAt: string | null
}

/** Creates a key on the command line, in the store of the folder `cwd`. */
export async function createKey(cwd: string, name: string, ...options: string[]): Promise<string> {
  const { exitCode, stdout } = await petstore(['keys', 'create', '--name', name, ...options], { cwd })
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(/^pets_\w{36}\n$/) })
  return stdout.trimEnd()
}

export async function listKeys(cwd: string): Promise<readonly ListedKey[]> {
  const { exitCode, stdout, stderr } = await petstore(['keys', 'list', '--json'], { cwd })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return JSON.parse(stdout)
}

export function revokeKey(cwd: string, which: string): Promise<Ended> {
  return petstore(['keys', 'revoke', which], { cwd })
}

/** Runs until the end of the test, if it is not stopped before: `await using server = await startServer(…)`. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { args = ['serve', '--port', '0'], command = [petstoreProgram, ...args], waitMs } = options
  const child = launch(command, options)
  try {
    return serverOf(child, await child.says('the address on stdout', () => welcomedAt(child), waitMs))
  } catch (error) {
    await child[Symbol.asyncDispose]()
    throw error
  }
}

export const portOf = ({ url }: Pick<Server, 'url'>): number => Number(new URL(url).port)

/** Runs the curl line that the server printed, as if pasted into a shell. */
export function pasteCurl({ stdout }: Server, surroundings: Surroundings): Promise<Ended> {
  if (!Bun.which('curl')) throw new Error('curl is not on PATH; this test pastes a curl line into a shell')
  const [line] = /^ +curl .*$/m.exec(stdout) ?? []
  if (line === undefined) throw new Error(`The server printed no curl line: ${stdout}`)
  return run(['sh', '-c', line], surroundings)
}

/** Calls the probe repeatedly until it gives a value. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined> | T | undefined,
  waitMs = waitMsDefault,
): Promise<T> {
  // Not Date.now(), which some tests set back.
  const deadline = performance.now() + waitMs
  for (;;) {
    const answer = await probe()
    if (answer !== undefined) return answer
    if (performance.now() > deadline) throw new Error(`Waited ${waitMs} ms for ${what}, which did not happen`)
    await Bun.sleep(10)
  }
}

function serverOf(child: Child, url: string): Server {
  return {
    url,
    get stdout() {
      return child.stdout
    },
    get stderr() {
      return child.stderr
    },
    pid: child.pid,
    fetch: (path, key, init) => fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${key}` } }),
    async stop(...signals) {
      for (const signal of signals) {
        process.kill(child.pid, signal)
        // Two signals at once would count as one.
        if (signals.length > 1) await child.says('Stopping', () => child.stderr.includes('Stopping') || undefined)
      }
      return await child.ended()
    },
    stopAll(signal) {
      process.kill(-child.pid, signal)
      return child.ended()
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  }
}

function welcomedAt(child: Child): string | undefined {
  if (child.hasEnded) throw new Error('It ended before it served')
  return / serves (https?:\S+) [\s\S]*Stop with Ctrl-C/.exec(child.stdout)?.[1]
}

interface Child extends AsyncDisposable {
  readonly pid: number
  readonly stdout: string
  readonly stderr: string
  readonly hasEnded: boolean
  ended(): Promise<Ended>
  /** Like `until`; an error also shows the command and everything it printed. */
  says: typeof until
}

function launch(command: readonly string[], { cwd, env = {}, waitMs }: Surroundings): Child {
  const { PATH = '', HOME = cwd } = process.env
  const child = Bun.spawn({
    cmd: [...command],
    cwd,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Its own process group: npm and npx put processes between us and the program, and all of them must end.
    detached: true,
  })
  const printed = { stdout: '', stderr: '' }
  let end: Ended | undefined
  const collected = Promise.all([
    collect(child.stdout, text => {
      printed.stdout += text
    }),
    collect(child.stderr, text => {
      printed.stderr += text
    }),
  ])
  const over = collected.then(async () => {
    end = { exitCode: await child.exited, ...printed }
  })
  const says: typeof until = (what, probe, ms) =>
    until(what, probe, ms).catch(error => {
      const { stdout, stderr } = printed
      throw new Error(`${error.message}\n${command.join(' ')}\nstdout: ${stdout}\nstderr: ${stderr}`)
    })

  return {
    pid: child.pid,
    get stdout() {
      return printed.stdout
    },
    get stderr() {
      return printed.stderr
    },
    get hasEnded() {
      return end !== undefined
    },
    ended: () => says('its end', () => end, waitMs),
    says,
    async [Symbol.asyncDispose]() {
      endGroup(child.pid)
      await over
    },
  }
}

async function collect(stream: ReadableStream<Uint8Array>, add: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  for await (const bytes of stream) add(decoder.decode(bytes, { stream: true }))
}

function endGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch (error) {
    // The group is empty, as it should be.
    if ((error as { code?: string }).code !== 'ESRCH') throw error
  }
}
