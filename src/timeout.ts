const expired = Symbol('expired')

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
