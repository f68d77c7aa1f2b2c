import { readFileSync } from 'node:fs'
import { StoreDamaged, StoreUnreachable } from '../errors.ts'
import { App } from '../http/app.ts'
import { listen } from '../http/server.ts'
import { openStores } from '../store/open.ts'
import type { OnStoreEvent, PetStore, Stores } from '../store.ts'
import { createPages } from '../web/pages.ts'
import { greet } from './greet.ts'
import { exitCode, type Io } from './io.ts'
import { createLog } from './log.ts'
import { type Flags, readServeSettings, type ServeSettings } from './settings.ts'

/** How long a use of a key may go unrecorded, should the process be killed. */
const flushEveryMs = 5_000

/** Keys of creations that are no longer kept are forgotten in steps, so that no step holds up an animal for long. */
const sweepEveryMs = 60_000
const sweptAtOnce = 500

/** At the end, whoever reads the log is waited for so long. */
const unreadMs = 2_000

/** Between two attempts to reach a database that is not there yet. */
const tryAgainMs = 500

/** Puts the service together, runs it until it is told to stop, and takes it apart again. */
export async function serve(flags: Flags, io: Io): Promise<number> {
  const settings = readServeSettings(flags, io.env)
  const stopRequested = nextStopSignal()
  const log = createLog({ level: settings.logLevel, isTerminal: io.isTerminal, write: io.err })
  const onEvent: OnStoreEvent = (level, message) => log.write(level, message)
  const stores = await openPatiently(settings, onEvent, stopRequested)
  // Not by returning: what waits for the database would keep the process.
  if (!stores) process.exit(exitCode.success)
  const app = new App({ ...stores, ...settings, log, pages: createPages() })
  const inBackground = (work: Promise<void>) =>
    work.catch(cause => {
      if (cause instanceof StoreDamaged) return
      log.write('error', 'work in the background failed', { cause: String(cause) })
    })
  const flushing = setInterval(() => inBackground(app.flush()), flushEveryMs)
  const sweeping = setInterval(() => inBackground(deleteExpiredKeys(stores.pets)), sweepEveryMs)
  try {
    await stores.startWriting()
    const listener = listen(app, settings)
    try {
      await greet(settings, listener.port, stores, io)
      await stopRequested
      log.write('info', 'Stopping')
      log.flush()
    } finally {
      const cutOff = await listener.stop(settings.drainMs)
      if (cutOff > 0) log.write('warn', 'Cut off unanswered after the drain time', { requests: cutOff })
    }
    return exitCode.success
  } finally {
    clearInterval(flushing)
    clearInterval(sweeping)
    await inBackground(app.flush())
    await stores.close()
    log.end()
    // By returning, so that whoever reads the log gets all of it. But a reader who has stopped reading is not waited for.
    setTimeout(() => process.exit(), unreadMs).unref()
  }
}

/** A database that starts at the same time as we do may need a moment. Undefined where we were told to stop meanwhile. */
async function openPatiently(
  { databaseUrl, readUrl, databasePool: connectionsMax, waitForDatabaseMs }: ServeSettings,
  onEvent: OnStoreEvent,
  stopRequested: Promise<void>,
): Promise<Stores | undefined> {
  const end = performance.now() + waitForDatabaseMs
  const stopped = stopRequested.then(() => undefined)
  for (let tries = 0; ; tries++) {
    try {
      const opening = openStores(databaseUrl, { create: true, onEvent, readUrl, connectionsMax })
      return await Promise.race([opening, stopped])
    } catch (error) {
      const left = end - performance.now()
      if (!(error instanceof StoreUnreachable) || left <= 0) throw error
      if (tries === 0) onEvent('error', `${error.message}; trying again for ${waitForDatabaseMs / 1_000} s`)
      const again = Bun.sleep(Math.min(tryAgainMs, left)).then(() => true)
      if (!(await Promise.race([stopped, again]))) return undefined
    }
  }
}

async function deleteExpiredKeys(pets: PetStore): Promise<void> {
  while ((await pets.deleteExpiredKeys(new Date(), sweptAtOnce)) === sweptAtOnce) await Bun.sleep(10)
}

/** Ctrl-C under npm can arrive twice; the second one changes nothing. */
function nextStopSignal(): Promise<void> {
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM']
  if (!ignoresHangup()) signals.push('SIGHUP')
  return new Promise(resolve => {
    for (const signal of signals) process.on(signal, () => resolve())
  })
}

/** Whether SIGHUP was ignored at the start, as under nohup. Only Linux reports it; elsewhere SIGHUP keeps its default. */
function ignoresHangup(): boolean {
  try {
    const [, ignored = ''] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    // SIGHUP is signal 1, the lowest bit.
    return Number.parseInt(ignored.slice(-1), 16) % 2 === 1
  } catch {
    return true
  }
}
