import { SQL } from 'bun'
import { SetupError, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import type { OnStoreEvent } from '../../store.ts'
import { withTimeout } from '../../timeout.ts'
import {
  isConflictWithRecovery,
  isConnectionLost,
  isOutOfConnections,
  poolerAdvice,
  postgresSetupError,
  postgresStoreError,
} from './errors.ts'
import type { PostgresHost } from './url.ts'

/** The server ends a statement that runs or waits for a lock longer than this. */
const statementMsMax = 4_000
export const lockMsMax = 3_000
/** A migration may build an index on the whole table; an export waits for its reader. */
const longStatementMsMax = 600_000
const connectSecondsMax = 2
/** Statements may finish for this long when a pool closes. */
const closeSeconds = 1
/** Unused connections are closed after this time. */
const idleSeconds = 60
/** For a host to accept a connection and describe itself. */
const probeMsMax = 3_000
/** How long to wait for a preferred host when another one is usable; for the present primary longer. */
const preferredMsMax = 100
const presentPrimaryMsMax = 1_000
/** Between two searches while no host is usable. */
const searchIntervalMs = 500
/** Between two checks whether the preferred replica is back. */
const returnIntervalMs = 10_000
/** Between two uses of connections that are kept open. */
const keepOpenIntervalMs = 30_000
/** How often readers give up their connections for those that are kept open. */
const makeRoomIntervalMs = 5_000
/** How long to try to open connections after that, and the pause between two attempts. */
const roomMsMax = 2_000
const roomPauseMs = 20

/** Waiting for a connection and for the result together. The server has ended the statement by then. */
export const workMsMax = statementMsMax + 1_000

/** Work that runs or waits for a connection, at most. */
export const workMax = 1_024

/** `primary` takes writes; `any` may be a standby. */
type Role = 'primary' | 'any'

/** A host that was usable when it was probed. */
export interface Server {
  readonly host: PostgresHost
  /**
   * As configured on the server, but never `off`: a commit must be on disk before it is reported. Set for each session, so
   * that a later change of the configuration has no effect.
   */
  readonly synchronousCommit: string
  /** ALTER ROLE statements for settings that its sessions lack, which happens only behind a pooler. */
  readonly missingSettings: readonly string[]
  /** Connections that the server, the database and the role allow; unknown behind a pooler. */
  readonly connectionsAllowed: number
}

/** Limits of every session. Behind a pooler, the operator sets them for the role. */
const sessionLimits = {
  statement_timeout: statementMsMax,
  lock_timeout: lockMsMax,
  idle_in_transaction_session_timeout: 2 * statementMsMax,
}

/** How statements are planned. */
export const planSettings = {
  // Prepared statements are planned once, perhaps while the table is small.
  enable_seqscan: 'off',
  // Otherwise every list is planned again, which takes as long as running it.
  plan_cache_mode: 'force_generic_plan',
}

/** After waiting for the lock, a creation must see what the lock's previous holder has committed. */
const isolation = 'read committed'

/** Connections to one host, each opened when it is first needed. `session` adds settings of the session. */
function connect(
  { url, pooled }: PostgresHost,
  connectionsMax: number,
  session: Record<string, string> = {},
  idleTimeout = idleSeconds,
): SQL {
  return new SQL(url, {
    max: connectionsMax,
    bigint: true,
    connectionTimeout: connectSecondsMax,
    idleTimeout,
    // A pooler may run every transaction in another session: nothing may depend on the session.
    prepare: !pooled,
    ...(!pooled && {
      connection: {
        application_name: 'petstore setup',
        default_transaction_isolation: isolation,
        ...sessionLimits,
        ...session,
      },
    }),
  })
}

/** Bounded in time even if the server does not respond. Errors do not matter any more. */
async function close(sql: SQL): Promise<void> {
  await withTimeout(sql.close({ timeout: closeSeconds }), 2 * closeSeconds * 1_000, () => {}).catch(() => {})
}

/** One connection for {@link longTransaction}s. Dispose of it to close it. */
export function connectForLongWork({ host, synchronousCommit }: Server): AsyncDisposable & { readonly sql: SQL } {
  const sql = connect(host, 1, { synchronous_commit: synchronousCommit })
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
 * Asks all hosts at once, and returns the first usable one. Does not wait for a host for longer than `preferredMs` after
 * another one is usable. Throws every host's problem if none is usable.
 */
export async function findServer(
  hosts: readonly PostgresHost[],
  role: Role,
  preferredMs = preferredMsMax,
): Promise<Server> {
  const checks = hosts.map(host => checkHost(host, role))
  const patience = Promise.any(checks).then(
    () => Bun.sleep(preferredMs),
    () => {},
  )
  for (const answer of checks.map(check => check.catch(() => {}))) {
    const found = await Promise.race([answer, patience])
    if (found) return found
  }
  const outcomes = await Promise.allSettled(checks)
  const errors = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? outcome.reason : []))
  if (errors.length === 1) throw errors[0]
  const messages = errors.map((error, index) => messageOf(postgresSetupError(error, hosts[index]?.name ?? '')))
  throw new StoreUnreachable(messages.join('; '), { cause: new AggregateError(errors) })
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

/** Set for a session that only checks a host. No role has it by chance, so a pooler that ignores it is noticed. */
const checkLockMsMax = lockMsMax - 1

async function checkHost(host: PostgresHost, role: Role): Promise<Server> {
  const sql = connect(host, 1, { lock_timeout: String(checkLockMsMax) })
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
    throw new StoreUnreachable(`Cannot use ${host.name}: it did not answer within ${probeMsMax} ms`)
  }).finally(() => void close(sql))
  const refuse = (problem: string, kind = SetupError) => {
    throw new kind(`Cannot use ${host.name}: ${problem}`)
  }
  const { encoding, synchronousCommit } = found
  if (encoding !== 'UTF8') refuse(`the encoding of its database is ${encoding}; create one with ENCODING 'UTF8'`)
  if (found.standby && role === 'primary') {
    refuse('it takes no writes (a standby, or read-only); name its primary', StoreUnreachable)
  }
  if (!host.pooled && Number(found.limits['lock_timeout']) !== checkLockMsMax) {
    refuse(`it ignores the settings of a session. ${poolerAdvice}`)
  }
  if (found.isolation !== isolation) {
    const statement = setForRole(found.role, 'default_transaction_isolation', isolation)
    refuse(`its sessions have the isolation level ${found.isolation}; run ${statement}`)
  }
  const missingSettings = missingIn(found)
  return {
    host,
    synchronousCommit: synchronousCommit === 'off' ? 'on' : synchronousCommit,
    missingSettings,
    connectionsAllowed: host.pooled ? Number.POSITIVE_INFINITY : found.connectionsAllowed,
  }
}

const setForRole = (role: string, name: string, value: string) => `ALTER ROLE ${role} SET ${name} = '${value}'`

function missingIn({ role, limits, synchronousCommit }: HostDescription): string[] {
  const missing = Object.entries(sessionLimits).filter(([name, ms]) => {
    const given = Number(limits[name])
    return given === 0 || given > ms
  })
  const statements = missing.map(([name, ms]) => setForRole(role, name, `${ms / 1_000}s`))
  return synchronousCommit === 'off' ? [...statements, setForRole(role, 'synchronous_commit', 'on')] : statements
}

interface PoolOptions {
  readonly hosts: readonly PostgresHost[]
  readonly role: Role
  /** For log lines, such as `writing`. */
  readonly purpose: string
  readonly connectionsMax: number
  /** How many of the allowed connections it leaves free. */
  readonly connectionsForOthers: number
  /** Opens all connections before they are needed, and never closes an unused one. Refused ones are taken from this pool. */
  readonly keepOpen?: { readonly before: Pool }
  readonly onEvent: OnStoreEvent
}

/** Connections to one of several hosts. Moves to another host when that one is no longer usable. */
export class Pool {
  readonly #options: PoolOptions
  #server: Server
  #sql: SQL
  #running = 0
  #searching: Promise<void> | undefined
  /** If not, work fails at once. */
  #reachable = true
  #usableSinceMs = performance.now()
  #closed = false
  /** While other connections are opened first, work waits. */
  #paused: Promise<void> | undefined
  #madeRoomMs = Number.NEGATIVE_INFINITY
  readonly #timer: ReturnType<typeof setInterval> | undefined

  /** `server` is one of the hosts, and was usable just now. */
  constructor(server: Server, options: PoolOptions) {
    this.#options = options
    this.#server = server
    this.#sql = this.#connect()
    if (options.keepOpen) this.#timer = setInterval(() => void this.#keepOpen(), keepOpenIntervalMs).unref()
    else if (options.role === 'any' && options.hosts.length > 1) {
      this.#timer = setInterval(() => void this.#returnToPreferred(), returnIntervalMs).unref()
    }
  }

  /** Rows of a statement that changes nothing: after a lost connection, or a conflict on a standby, it is run once more. */
  read<Row>(statement: string, values: unknown[] = []): Promise<Row[]> {
    return this.run(sql => sql.unsafe<Row[]>(statement, values), 2)
  }

  /** Runs statements, for at most {@link workMsMax}; after a lost connection again, if there are `attempts` left. */
  async run<T>(work: (sql: SQL) => Promise<T>, attempts = 1): Promise<T> {
    if (this.#running >= workMax) throw new StoreUnavailable(`${workMax} statements are waiting already`)
    if (!this.#reachable) throw new StoreUnavailable('no PostgreSQL server is usable')
    this.#running++
    const sql = this.#sql
    try {
      return await withTimeout(this.#attempt(work, attempts), workMsMax, () => {
        this.#abandon(sql)
        throw new StoreUnavailable(`PostgreSQL did not answer within ${workMsMax} ms`)
      })
    } catch (error) {
      throw postgresStoreError(error)
    } finally {
      this.#running--
    }
  }

  /** Opens all connections and uses each once. If the server refuses them, the readers give up theirs first. */
  async open(): Promise<void> {
    try {
      await this.#openAll()
    } catch (error) {
      const readers = this.#options.keepOpen?.before
      if (!readers || !isOutOfConnections(error)) throw error
      await readers.makeRoom(() => this.#openSoon())
    }
  }

  /** The sessions of connections that were just closed end a moment later. */
  async #openSoon(): Promise<void> {
    const endMs = performance.now() + roomMsMax
    for (;;) {
      try {
        return await this.#openAll()
      } catch (error) {
        if (!isOutOfConnections(error) || performance.now() > endMs) throw error
        await Bun.sleep(roomPauseMs)
      }
    }
  }

  /** Closes all connections, and opens none until `work` is done. Not often: running reads may be cancelled. */
  async makeRoom(work: () => Promise<void>): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#madeRoomMs < makeRoomIntervalMs) return work()
    this.#madeRoomMs = nowMs
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#paused = promise
    const sql = this.#sql
    try {
      await close(sql)
      // A search may have moved to another server meanwhile.
      if (sql === this.#sql) this.#sql = this.#connect()
      await work()
    } finally {
      this.#paused = undefined
      resolve()
    }
  }

  /** Throws if no connection can be opened, or if one does not answer in time. */
  async #openAll(): Promise<void> {
    const sql = this.#sql
    const reserving = Promise.allSettled(Array.from({ length: this.#size }, () => sql.reserve()))
    const opening = reserving.then(async outcomes => {
      const open = outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? outcome.value : []))
      const uses = await Promise.allSettled(open.map(connection => connection`SELECT 1`))
      for (const connection of open) connection.release()
      const failed = [...outcomes, ...uses].flatMap(outcome => (outcome.status === 'rejected' ? [outcome] : []))
      if (failed[0] && failed.length === outcomes.length) throw failed[0].reason
    })
    // The server ends every statement before, so a connection that is only busy answers in time.
    await withTimeout(opening, workMsMax, () => {
      if (sql === this.#sql) this.#moveTo(this.#server)
      throw new StoreUnavailable(`PostgreSQL did not answer within ${workMsMax} ms`)
    })
  }

  /** Opens lost connections again before readers need them, and keeps firewalls from forgetting unused ones. */
  async #keepOpen(): Promise<void> {
    if (this.#reachable && !this.#searching) await this.open().catch(() => this.#startSearch())
  }

  /** Since when work has been possible, on the monotonic clock. Undefined while it is not. */
  get usableSinceMs(): number | undefined {
    return this.#reachable ? this.#usableSinceMs : undefined
  }

  /** False while no host is known to be usable. */
  get isReachable(): boolean {
    return this.#reachable
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await close(this.#sql)
  }

  async #attempt<T>(work: (sql: SQL) => Promise<T>, attempts: number): Promise<T> {
    try {
      if (this.#paused) await this.#paused
      return await work(this.#sql)
    } catch (error) {
      if (isConnectionLost(error) || (isOutOfConnections(error) && this.#options.keepOpen)) this.#startSearch()
      else if (!isConflictWithRecovery(error)) throw error
      if (attempts === 1) throw error
      return await this.#attempt(work, attempts - 1)
    }
  }

  /** Replaces connections that do not answer, and looks for a usable host. */
  #abandon(sql: SQL): void {
    if (sql !== this.#sql || this.#searching) return
    this.#reachable = false
    this.#moveTo(this.#server)
    this.#startSearch()
  }

  #startSearch(): void {
    this.#searching ??= this.#search().finally(() => {
      this.#searching = undefined
    })
  }

  /** A lost connection may mean a restart, a failover, or nothing: probes the hosts until one is usable. */
  async #search(): Promise<void> {
    const { hosts, purpose, onEvent } = this.#options
    for (let attempt = 0; !this.#closed; attempt++) {
      const current = this.#server.host
      // The current host first: a former primary that comes back may still believe that it is the primary.
      const inOrder = [current, ...hosts.filter(host => host !== current)]
      try {
        const found = await this.#findServer(inOrder)
        if (this.#closed) return
        if (found.host !== current) this.#moveTo(found)
        if (this.#options.keepOpen) await this.open()
        this.#reachable = true
        this.#usableSinceMs = performance.now()
        if (found.host !== current || attempt > 0) this.#reportServer()
        return
      } catch (error) {
        this.#reachable = false
        const problem = messageOf(postgresStoreError(error))
        const message = `No PostgreSQL for ${purpose}: ${problem}; trying again until a server answers`
        if (attempt === 0) onEvent('error', message)
      }
      await Bun.sleep(searchIntervalMs)
    }
  }

  /** The present server also if it refuses one more connection: those that are open work. */
  async #findServer(inOrder: readonly PostgresHost[]): Promise<Server> {
    const { role } = this.#options
    try {
      return await findServer(inOrder, role, role === 'primary' ? presentPrimaryMsMax : preferredMsMax)
    } catch (error) {
      const { cause } = error as Error
      const [first]: unknown[] = cause instanceof AggregateError ? cause.errors : [error]
      if (isOutOfConnections(first)) return this.#server
      throw error
    }
  }

  /** Writes never return to the first host by themselves: the operator decides which host is the primary. */
  async #returnToPreferred(): Promise<void> {
    const { hosts, role } = this.#options
    if (this.#server.host === hosts[0]) return
    const found = await findServer(hosts, role).catch(() => undefined)
    if (this.#closed || !found || this.#searching || found.host === this.#server.host) return
    this.#moveTo(found)
    this.#reportServer()
  }

  #moveTo(server: Server): void {
    void close(this.#sql)
    this.#server = server
    this.#sql = this.#connect()
  }

  /** How many connections the pool may open on its present server. */
  get #size(): number {
    const { connectionsMax, connectionsForOthers } = this.#options
    return Math.max(1, Math.min(connectionsMax, this.#server.connectionsAllowed - connectionsForOthers))
  }

  #connect(): SQL {
    const { keepOpen, role } = this.#options
    const { host, synchronousCommit } = this.#server
    const session = {
      application_name: 'petstore',
      synchronous_commit: synchronousCommit,
      ...planSettings,
      // Makes a standby refuse the connection.
      ...(role === 'primary' && { transaction_read_only: 'off' }),
    }
    return connect(host, this.#size, session, keepOpen ? 0 : idleSeconds)
  }

  #reportServer(): void {
    const { onEvent, purpose } = this.#options
    onEvent('warn', `Now using PostgreSQL at ${this.#server.host.name} for ${purpose}`)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
