/**
 * An answer that is either there already or still to come. SQLite reads are there at once, and handing them on
 * without a promise keeps a request on one turn of the event loop; PostgreSQL's have to be waited for.
 */
export type Awaitable<T> = T | Promise<T>

/** Goes on with the value: at once where it is there, later where it is a promise. */
export function whenReady<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}
