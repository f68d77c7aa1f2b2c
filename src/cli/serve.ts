import { readFileSync } from 'node:fs'
import { StoreUnreachable } from '../errors.ts'
import { App } from '../http/app.ts'
import { type Listener, listen, readTls, type Tls } from '../http/server.ts'
import type { Log } from '../log.ts'
import { openStores } from '../store/open.ts'
import type { Awaitable, Stores } from '../store.ts'
import { repeat } from '../timeout.ts'
import { createPages } from '../web/pages.ts'
import { command } from './arguments.ts'
import { inBackground, Sweep } from './background.ts'
import { greet } from './greeting.ts'
import { BufferedLog } from './log.ts'
import { build, exitCode, type Io } from './output.ts'
import { checkSettings, removedSettings, type ServeSettings, settings, unknownVariables } from './settings.ts'

export const serveCommand = command({
  name: 'serve',
  summary: 'Run the server until Ctrl-C or SIGTERM',
  options: { ...settings, ...removedSettings },
  details: 'A flag takes precedence over its environment variable.',
  examples: ['petstore serve', 'petstore serve --port 9000 --database-url sqlite:/var/lib/petstore/petstore.db'],
  check: checkSettings,
  run: (settings, io) => serve({ ...settings, threads: 1 }, io),
})

/** Beyond the drain time, for the store to record the use of keys and to close. */
const closeMsMax = 9_000
/** At the end, how long to wait for the reader of the log. */
const logReaderMs = 2_000
const retryDatabaseMs = 500
/** If the process is killed, at most this much recorded use of keys is lost. */
const flushEveryMs = 5_000

/** Builds the service, runs it until a signal, and shuts it down. `prepare` may fill the store first. */
export async function serve(
  settings: ServeSettings,
  io: Io,
  prepare?: (stores: Stores) => Promise<unknown>,
): Promise<undefined> {
  const stopped = nextStopSignal()
  const log = new BufferedLog(settings.logLevel, io)
  for (const warning of unknownVariables(io.env, io.program)) log.write('warn', warning)
  const { tlsCert, tlsKey } = settings
  const tls = tlsCert && tlsKey ? readTls(tlsCert, tlsKey) : undefined
  const stores = await openWithRetry(settings, log, stopped)
  // Returning would wait for the pending connection attempt.
  if (!stores) process.exit(exitCode.success)
  // Writing starts while the server is built. A failure is reported when the server waits for it.
  stores.startWriting().catch(() => {})
  const sweep = new Sweep(stores.pets, log)
  let overdue: ReturnType<typeof setTimeout> | undefined
  try {
    await prepare?.(stores)
    const listener = await startListening({ settings, stores, sweep, tls, log })
    try {
      await greet({ settings, port: listener.port, stores, log, io })
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

interface ListeningParts {
  readonly settings: ServeSettings
  readonly stores: Stores
  readonly sweep: Sweep
  readonly tls: Tls | undefined
  readonly log: Log
}

/** Serves the store, and records the use of keys, until `stop`. */
async function startListening({ settings, stores, sweep, tls, log }: ListeningParts): Promise<Listener> {
  const { environmentKey, publicUrl, stagingUrl, rateLimit, corsOrigins, trustedProxies, host, port, reusePort } =
    settings
  const { pets, keys, isReadOnly, activity } = stores
  const app = new App({
    pets,
    keys,
    isReadOnly,
    activity,
    sweep,
    log,
    build,
    pages: createPages(),
    environmentKey,
    publicUrl,
    stagingUrl,
    rateLimit,
    corsOrigins,
    trustedProxies,
  })
  await stores.startWriting()
  await app.checkStore()
  const listener = listen(app, { host, port, reusePort, tls })
  const flush = () => inBackground(log, () => app.flush())
  const flushing = repeat(flushEveryMs, () => flush().then(() => flushEveryMs))
  return {
    port: listener.port,
    async stop(drainMs) {
      const unanswered = await listener.stop(drainMs)
      flushing[Symbol.dispose]()
      await flush()
      return unanswered
    },
  }
}

function open({ databaseUrl, readUrl, databasePooler, databasePool }: ServeSettings, log: Log): Awaitable<Stores> {
  const postgres = { readUrl, pooler: databasePooler, connectionsMax: databasePool }
  return openStores(databaseUrl, { create: true, onEvent: (level, message) => log.write(level, message), ...postgres })
}

/** Retries while the database is unreachable, if a waiting time is set. Undefined if a signal came first. */
async function openWithRetry(settings: ServeSettings, log: Log, stopped: Promise<void>): Promise<Stores | undefined> {
  const { waitForDatabaseMs } = settings
  const endMs = performance.now() + waitForDatabaseMs
  const stop = stopped.then(() => undefined)
  for (let attempt = 0; ; attempt++) {
    try {
      return await Promise.race([open(settings, log), stop])
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
