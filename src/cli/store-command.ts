import { openStores } from '../store/open.ts'
import type { Stores } from '../store.ts'
import { withTimeout } from '../timeout.ts'
import { exitCode, type Io } from './output.ts'

/** Opens the store, does the work and closes the store. Reports a new store: a wrong address would create one, too. */
export async function withStores(
  { databaseUrl, ...options }: { databaseUrl: string; pooler: boolean; create: boolean },
  io: Io,
  work: (stores: Stores) => unknown,
) {
  const stores = await openStores(databaseUrl, options)
  try {
    if (stores.newStorePath !== undefined) io.err(`Created a new store at ${stores.newStorePath}\n`)
    await work(stores)
  } finally {
    await stores.close()
  }
}

/**
 * Until `work` calls `catchSignals`, SIGINT and SIGTERM end the process at once; after that they abort its signal, and
 * `work` has to end soon. Then the process prints `outcome` and ends with a failure.
 */
export async function interruptible(
  io: Io,
  outcome: (error: unknown) => string,
  work: (catchSignals: () => AbortSignal) => Promise<void>,
) {
  const controller = new AbortController()
  const catchSignals = () => {
    // Ctrl-C under npm can deliver SIGINT twice: the second one must not end the clean-up.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => controller.abort())
    return controller.signal
  }
  try {
    await work(catchSignals)
  } catch (error) {
    if (!controller.signal.aborted) throw error
    io.err(`petstore: Interrupted: ${outcome(error)}\n`)
    // Returning could wait forever for a stalled pipe or database.
    process.exit(exitCode.failure)
  }
}

/** The promise's outcome. After an abort, waits `graceMs` more; then rejects with `late`, or the signal's reason. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal, graceMs = 0, late?: Error) {
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  const stop = () => resolve()
  signal.addEventListener('abort', stop)
  try {
    if (!signal.aborted) await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return signal.aborted ? withTimeout(promise, graceMs, () => Promise.reject(late ?? signal.reason)) : promise
}
