import { exitCode, type Io } from './io.ts'

/** Aborted by Ctrl-C or SIGTERM, which then no longer end the process by themselves: whoever asks has to. */
export function interruption(): AbortSignal {
  const controller = new AbortController()
  // Not once: Ctrl-C under npm can arrive twice, and the second one must not cut off the cleaning up.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => controller.abort())
  return controller.signal
}

/** The same promise, but rejected as soon as somebody interrupts: a reader that has stalled is not waited for. */
export async function unlessInterrupted<T>(promise: Promise<T>, interrupted: AbortSignal): Promise<T> {
  interrupted.throwIfAborted()
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  const stop = () => reject(interrupted.reason)
  interrupted.addEventListener('abort', stop)
  try {
    return await Promise.race([promise, stopped])
  } finally {
    interrupted.removeEventListener('abort', stop)
  }
}

/** The same batches, but none is waited for once somebody interrupts. */
export async function* interruptible<T>(
  batches: AsyncIterable<T>,
  interrupted: AbortSignal,
): AsyncGenerator<T> {
  const iterator = batches[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { done, value } = await unlessInterrupted(iterator.next(), interrupted)
      if (done) return
      yield value
    }
  } finally {
    // Not waited for: a database that has stalled would keep us.
    void iterator.return?.()?.catch(() => {})
  }
}

/** Not by returning: a reader or a writer at the other end of a pipe may have stalled, and would keep the process. */
export function endInterrupted(outcome: string, io: Io): never {
  io.err(`petstore: Interrupted: ${outcome}\n`)
  process.exit(exitCode.failure)
}
