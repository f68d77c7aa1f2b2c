// Ctrl-C while a command changes a store or writes a file.

import { OutcomeUnknown, SetupError } from '../errors.ts'
import { withTimeout } from '../timeout.ts'
import { exitCode, type Io } from './output.ts'

/**
 * Until `work` calls `catchSignals`, SIGINT and SIGTERM end the process at once; after that they abort its signal, and
 * `work` has to end soon. If it fails then, the process prints `ifAborted`, or `ifUnknown` after an OutcomeUnknown, and
 * ends.
 */
export async function runInterruptible<T>(
  io: Io,
  { ifAborted, ifUnknown = ifAborted }: { readonly ifAborted: string; readonly ifUnknown?: string },
  work: (catchSignals: () => AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const signals = ['SIGINT', 'SIGTERM'] as const
  const catchSignals = () => {
    // Ctrl-C under npm can deliver SIGINT twice: the second one must not end the clean-up.
    for (const signal of signals) process.on(signal, abort)
    return controller.signal
  }
  try {
    return await work(catchSignals)
  } catch (error) {
    const isUnknown = error instanceof OutcomeUnknown
    if (isUnknown && !controller.signal.aborted) throw new SetupError(`Lost the store: ${ifUnknown}`, { cause: error })
    if (!controller.signal.aborted) throw error
    io.err(`petstore: Interrupted: ${isUnknown ? ifUnknown : ifAborted}\n`)
    // Returning could wait forever for a stalled pipe or database.
    return process.exit(exitCode.failure)
  } finally {
    for (const signal of signals) process.off(signal, abort)
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
