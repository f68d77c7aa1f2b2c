import { readFileSync } from 'node:fs'
import { readCode, SetupError } from '../errors.ts'
import { App, type AppParts } from '../http/app.ts'
import { type Address, type Listener, listen } from '../http/server.ts'
import type { Log } from '../log.ts'
import { openStores } from '../store/open.ts'
import type { OnStoreEvent, OpenOptions, Stores } from '../store-contract.ts'
import { withTimeout } from '../timeout.ts'
import { createPages } from '../web/pages.ts'
import { explain, withAdvice } from './advice.ts'
import { inBackground, repeat, retryUnreachable, startSweep } from './background.ts'
import { command } from './command.ts'
import { greet } from './greeting.ts'
import { BufferedLog } from './log.ts'
import { build, exitCode, type Io } from './output.ts'
import { checkSettings, type ServeSettings, settings as serveSettings } from './settings.ts'

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
/** For the last uses of keys, which a lock can hold up. */
const flushMsMax = 3_000
/** At the end, how long to wait for the reader of the log. */
const logReaderMs = 2_000
/** If the process is killed, at most this much recorded use of keys is lost. */
const recordUsesEveryMs = 5_000

interface Demo {
  /** Fills the store. */
  prepare(stores: Stores): unknown
  /** Whether to take a free port if the given one is in use. */
  readonly takesAnyPort: boolean
}

/** Builds the service, runs it until a signal, and shuts it down. */
export async function serve(settings: ServeSettings, io: Io, demo?: Demo): Promise<number> {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<number>()
  // Further signals change nothing: Ctrl-C under npm can arrive twice.
  const signals = ['SIGINT', 'SIGTERM', ...(ignoresHangup() ? [] : ['SIGHUP'])]
  for (const signal of signals) process.on(signal, () => stop(exitCode.success))
  const log = new BufferedLog(settings.logLevel, io)
  const { host, port, reusePort, tlsCert, tlsKey, drainMs } = settings
  const tls = tlsCert && tlsKey ? { cert: tlsCert, key: tlsKey } : undefined
  const onEnd = (cause: string) => {
    log.write('error', 'The writer thread ended, which should not happen: stopping, to be started again', { cause })
    stop(exitCode.failure)
  }
  const stores = await Promise.race([openWithRetry(settings, log, onEnd), stopped])
  if (typeof stores === 'number') {
    log.write('info', 'Stopping')
    log.flush()
    // Returning would wait for the pending connection attempt.
    process.exit(exitCode.success)
  }
  // Writing starts while the server is built. A failure is reported when the server waits for it.
  const writing = stores.startWriting()
  writing.catch(() => {})
  const sweep = startSweep(stores.pets, log)
  void stopped.then(() => setTimeout(() => endWithoutStore(log), drainMs + closeMsMax).unref())
  try {
    await demo?.prepare(stores)
    const app = createApp(settings, stores, sweep, log)
    await writing
    await app.checkStore()
    const listener = startListening(app, { host, port, reusePort, tls, takesAnyPort: demo?.takesAnyPort })
    if (port !== 0 && listener.port !== port) await io.err(`Port ${port} is in use: using a free port instead\n`)
    const recording = repeat(log, recordUsesEveryMs, () => app.flush())
    try {
      await greet({ ...settings, port: listener.port }, stores, log, io)
      const code = await stopped
      log.write('info', 'Stopping')
      log.flush()
      return code
    } finally {
      const unanswered = await listener.stop(drainMs)
      recording[Symbol.dispose]()
      await inBackground(log, () => withTimeout(app.flush(), flushMsMax, () => {}))
      if (unanswered > 0) log.write('warn', 'Closed requests unanswered after the drain time', { requests: unanswered })
    }
  } finally {
    // A failed start must end in time, too.
    stop(exitCode.failure)
    sweep[Symbol.dispose]()
    await stores.close()
    log.flush()
    // Returning lets the reader of the log receive the rest; a reader that has stopped reading must not block the exit.
    setTimeout(() => process.exit(), logReaderMs).unref()
  }
}

function createApp(settings: ServeSettings, stores: Stores, sweep: AppParts['sweep'], log: Log): App {
  return new App({
    stores,
    log,
    advice: withAdvice,
    build,
    sweep,
    pages: createPages(),
    environmentKey: settings.environmentKey,
    publicUrl: settings.publicUrl,
    stagingUrl: settings.stagingUrl,
    rateLimit: settings.rateLimit,
    corsOrigins: settings.corsOrigins,
    trustedProxies: settings.trustedProxies,
  })
}

/** A disk that does not answer must not keep the process: the next start recovers everything that was committed. */
function endWithoutStore(log: BufferedLog): never {
  log.write('error', 'The store did not close in time: check the disk. Committed animals are safe')
  process.exit(exitCode.failure)
}

/** Retries while the database is unreachable, if a waiting time is set. */
function openWithRetry(settings: ServeSettings, log: Log, onEnd: OpenOptions['onEnd']) {
  const { databaseUrl, readUrl, databasePooler: pooler, databasePool: connectionsMax, waitForDatabaseMs } = settings
  const onEvent: OnStoreEvent = (level, event) => log.write(level, withAdvice(event))
  const options = { create: true, onEvent, onEnd, readUrl, pooler, connectionsMax }
  return retryUnreachable(log, waitForDatabaseMs, () => openStores(databaseUrl, options))
}

function startListening(app: App, address: Address): Listener {
  try {
    return listen(app, address)
  } catch (cause) {
    const { host, port, tls } = address
    if (tls && !/^(EACCES$|EADDR)/.test(readCode(cause))) {
      throw new SetupError('Cannot use --tls-cert with --tls-key: expected a certificate and its key (PEM)', { cause })
    }
    const other = port === 9000 ? 9001 : 9000
    const useOther = `stop the other program, or use another port, such as --port ${other} (with npm: PORT=${other})`
    throw explain(`Cannot listen on ${host.includes(':') ? `[${host}]` : host}:${port}`, cause, [
      [/^EADDRINUSE$/, 'the port is in use', useOther],
      [/^EACCES$/, 'permission denied', 'use a port above 1023, such as 8080'],
      [/^/, 'the address is not usable', 'check --host and --port, or HOST and PORT'],
    ])
  }
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
