import { readFileSync } from 'node:fs'
import { type ApiKey, hashSecret, issueApiKey, isWellFormedApiKey, refusalOf } from '../api-key.ts'
import { SetupError, StoreUnreachable } from '../errors.ts'
import { type Listener, readTls } from '../http/server.ts'
import type { Log } from '../log.ts'
import { isPostgres } from '../store/open.ts'
import type { OnStoreEvent, Stores } from '../store.ts'
import { command } from './arguments.ts'
import { BufferedLog } from './log.ts'
import { exitCode, type Io, version } from './output.ts'
import { openForThread, startServing } from './serving.ts'
import { checkSettings, originOf, type ServeSettings, settings, unknownVariables } from './settings.ts'
import { Sweep } from './sweep.ts'
import type { ThreadsParts } from './threads.ts'

export const serveCommand = command({
  name: 'serve',
  summary: 'Run the server until Ctrl-C or SIGTERM',
  options: settings,
  details: 'A flag takes precedence over its environment variable.',
  examples: ['petstore serve', 'petstore serve --port 9000 --database-url sqlite:/var/lib/petstore/petstore.db'],
  check: checkSettings,
  run: (settings, _, io) => serve(settings, io),
})

/** Beyond the drain time, for the store to record the use of keys and to close. */
const closeMsMax = 9_000
/** At the end, how long to wait for the reader of the log. */
const logReaderMs = 2_000
const retryDatabaseMs = 500
/** Longer than threads differ in noticing an event. */
const sameEventMs = 2_000

/** Builds the service, runs it until a signal, and shuts it down. `prepare` may fill the store first. */
export async function serve(
  settings: ServeSettings,
  io: Io,
  prepare?: (stores: Stores) => Promise<unknown>,
): Promise<undefined> {
  const stopped = nextStopSignal()
  const log = new BufferedLog(settings.logLevel, io)
  for (const warning of unknownVariables(io.env, io.program)) log.write('warn', warning)
  const onEvent = storeEventLog(log)
  const { tlsCert, tlsKey } = settings
  const tls = tlsCert && tlsKey ? readTls(tlsCert, tlsKey) : undefined
  const stores = await openWithRetry(settings, log, onEvent, stopped)
  // Returning would wait for the pending connection attempt.
  if (!stores) process.exit(exitCode.success)
  // Writing starts while the server is built. A failure is reported when the server waits for it.
  stores.startWriting().catch(() => {})
  const sweep = new Sweep(stores.pets, log)
  let overdue: ReturnType<typeof setTimeout> | undefined
  try {
    await prepare?.(stores)
    const listener = await startListener({ settings, stores, sweep, tls, log, onEvent, io })
    try {
      await greet(settings, listener.port, stores, await knownEnvironmentKey(settings, stores, log), io)
      await stopped
      log.write('info', 'Stopping')
      log.flush()
      overdue = setTimeout(() => endWithoutStore(log), settings.drainMs + closeMsMax).unref()
    } finally {
      const unanswered = await listener.stop(settings.drainMs)
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

async function startListener(parts: ThreadsParts): Promise<Listener> {
  const { threads, port } = parts.settings
  if (threads === 1) return startServing({ ...parts, port })
  const { serveInThreads } = await import('./threads.ts')
  return serveInThreads(parts)
}

/** Several threads report the same event of the store at about the same time: logs it once. */
function storeEventLog(log: Log): OnStoreEvent {
  const loggedMs = new Map<string, number>()
  return (level, message) => {
    const nowMs = performance.now()
    if (nowMs - (loggedMs.get(message) ?? Number.NEGATIVE_INFINITY) < sameEventMs) return
    loggedMs.set(message, nowMs)
    log.write(level, message)
  }
}

/** Retries while the database is unreachable, if a waiting time is set. Undefined if a signal came first. */
async function openWithRetry(
  settings: ServeSettings,
  log: Log,
  onEvent: OnStoreEvent,
  stopped: Promise<void>,
): Promise<Stores | undefined> {
  const { waitForDatabaseMs } = settings
  const endMs = performance.now() + waitForDatabaseMs
  const stop = stopped.then(() => undefined)
  for (let attempt = 0; ; attempt++) {
    try {
      return await Promise.race([openForThread(settings, onEvent), stop])
    } catch (error) {
      const leftMs = endMs - performance.now()
      if (!(error instanceof StoreUnreachable) || leftMs <= 0) throw error
      if (attempt === 0) log.write('error', `${error.message}; retrying for ${waitForDatabaseMs / 1_000} s`)
      const retry = Bun.sleep(Math.min(retryDatabaseMs, leftMs)).then(() => true)
      if (!(await Promise.race([stop, retry]))) return undefined
    }
  }
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

/** The store's record of the key in PETSTORE_API_KEY, which then decides what the key may do. Logs it. */
async function knownEnvironmentKey(
  { environmentKey }: ServeSettings,
  { keys }: Stores,
  log: Log,
): Promise<ApiKey | undefined> {
  if (environmentKey === undefined || !isWellFormedApiKey(environmentKey)) return undefined
  const known = await keys.find(hashSecret(environmentKey))
  if (!known) return undefined
  const state = [known.permission, refusalOf(known, new Date())].filter(Boolean).join(', ')
  const stored = `the stored key "${known.name}" (${state})`
  log.write('warn', `PETSTORE_API_KEY is ${stored}: its permission in the store applies`)
  return known
}

/** Prints the addresses, the first key of a store that has never had one, and a curl line to paste. */
async function greet(
  settings: ServeSettings,
  port: number,
  { keys, location }: Stores,
  known: ApiKey | undefined,
  io: Io,
): Promise<void> {
  const { key, record } = issueApiKey({ name: 'first', permission: 'read-write', createdAt: new Date() })
  const first = settings.environmentKey === undefined ? await keys.createFirst(record) : undefined
  const reads = !known || (known.permission !== 'metrics' && !refusalOf(known, new Date()))
  const environmentKey = reads ? settings.environmentKey : undefined
  // The flag takes precedence, and does not set the variable in the shell.
  const isInShell = environmentKey !== undefined && environmentKey === io.env['PETSTORE_API_KEY']
  const origin = originOf({ ...settings, port })
  const rows = [
    ['Catalogue', `${origin}/`],
    ['Reference', `${origin}/docs`],
    ...(settings.publicUrl === undefined ? [] : [['Public', settings.publicUrl]]),
    first
      ? ['API key', `${key} (shown only this once)`]
      : environmentKey === undefined
        ? ['New key', `${io.program} keys create --name NAME${storeFlag(settings.databaseUrl, io)}`]
        : ['API key', isInShell ? '$PETSTORE_API_KEY' : 'as given by --api-key'],
  ]
  const header = first ? `'Authorization: Bearer ${key}'` : '"Authorization: Bearer $PETSTORE_API_KEY"'
  // -k: the certificate may be self-signed.
  const curl = `curl ${settings.tlsCert ? '-k ' : ''}-H ${header} ${origin}/v1/pets`
  const tryIt = first || isInShell ? `\nTry it:\n  ${curl}\n` : ''
  const list = rows.map(([label = '', value]) => `  ${label.padEnd(9)}  ${value}\n`).join('')
  try {
    await io.out(`petstore ${version} serves ${origin}/v1 from ${location}\n\n${list}${tryIt}\nStop with Ctrl-C.\n`)
  } catch (cause) {
    if (first) await keys.revoke(first.id, new Date())
    throw new SetupError('Cannot write the address to stdout: check where stdout goes', { cause })
  }
}

/** The flag with which another command in this shell opens the same store. It never shows a password. */
function storeFlag(url: string, io: Io): string {
  if (url === (io.env['DATABASE_URL'] || settings.databaseUrl.default)) return ''
  if (isPostgres(url)) return ' --database-url URL'
  return ` --database-url ${/^[\w:./-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`}`
}
