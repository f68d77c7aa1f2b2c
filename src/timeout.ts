/** The promise's outcome, or the outcome of `late` if `ms` pass first. `late` may throw. */
export async function withTimeout<T, L>(promise: Promise<T>, ms: number, late: () => L): Promise<T | L> {
  const timeout = Promise.withResolvers<typeof expired>()
  const timer = setTimeout(timeout.resolve, ms, expired)
  try {
    const outcome = await Promise.race([promise, timeout.promise])
    return outcome === expired ? late() : outcome
  } finally {
    clearTimeout(timer)
  }
}

const expired = Symbol('expired')

/** Runs the work every `ms`, never twice at once. The work may return another pause. Dispose to stop. */
export function repeat(ms: number, work: () => Promise<number | undefined>): Disposable {
  let ended = false
  const run = async () => {
    const nextMs = await work()
    if (!ended) timer = setTimeout(run, nextMs ?? ms)
  }
  let timer = setTimeout(run, ms)
  return {
    [Symbol.dispose]() {
      ended = true
      clearTimeout(timer)
    },
  }
}
