/** The promise's outcome, or the outcome of `late` if `ms` pass first. `late` may throw. */
export function withTimeout<T, L>(promise: Promise<T>, ms: number, late: () => L): Promise<T | Awaited<L>> {
  const { promise: timeout, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  return Promise.race([promise, timeout.then(late)]).finally(() => clearTimeout(timer))
}
