// One PostgreSQL server: what its sessions need, and whether it can keep a store.

import { SQL } from 'bun'
import { StoreError, type StoreProblem, StoreUnreachable } from '../../errors.ts'
import { withTimeout } from '../../timeout.ts'
import { writeMsMax } from '../commit-queue.ts'
import type { PostgresAddress } from './url.ts'

/** How long a client waits for its work, and how long a connection with work may be silent. */
export const workMsMax = writeMsMax
/** A migration may build an index on the whole table; an export waits for its reader, an import for its source. */
const longStatementMsMax = 600_000
/** Statements may finish for this long when a connection closes. */
const closeSeconds = 1

/** Behind a pooler, the operator sets them for the role. */
const sessionLimits = {
  // A connection that works says something before it counts as hung, also behind a lock.
  statement_timeout: workMsMax - 1_000,
  // A process that is suspended within a transaction must not keep its locks.
  idle_in_transaction_session_timeout: 2 * workMsMax,
}

/** After waiting for the lock, a creation must see what the lock's previous holder has committed. */
const isolation = 'read committed'

export const sessionSettings = {
  ...sessionLimits,
  default_transaction_isolation: isolation,
  // Prepared statements are planned once, perhaps while the table is small.
  enable_seqscan: 'off',
  // Otherwise every list is planned again, which takes as long as running it.
  plan_cache_mode: 'force_generic_plan',
  // Firewalls forget connections that are idle for minutes.
  tcp_keepalives_idle: 60,
}

/** One connection, which opens when it is first needed. */
export function connect(address: PostgresAddress, onclose = () => {}): SQL {
  const { url, applicationName: application_name, connectSecondsMax, pooled } = address
  return new SQL(url, {
    max: 1,
    bigint: true,
    connectionTimeout: connectSecondsMax,
    // A pooler may run every transaction in another session: nothing may depend on the session.
    prepare: !pooled,
    connection: pooled ? { application_name } : { application_name, ...sessionSettings },
    onclose,
  })
}

/** Bounded in time even if the server does not respond. Errors do not matter any more. */
export async function close(sql: SQL): Promise<void> {
  await withTimeout(sql.close({ timeout: closeSeconds }), 2 * closeSeconds * 1_000, () => {}).catch(() => {})
}

/** One connection for {@link longTransaction}s. Dispose of it to close it. */
export function connectForLongWork(address: PostgresAddress): AsyncDisposable & { readonly sql: SQL } {
  const sql = connect(address)
  return { sql, [Symbol.asyncDispose]: () => close(sql) }
}

/** To be run first in a transaction that may take minutes. If we are killed, the server ends it within a second. */
export const longTransaction = `
  SET LOCAL statement_timeout = ${longStatementMsMax};
  SET LOCAL idle_in_transaction_session_timeout = ${longStatementMsMax};
  SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';
  DO $$ BEGIN
    PERFORM set_config('client_connection_check_interval', '1s', true);
  EXCEPTION WHEN OTHERS THEN
    -- Not every version and system can do it.
  END $$`

/**
 * Throws a StoreError if the server cannot keep a store, or takes no writes. Returns the ALTER ROLE statements for
 * settings that sessions behind a pooler lack.
 */
export async function checkServer(address: PostgresAddress): Promise<readonly string[]> {
  const { pooled, location } = address
  await using connection = connectForLongWork(address)
  // What a session of ours gets. Times are in milliseconds; 0 means no limit.
  const description = connection.sql<[{ role: string; settings: Readonly<Record<string, string>> }]>`
    SELECT quote_ident(current_user) AS role, (SELECT json_object_agg(name, setting) FROM pg_settings) AS settings`
  const [{ role, settings }] = await withTimeout(description, workMsMax, () => {
    throw new StoreUnreachable('no-answer', `Cannot use ${location}: it did not answer within ${workMsMax} ms`)
  })
  const setForRole = (name: string, value: string) => `ALTER ROLE ${role} SET ${name} = '${value}'`
  const missing = Object.entries(sessionLimits).flatMap(([name, ms]) =>
    Number(settings[name]) === 0 || Number(settings[name]) > ms ? setForRole(name, `${ms / 1_000}s`) : [],
  )
  const refuse = (problem: StoreProblem, happened: string, kind = StoreError) => {
    throw new kind(problem, `Cannot use ${location}: ${happened}`)
  }
  const { server_encoding: encoding, default_transaction_isolation: level } = settings
  if (encoding !== 'UTF8') refuse('wrong-database', `the encoding of its database is ${encoding}`)
  if (settings['transaction_read_only'] === 'on') {
    refuse('no-primary', 'it takes no writes (a standby, or read-only)', StoreUnreachable)
  }
  if (!pooled && missing.length > 0) {
    refuse('pooler', 'it ignores the time limits of a session, like a connection pooler in transaction mode')
  }
  if (level !== isolation) {
    const statement = setForRole('default_transaction_isolation', isolation)
    refuse('isolation', `its sessions have the isolation level ${level} (${statement})`)
  }
  if (pooled && settings['synchronous_commit'] === 'off') missing.push(setForRole('synchronous_commit', 'on'))
  return missing
}
