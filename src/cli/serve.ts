import { readFileSync } from 'node:fs'
import { hashSecret, issueApiKey, isWellFormedApiKey, type Permission, refusalOf } from '../api-key.ts'
import { SetupError } from '../errors.ts'
import { App } from '../http/app.ts'
import { listen, readTls } from '../http/server.ts'
import type { Log } from '../log.ts'
import { isPostgres, openStores } from '../store/open.ts'
import type { KeyStore, Stores } from '../store.ts'
import { createPages } from '../web/pages.ts'
import { command } from './arguments.ts'
import { inBackground, repeat, retryUnreachable, startSweep } from './background.ts'
import { BufferedLog } from './log.ts'
import { asCalled, build, exitCode, type Io, version } from './output.ts'
import { checkSettings, originOf, type ServeSettings, settings as serveSettings, unknownVariables } from './settings.ts'

export const serveCommand = command({
  name: 'serve',
  summary: 'Run the server until Ctrl-C or SIGTERM',
  options: serveSettings,
  details: 'A flag takes precedence over its environment variable.',
  examples: ['petstore serve', 'petstore serve --port 9000 --database-url sqlite:/var/lib/petstore/petstore.db'],
  check: checkSettings,
  run: serve,
})

/** Beyond the drain time, for the store to record the use of keys and to close. */
const closeMsMax = 9_000
/** At the end, how long to wait for the reader of the log. */
const logReaderMs = 2_000
/** If the process is killed, at most this much recorded use of keys is lost. */
const flushEveryMs = 5_000

interface Demo {
  /** Fills the store. */
  prepare(stores: Stores): unknown
  /** Whether to take a free port if the given one is in use. */
  readonly takesAnyPort: boolean
}

/** Builds the service, runs it until a signal, and shuts it down. */
export async function serve(settings: ServeSettings, io: Io, demo?: Demo): Promise<undefined> {
  const stopped = nextStopSignal()
  const log = new BufferedLog(settings.logLevel, io)
  for (const warning of unknownVariables(io.env, io.program)) log.write('warn', warning)
  const { host, port, reusePort, tlsCert, tlsKey, drainMs } = settings
  const tls = tlsCert && tlsKey ? readTls(tlsCert, tlsKey) : undefined
  const stores = await Promise.race([openWithRetry(settings, log, io.program), stopped])
  if (!stores) {
    log.write('info', 'Stopping')
    log.end()
    // Returning would wait for the pending connection attempt.
    process.exit(exitCode.success)
  }
  // Writing starts while the server is built. A failure is reported when the server waits for it.
  const writing = stores.startWriting()
  writing.catch(() => {})
  const sweep = startSweep(stores.pets, log)
  let overdue: ReturnType<typeof setTimeout> | undefined
  try {
    await demo?.prepare(stores)
    const app = new App({ ...settings, ...stores, sweep, log, build, pages: createPages() })
    await writing
    await app.checkStore()
    const listener = listen(app, { host, port, reusePort, tls, takesAnyPort: demo?.takesAnyPort })
    if (port !== 0 && listener.port !== port) await io.err(`Port ${port} is in use: using a free port instead\n`)
    const flushing = repeat(log, flushEveryMs, () => app.flush())
    try {
      await greet(settings, listener.port, stores, log, io)
      await stopped
      log.write('info', 'Stopping')
      log.flush()
      overdue = setTimeout(() => endWithoutStore(log), drainMs + closeMsMax).unref()
    } finally {
      const unanswered = await listener.stop(drainMs)
      flushing[Symbol.dispose]()
      await inBackground(log, () => app.close())
      if (unanswered > 0) log.write('warn', 'Closed requests unanswered after the drain time', { requests: unanswered })
    }
  } finally {
    sweep[Symbol.dispose]()
    await stores.close()
    clearTimeout(overdue)
    log.end()
    // Returning lets the reader of the log receive the rest; a reader that has stopped reading must not block the exit.
    setTimeout(() => process.exit(), logReaderMs).unref()
  }
}

/** A disk that does not answer must not keep the process: the next start recovers everything that was committed. */
function endWithoutStore(log: BufferedLog): never {
  log.write('error', 'The store did not close in time: check the disk. Committed animals are safe')
  log.end()
  process.exit(exitCode.failure)
}

/** Retries while the database is unreachable, if a waiting time is set. */
function openWithRetry(settings: ServeSettings, log: Log, program: string): Promise<Stores> {
  const { databaseUrl, readUrl, databasePooler: pooler, databasePool: connectionsMax, waitForDatabaseMs } = settings
  const onEvent = (level: 'error' | 'warn', message: string) => log.write(level, asCalled(message, program))
  const options = { create: true, onEvent, readUrl, pooler, connectionsMax }
  return retryUnreachable(log, waitForDatabaseMs, () => openStores(databaseUrl, options))
}

/** Further signals change nothing: Ctrl-C under npm can arrive twice. */
function nextStopSignal(): Promise<void> {
  return new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => resolve())
    if (!ignoresHangup()) process.on('SIGHUP', () => resolve())
  })
}

/** Whether SIGHUP was ignored at the start, as under nohup. Only Linux reports it; elsewhere it keeps its default. */
function ignoresHangup(): boolean {
  try {
    const [, ignored = ''] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    // SIGHUP is signal 1, the lowest bit.
    return Number.parseInt(ignored.slice(-1), 16) % 2 === 1
  } catch {
    return true
  }
}

/** Prints the addresses, the first key of a store that has never had one, and curl lines to paste. */
async function greet(settings: ServeSettings, port: number, stores: Stores, log: Log, io: Io): Promise<void> {
  const { keys, location } = stores
  const { host, environmentKey, publicUrl, databaseUrl, tlsCert } = settings
  const { key, record } = issueApiKey({ name: 'first', permission: 'read-write', createdAt: new Date() })
  const first = environmentKey === undefined ? await keys.createFirst(record) : undefined
  const access = environmentKey === undefined ? undefined : await accessOf(environmentKey, keys, log)
  // The flag takes precedence, and does not set the variable in the shell.
  const isInShell = access !== undefined && environmentKey === io.env['PETSTORE_API_KEY']
  const origin = originOf({ ...settings, port })
  const network = (await networkHosts(host)).map(host => `${originOf({ ...settings, host, port })}/`)
  const rows = [
    ['Catalogue', `${origin}/`],
    ['Reference', `${origin}/docs`],
    ...network.map((url, index) => [index === 0 ? 'Network' : '', url]),
    ...(publicUrl === undefined ? [] : [['Public', publicUrl]]),
    first
      ? ['API key', `${key} (shown only this once)`]
      : access
        ? ['API key', isInShell ? '$PETSTORE_API_KEY' : 'as given by --api-key']
        : ['New key', `${io.program} keys create --name NAME${storeFlag(databaseUrl, io)}`],
  ]
  const list = rows.map(([label = '', value]) => `  ${label.padEnd(9)}  ${value}\n`).join('')
  const warning = tlsCert || isLoopback.test(host) ? '' : `\n${clearText}\n`
  const header = first ? `'Authorization: Bearer ${key}'` : '"Authorization: Bearer $PETSTORE_API_KEY"'
  const trial = trialOf(origin, header, !first && access === 'read-only')
  const serves = `petstore ${version} serves ${origin}/v1 from ${location}`
  try {
    await io.out(`${serves}\n\n${list}${warning}${first || isInShell ? trial : ''}\nStop with Ctrl-C.\n`)
  } catch (cause) {
    if (first) await keys.revoke(first.id, new Date())
    throw new SetupError('Cannot write the address to stdout: check where stdout goes', { cause })
  }
}

const isLoopback = /^(127\.|::1$|localhost$)/i
const clearText = 'Without TLS, keys travel in the clear: set --tls-cert and --tls-key, or use a proxy with TLS.'
const networkHostsMax = 5

/** The addresses of this machine that others can reach, if the server listens on all of them; `::` includes IPv4. */
async function networkHosts(host: string): Promise<readonly string[]> {
  if (host !== '0.0.0.0' && host !== '::') return []
  const { networkInterfaces } = await import('node:os')
  const all = Object.values(networkInterfaces()).flatMap(addresses => addresses ?? [])
  const isReachable = ({ internal, family, address }: (typeof all)[number]) =>
    !internal && (family === 'IPv4' || host === '::') && !/^(fe[89ab]|169\.254\.)/i.test(address)
  return all
    .filter(isReachable)
    .slice(0, networkHostsMax)
    .map(({ address }) => address)
}

/** Lines that list and add animals. */
function trialOf(origin: string, header: string, isReadOnly: boolean): string {
  // -k: the certificate may be self-signed. The quotes are for shells that take brackets for a pattern.
  const curl = `  curl ${origin.startsWith('https') ? '-k ' : ''}-w '\\n' -H ${header}`
  const url = origin.includes('[') ? `'${origin}/v1/pets'` : `${origin}/v1/pets`
  const post = `-H 'Content-Type: application/json' -d '{"name":"Rex","categoryId":7}'`
  return `\nTry it:\n${curl} ${url}\n${isReadOnly ? '' : `${curl} ${post} ${url}\n`}`
}

/** What the key in PETSTORE_API_KEY may do with animals. Warns if the store knows the key: its record decides. */
async function accessOf(environmentKey: string, keys: KeyStore, log: Log): Promise<Permission | undefined> {
  const known = isWellFormedApiKey(environmentKey) ? await keys.find(hashSecret(environmentKey)) : undefined
  if (!known) return 'read-write'
  const refusal = refusalOf(known, new Date())
  const access = [known.permission, refusal].filter(Boolean).join(', ')
  const what = `the stored key "${known.name}" (${access})`
  log.write('warn', `PETSTORE_API_KEY is ${what}: its permission in the store applies`)
  return known.permission === 'metrics' || refusal ? undefined : known.permission
}

/** The flag with which another command in this shell opens the same store. It never shows a password. */
function storeFlag(url: string, io: Io): string {
  if (url === (io.env['DATABASE_URL'] || serveSettings.databaseUrl.default)) return ''
  if (isPostgres(url)) return ' --database-url URL'
  return ` --database-url ${/^[\w:./-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`}`
}
