import { SQL } from 'bun'

/** How long a statement may run, and how long it may wait for a lock: the server ends it then. */
export const statementMsMax = 4_000
const lockMsMax = 3_000

/** How long it may take to reach a server. */
const connectSecondsMax = 2

/** What runs when a pool is closed has so long to end; then it is cut off. */
const closeSeconds = 1

/** A connection that is not used for so long is closed, so that a quiet instance holds few. */
const idleSeconds = 60

export interface ConnectOptions {
  /** Connections at most. */
  readonly max: number
  /** Said by us, so that no change of the server's configuration takes it back. */
  readonly synchronousCommit?: string
  /** Only to a server that takes writes: a standby then refuses the connection. */
  readonly takesWrites?: boolean
  /** For work that may take longer than a request: so much for each statement, and between two of them. */
  readonly patienceMs?: number
}

/** A pool of connections to one host; each is opened when it is first needed. */
export function connect(
  url: string,
  { max, synchronousCommit, takesWrites, patienceMs }: ConnectOptions,
): SQL {
  return new SQL(url, {
    max,
    bigint: true,
    connectionTimeout: connectSecondsMax,
    idleTimeout: idleSeconds,
    connection: {
      application_name: 'petstore',
      statement_timeout: patienceMs ?? statementMsMax,
      lock_timeout: patienceMs ?? lockMsMax,
      idle_in_transaction_session_timeout: patienceMs ?? 2 * statementMsMax,
      // Each statement of a transaction sees what was committed before it: the counter's lock relies on that.
      default_transaction_isolation: 'read committed',
      ...(synchronousCommit && { synchronous_commit: synchronousCommit }),
      ...(takesWrites && { transaction_read_only: 'off' }),
    },
  })
}

/** Bounded, even where the other side says nothing; and whatever goes wrong with it, we are done with these connections. */
export async function close(sql: SQL): Promise<void> {
  const closing = sql.close({ timeout: closeSeconds })
  await within(closing, 2 * closeSeconds * 1_000, () => new Error('late')).catch(() => {})
}

/** The promise's outcome, or `late`'s error where it takes too long. */
export async function within<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const outcome = Promise.withResolvers<T>()
  const timer = setTimeout(() => outcome.reject(late()), ms)
  promise.then(outcome.resolve, outcome.reject)
  try {
    return await outcome.promise
  } finally {
    clearTimeout(timer)
  }
}
