import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const projectFolder = fileURLToPath(new URL('../..', import.meta.url))
const petstoreProgram = join(projectFolder, 'bin/petstore')

/** Long enough for a busy machine, shorter than a test's own limit, so that the clear message is the one seen. */
const waitMsDefault = 20_000
export const testMsMax = 60_000

export interface Surroundings {
  readonly cwd: string
  /** Added to PATH and HOME: nothing else of whoever runs the tests gets in. */
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
  /** All that it has printed so far. */
  readonly stdout: string
  readonly pid: number
  fetch(
    path: string,
    key: string,
    init?: { readonly method: string; readonly body: string },
  ): Promise<Response>
  /** Sends the signals, each once the one before has been noticed, and waits for the end. */
  stop(...signals: NodeJS.Signals[]): Promise<Ended>
  /** Like Ctrl-C in a terminal: whatever stands between us and the program gets it too. */
  stopAll(signal: NodeJS.Signals): Promise<Ended>
}

export interface ServerOptions extends Surroundings {
  /** What follows `bin/petstore`. */
  readonly args?: readonly string[]
  /** Another way to start it than `bin/petstore`. */
  readonly command?: readonly string[]
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

/** The curl line that the server printed, as somebody would paste it into a shell. */
export function pasteCurl({ stdout }: Server, surroundings: Surroundings): Promise<Ended> {
  if (!Bun.which('curl')) throw new Error('curl is not on PATH; this test pastes a curl line into a shell')
  const [line] = /^ +curl .*$/m.exec(stdout) ?? []
  if (line === undefined) throw new Error(`The server printed no curl line: ${stdout}`)
  return run(['sh', '-c', line], surroundings)
}

/** Asks again and again, until there is an answer. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined> | T | undefined,
  waitMs = waitMsDefault,
): Promise<T> {
  const deadline = Date.now() + waitMs
  for (;;) {
    const answer = await probe()
    if (answer !== undefined) return answer
    if (Date.now() > deadline) throw new Error(`Waited ${waitMs} ms in vain for ${what}`)
    await Bun.sleep(10)
  }
}

function serverOf(child: Child, url: string): Server {
  return {
    url,
    get stdout() {
      return child.stdout
    },
    pid: child.pid,
    fetch: (path, key, init) =>
      fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${key}` } }),
    async stop(...signals) {
      for (const signal of signals) {
        process.kill(child.pid, signal)
        // Two signals at once would count as one.
        if (signals.length > 1)
          await child.says('Stopping', () => child.stderr.includes('Stopping') || undefined)
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
  /** Like `until`; where that fails, with what was run and all that it printed. */
  says: typeof until
}

function launch(command: readonly string[], { cwd, env = {}, waitMs }: Surroundings): Child {
  const { PATH = '', HOME = cwd } = process.env
  const child = Bun.spawn({
    cmd: [...command],
    cwd,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Its own process group: npm and npx put processes between us and the program, and none may stay behind.
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
    // Nobody is left in it: that is how it should be.
    if ((error as { code?: string }).code !== 'ESRCH') throw error
  }
}
