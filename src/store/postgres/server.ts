import { SQL } from 'bun'
import { StoreError, type StoreProblem, StoreUnreachable } from '../../errors.ts'
import { withTimeout } from '../../timeout.ts'
import { isOutOfConnections, isSessionEnded, postgresStoreError } from './errors.ts'
import type { PostgresHost } from './url.ts'

/** The server ends a statement that runs or waits for a lock longer than this. */
const statementMsMax = 4_000
export const lockMsMax = 3_000
/** A migration may build an index on the whole table; an export waits for its reader. */
const longStatementMsMax = 600_000
/** Waiting for a connection and for the result together. The server has ended the statement by then. */
export const workMsMax = statementMsMax + 1_000
const connectSecondsMax = 2
/** Statements may finish for this long when a pool closes. */
const closeSeconds = 1
const idleSeconds = 60
/** For a host to accept a connection and describe itself. */
export const probeMsMax = 3_000
/** How long to wait for a preferred host when another one is usable; for the present primary longer. */
const preferredMsMax = 100
const presentPrimaryMsMax = 1_000

/** A host that was usable when it was probed. */
export interface Server {
  readonly host: PostgresHost
  /**
   * As configured on the server, but never `off`: a commit must be on disk before it is reported. Set for each session,
   * so that a later change of the configuration has no effect.
   */
  readonly synchronousCommit: string
  /** ALTER ROLE statements for settings that sessions behind a pooler lack. */
  readonly missingSettings: readonly string[]
  /** Connections that the server, the database and the role allow. */
  readonly connectionsAllowed: number
}

/** Limits of every session. Behind a pooler, the operator sets them for the role. */
const sessionLimits = {
  statement_timeout: statementMsMax,
  lock_timeout: lockMsMax,
  idle_in_transaction_session_timeout: 2 * statementMsMax,
}

export const planSettings = {
  // Prepared statements are planned once, perhaps while the table is small.
  enable_seqscan: 'off',
  // Otherwise every list is planned again, which takes as long as running it.
  plan_cache_mode: 'force_generic_plan',
}

/** After waiting for the lock, a creation must see what the lock's previous holder has committed. */
const isolation = 'read committed'

type DriverOptions = Pick<SQL.PostgresOrMySQLOptions, 'max' | 'idleTimeout' | 'onclose'>

/** By default one connection, which opens when it is first needed. `session` adds settings of the session. */
export function connect(
  { url, pooled }: PostgresHost,
  session: Readonly<Record<string, string>> = {},
  options: DriverOptions = {},
): SQL {
  const application_name = 'petstore'
  const connection = { application_name, default_transaction_isolation: isolation, ...sessionLimits, ...session }
  return new SQL(url, {
    max: 1,
    bigint: true,
    connectionTimeout: connectSecondsMax,
    idleTimeout: idleSeconds,
    // A pooler may run every transaction in another session: nothing may depend on the session.
    prepare: !pooled,
    ...(!pooled && { connection }),
    ...options,
  })
}

/** Settings of a session on the primary. A standby refuses the connection. */
export function primarySession({ synchronousCommit }: Server): Record<string, string> {
  return { synchronous_commit: synchronousCommit, ...planSettings, transaction_read_only: 'off' }
}

/** Bounded in time even if the server does not respond. Errors do not matter any more. */
export async function close(sql: SQL): Promise<void> {
  await withTimeout(sql.close({ timeout: closeSeconds }), 2 * closeSeconds * 1_000, () => {}).catch(() => {})
}

/** One connection for {@link longTransaction}s. Dispose of it to close it. */
export function connectForLongWork({ host }: Server): AsyncDisposable & { readonly sql: SQL } {
  const sql = connect(host)
  return { sql, [Symbol.asyncDispose]: () => close(sql) }
}

/** To be run first in a transaction that may take minutes. If we are killed, the server ends it within a second. */
export const longTransaction = `
  SET LOCAL statement_timeout = ${longStatementMsMax};
  SET LOCAL lock_timeout = ${longStatementMsMax};
  SET LOCAL idle_in_transaction_session_timeout = ${longStatementMsMax};
  SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';
  DO $$ BEGIN
    PERFORM set_config('client_connection_check_interval', '1s', true);
  EXCEPTION WHEN OTHERS THEN
    -- Not every version and system can do it.
  END $$`

/**
 * Asks all hosts at once, and returns the first that takes writes. Does not wait long for a host when another one does.
 * `present` is the server in use. Throws if none takes writes: the cause has the error of each host.
 */
export async function findServer(hosts: readonly PostgresHost[], present?: Server): Promise<Server> {
  // A former primary that comes back may still believe that it is the primary.
  const first = present?.host
  const inOrder = first ? [first, ...hosts.filter(host => host !== first)] : hosts
  const checks = inOrder.map(host => checkHost(host))
  const patience = Promise.any(checks).then(
    () => Bun.sleep(first ? presentPrimaryMsMax : preferredMsMax),
    () => {},
  )
  for (const answer of checks.map(check => check.catch(() => {}))) {
    const found = await Promise.race([answer, patience])
    if (found) return found
  }
  const outcomes = await Promise.allSettled(checks)
  const errors = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? outcome.reason : []))
  // It refuses one more connection, but those that are open work; or an administrator ended this one.
  if (present && (isOutOfConnections(errors[0]) || isSessionEnded(errors[0]))) return present
  if (errors.length === 1) throw errors[0]
  const ofHosts = errors.map((error, index) => postgresStoreError(error, inOrder[index]?.name ?? ''))
  throw new StoreUnreachable('no-primary', 'None of the hosts takes writes', { cause: new AggregateError(ofHosts) })
}

interface HostDescription {
  readonly standby: boolean
  readonly synchronousCommit: string
  readonly encoding: string
  readonly isolation: string
  readonly role: string
  readonly connectionsAllowed: number
  /** In milliseconds; 0 means no limit. */
  readonly limits: Readonly<Record<string, string>>
}

async function checkHost(host: PostgresHost): Promise<Server> {
  const sql = connect(host)
  const query = sql.unsafe<[HostDescription]>(`
    SELECT current_setting('transaction_read_only') = 'on' AS standby,
      current_setting('synchronous_commit') AS "synchronousCommit", current_setting('server_encoding') AS encoding,
      current_setting('default_transaction_isolation') AS isolation, quote_ident(current_user) AS role,
      (SELECT least(
         CASE WHEN rolconnlimit >= 0 AND NOT rolsuper THEN rolconnlimit END,
         CASE WHEN datconnlimit >= 0 AND NOT rolsuper THEN datconnlimit END,
         current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
       ) FROM pg_roles, pg_database WHERE rolname = session_user AND datname = current_database()
      ) AS "connectionsAllowed",
      (SELECT json_object_agg(name, setting) FROM pg_settings WHERE name LIKE '%_timeout') AS limits`)
  const [found] = await withTimeout(query, probeMsMax, () => {
    throw new StoreUnreachable('no-answer', `Cannot use ${host.name}: it did not answer within ${probeMsMax} ms`)
  }).finally(() => void close(sql))
  const refuse = (problem: StoreProblem, happened: string, kind = StoreError) => {
    throw new kind(problem, `Cannot use ${host.name}: ${happened}`)
  }
  const { encoding, synchronousCommit, role, limits, connectionsAllowed } = found
  if (encoding !== 'UTF8') refuse('encoding', `the encoding of its database is ${encoding}`)
  if (found.standby) refuse('no-primary', 'it takes no writes (a standby, or read-only)', StoreUnreachable)
  const setForRole = (name: string, value: string) => `ALTER ROLE ${role} SET ${name} = '${value}'`
  const missingSettings = Object.entries(sessionLimits).flatMap(([name, ms]) =>
    Number(limits[name]) === 0 || Number(limits[name]) > ms ? setForRole(name, `${ms / 1_000}s`) : [],
  )
  // Without time limits, a creation that got 503 could be committed later.
  if (!host.pooled && missingSettings.length > 0) {
    refuse('pooler', 'it ignores the time limits of a session, like a connection pooler in transaction mode')
  }
  if (found.isolation !== isolation) {
    const statement = setForRole('default_transaction_isolation', isolation)
    refuse('isolation', `its sessions have the isolation level ${found.isolation} (${statement})`)
  }
  if (host.pooled && synchronousCommit === 'off') missingSettings.push(setForRole('synchronous_commit', 'on'))
  const safeCommit = synchronousCommit === 'off' ? 'on' : synchronousCommit
  return { host, synchronousCommit: safeCommit, missingSettings, connectionsAllowed }
}
