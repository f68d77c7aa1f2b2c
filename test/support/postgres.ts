import { appendFileSync, cpSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { type PostgresPrograms, postgresPrograms } from './postgres-program.ts'

/** A PostgreSQL server of our own, in a process of its own, gone with the test. */
export interface Cluster extends AsyncDisposable {
  /** `127.0.0.1:PORT` */
  readonly host: string
  /** Of a database on it; the one that is always there if none is named. */
  url(database?: string): string
  start(): Promise<void>
  /** INT ends sessions and stops, QUIT stops at once as after a crash, KILL does not even tell it. */
  stop(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void>
  /** Every process of it stands still until it is thawed. */
  freeze(): void
  thaw(): void
  /** A second server on a copy of this one's data, which it follows. This one is stopped and started for that. */
  newStandby(): Promise<Standby>
}

export interface Standby extends Cluster {
  /** It follows no longer, and takes writes. */
  promote(): Promise<void>
}

const user = 'postgres'
const startMsMax = 20_000

export async function startCluster(settings: readonly string[] = []): Promise<Cluster> {
  const programs = postgresPrograms()
  if (programs instanceof Error) throw programs
  const folder = newFolder()
  own(programs, folder)
  const data = join(folder, 'data')
  const flags = ['--auth=trust', `--username=${user}`, '--encoding=UTF8', '--locale=C', '--no-sync']
  const { exitCode, stderr } = Bun.spawnSync(programs.command('initdb', '-D', data, ...flags), {
    cwd: folder,
  })
  if (exitCode !== 0) throw new Error(`initdb failed: ${stderr.toString()}`)
  appendFileSync(join(data, 'postgresql.conf'), [...settings, ''].join('\n'))
  return running(programs, folder, await freePort())
}

async function running(programs: PostgresPrograms, folder: string, port: number): Promise<Cluster> {
  const data = join(folder, 'data')
  const host = `127.0.0.1:${port}`
  const url = (database = 'postgres') => `postgres://${user}@${host}/${database}`
  let child: Bun.Subprocess | undefined

  const signalAll = (signal: 'SIGSTOP' | 'SIGCONT') => {
    for (const pid of child ? [child.pid, ...childrenOf(child.pid)] : []) signalTo(pid, signal)
  }

  const cluster: Cluster = {
    host,
    url,
    async start() {
      const log = openSync(join(folder, 'log'), 'a')
      const args = ['-D', data, '-p', String(port), '-k', '', '-h', '127.0.0.1', '-c', 'max_connections=200']
      child = Bun.spawn(programs.command('postgres', ...args), { cwd: folder, stdout: log, stderr: log })
      await answers(url(), child, () => readFileSync(join(folder, 'log'), 'utf8'))
    },
    async stop(signal) {
      const orphans = child ? childrenOf(child.pid) : []
      child?.kill(signal)
      await child?.exited
      // Without their parent they end by themselves, but not always before the next start.
      if (signal === 'SIGKILL') for (const pid of orphans) signalTo(pid, signal)
      child = undefined
    },
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    newStandby: () => standbyOf(cluster, programs, folder, port),
    async [Symbol.asyncDispose]() {
      if (child) cluster.thaw()
      await cluster.stop('SIGQUIT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
  await cluster.start()
  return cluster
}

async function standbyOf(
  primary: Cluster,
  programs: PostgresPrograms,
  folder: string,
  port: number,
): Promise<Standby> {
  await primary.stop('SIGINT')
  const copy = newFolder()
  const data = join(copy, 'data')
  cpSync(join(folder, 'data'), data, { recursive: true })
  writeFileSync(join(data, 'standby.signal'), '')
  const source = `host=127.0.0.1 port=${port} user=${user} application_name=standby`
  appendFileSync(join(data, 'postgresql.conf'), `primary_conninfo = '${source}'\n`)
  own(programs, copy)
  await primary.start()
  const standby = await running(programs, copy, await freePort())
  return { ...standby, promote: () => ask(standby.url(), 'SELECT pg_promote(true, 30)') }
}

/** A database of its own on a server, gone with the test. */
export interface TestDatabase extends AsyncDisposable {
  readonly url: string
}

let databases = 0

export async function newDatabase(adminUrl: string): Promise<TestDatabase> {
  const name = `pets_test_${process.pid}_${++databases}`
  await ask(adminUrl, `CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`)
  const url = adminUrl.replace(/\/[^/?]*(\?|$)/, `/${name}$1`)
  return { url, [Symbol.asyncDispose]: () => ask(adminUrl, `DROP DATABASE ${name} WITH (FORCE)`) }
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

async function answers(url: string, child: Bun.Subprocess, log: () => string): Promise<void> {
  const end = Date.now() + startMsMax
  for (;;) {
    const failure = await ask(url, 'SELECT 1').then(
      () => undefined,
      (error: unknown) => error,
    )
    if (!failure) return
    if (child.exitCode !== null || Date.now() > end) throw new Error(`PostgreSQL did not start: ${log()}`)
    await Bun.sleep(50)
  }
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'petstore-test-postgres-'))
}

/** Makes a folder the server's, which does not read a key that belongs to others. */
export function own({ owner }: PostgresPrograms, folder: string): void {
  if (owner) Bun.spawnSync(['chown', '-R', owner, folder])
}

function childrenOf(pid: number): number[] {
  const found = Bun.spawnSync(['pgrep', '-P', String(pid)]).stdout.toString()
  return found.split('\n').filter(Boolean).map(Number)
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended already.
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() =>
        address && typeof address === 'object' ? resolve(address.port) : reject(new Error()),
      )
    })
  })
}
