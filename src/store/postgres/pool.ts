import { SQL } from 'bun'
import { SetupError, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import type { OnStoreEvent, PoolActivity } from '../../store.ts'
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
const idleSeconds = 60
/** For a host to accept a connection and describe itself. */
const probeMsMax = 3_000
/** How long to wait for a preferred host when another one is usable; for the present primary longer. */
const preferredMsMax = 100
const presentPrimaryMsMax = 1_000
/** Between two attempts while no host is usable. */
const searchIntervalMs = 500
/** Between two checks of a pool that works. */
const checkIntervalMs = 10_000
/** Readers give way to refused writers for at most this time, and then not again before the writers' 10th attempt. */
const giveWayMsMax = 2_000
const attemptsPerGivingWay = 10

/** Waiting for a connection and for the result together. The server has ended the statement by then. */
export const workMsMax = statementMsMax + 1_000

/** Work that runs or waits for a connection, at most. */
export const workMax = 1_024

/** One for the batches of new animals, and one for all other writes. */
export const writeConnections = 2
/** Readers leave these connections free. The third is for a check which server is the primary, or for a command. */
export const connectionsLeftFree = writeConnections + 1

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
        application_name: 'petstore',
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
export function connectForLongWork({ host }: Server): AsyncDisposable & { readonly sql: SQL } {
  const sql = connect(host, 1)
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
 * Asks all hosts at once, and returns the first usable one. Does not wait long for a host when another one is usable.
 * `present` is the server in use. Throws every host's problem if none is usable.
 */
export async function findServer(hosts: readonly PostgresHost[], role: Role, present?: Server): Promise<Server> {
  // A former primary that comes back may still believe that it is the primary.
  const first = role === 'primary' ? present?.host : undefined
  const inOrder = first ? [first, ...hosts.filter(host => host !== first)] : hosts
  const checks = inOrder.map(host => checkHost(host, role))
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
  // It refuses one more connection, but those that are open work.
  if (present && isOutOfConnections(errors[inOrder.indexOf(present.host)])) return present
  if (errors.length === 1) throw errors[0]
  const messages = errors.map((error, index) => messageOf(postgresSetupError(error, inOrder[index]?.name ?? '')))
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
  const { encoding, synchronousCommit, connectionsAllowed } = found
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
  return {
    host,
    synchronousCommit: synchronousCommit === 'off' ? 'on' : synchronousCommit,
    missingSettings: missingIn(found),
    connectionsAllowed: host.pooled ? Number.POSITIVE_INFINITY : connectionsAllowed,
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
  /** Only for writers: their connections stay open, and these readers give way if the server refuses one. */
  readonly readers?: Pool
  readonly onEvent: OnStoreEvent
}

/** Connections to one of several hosts. Moves to another host when that one is no longer usable. */
export class Pool {
  readonly #options: PoolOptions
  #server: Server
  #sql: SQL
  #running = 0
  #searching: Promise<void> | undefined
  #usableSinceMs: number | undefined = performance.now()
  #closed = false
  /** Work waits for this: writers open their connections first. */
  #pause: Promise<void> | undefined
  readonly #timer = setInterval(() => void this.#check(), checkIntervalMs).unref()

  /** `server` is one of the hosts, and was usable just now. */
  constructor(server: Server, options: PoolOptions) {
    this.#options = options
    this.#server = server
    this.#sql = this.#connect()
  }

  /** False while no host is known to be usable: work fails at once. */
  get isReachable(): boolean {
    return this.#usableSinceMs !== undefined
  }

  /** Whether work is possible. A failure before the connections were opened again says nothing about now. */
  isUsable(failedAtMs = Number.NEGATIVE_INFINITY): boolean {
    return this.#usableSinceMs !== undefined && failedAtMs < this.#usableSinceMs
  }

  /** Bun does not report its connections, so a statement counts as one busy connection while any is free. */
  get activity(): PoolActivity {
    const connectionsMax = this.#size
    const connectionsBusy = Math.min(this.#running, connectionsMax)
    return { connectionsMax, connectionsBusy, waiting: this.#running - connectionsBusy }
  }

  /** Rows of a statement that changes nothing: after a lost connection, or a conflict on a standby, it is run once more. */
  read<Row>(statement: string, values: unknown[] = []): Promise<Row[]> {
    return this.run(sql => sql.unsafe<Row[]>(statement, values), 2)
  }

  /** Runs statements, for at most {@link workMsMax}; after a lost connection again, if there are `attempts` left. */
  async run<T>(work: (sql: SQL) => Promise<T>, attempts = 1): Promise<T> {
    if (this.#running >= workMax) throw new StoreUnavailable(`${workMax} statements are waiting already`)
    if (!this.isReachable) throw new StoreUnavailable('no PostgreSQL server is usable')
    this.#running++
    try {
      return await this.#inTime(this.#attempt(work, attempts))
    } catch (error) {
      throw postgresStoreError(error)
    } finally {
      this.#running--
    }
  }

  async #attempt<T>(work: (sql: SQL) => Promise<T>, attempts: number): Promise<T> {
    try {
      if (this.#pause) await this.#pause
      return await work(this.#sql)
    } catch (error) {
      if (isConnectionLost(error) || (isOutOfConnections(error) && this.#options.readers)) this.#startSearch()
      else if (!isConflictWithRecovery(error)) throw error
      if (attempts === 1) throw error
      return await this.#attempt(work, attempts - 1)
    }
  }

  /** If the work takes too long, replaces the connections and looks for a usable host. */
  #inTime<T>(work: Promise<T>): Promise<T> {
    const sql = this.#sql
    return withTimeout(work, workMsMax, () => {
      if (sql === this.#sql) {
        this.#usableSinceMs = undefined
        this.#moveTo(this.#server)
        this.#startSearch()
      }
      throw new StoreUnavailable(`PostgreSQL did not answer within ${workMsMax} ms`)
    })
  }

  /** Opens all connections and uses each once. Throws if none works, or if one does not answer in time. */
  open(): Promise<void> {
    return this.#inTime(this.#openAll())
  }

  async #openAll(): Promise<void> {
    const reserving = Array.from({ length: this.#size }, () => this.#sql.reserve())
    const allReserved = Promise.allSettled(reserving)
    const uses = reserving.map(async reserved => {
      using connection = await reserved
      // A connection that is released early is reserved again, and another one is not opened.
      await allReserved
      await connection`SELECT 1`
    })
    await Promise.allSettled(uses)
    await Promise.any(uses).catch(() => uses[0])
  }

  /** Closes all connections, and opens none until the writers have theirs. Running reads may be cancelled. */
  #giveWay(writers: Pool): void {
    this.#pause = withTimeout(Promise.resolve(writers.#searching), giveWayMsMax, () => {})
    this.#moveTo(this.#server)
  }

  /**
   * Opens lost connections for writing again before readers need them, and keeps firewalls from forgetting unused ones.
   * Reads return to the preferred replica. Writes return to no host: the operator decides which one is the primary.
   */
  async #check(): Promise<void> {
    const { readers, role, hosts } = this.#options
    if (this.#searching) return
    if (readers) await this.open().catch(() => this.#startSearch())
    if (role === 'primary' || this.#server.host === hosts[0]) return
    const found = await findServer(hosts, role).catch(() => this.#server)
    if (found.host !== this.#server.host) this.#startSearch()
  }

  #startSearch(): void {
    this.#searching ??= this.#search().finally(() => {
      this.#searching = undefined
    })
  }

  /** A lost connection may mean a restart, a failover, or nothing: asks the hosts until one is usable. */
  async #search(): Promise<void> {
    const { hosts, role, purpose, readers, onEvent } = this.#options
    let refusals = 0
    for (let attempt = 0; !this.#closed; attempt++) {
      const current = this.#server.host
      try {
        const found = await findServer(hosts, role, this.#server)
        if (this.#closed) return
        if (found.host !== current) this.#moveTo(found)
        if (readers) await this.open()
        this.#usableSinceMs = performance.now()
        if (found.host !== current || attempt > 0) {
          onEvent('warn', `Now using PostgreSQL at ${found.host.name} for ${purpose}`)
        }
        return
      } catch (error) {
        this.#usableSinceMs = undefined
        const problem = messageOf(postgresStoreError(error))
        const message = `No PostgreSQL for ${purpose}: ${problem}; trying again until a server answers`
        if (attempt === 0) onEvent('error', message)
        const isRefused = readers && isOutOfConnections(error)
        if (isRefused && refusals++ % attemptsPerGivingWay === 0) readers.#giveWay(this)
      }
      await Bun.sleep(searchIntervalMs)
    }
  }

  #moveTo(server: Server): void {
    void close(this.#sql)
    this.#server = server
    this.#sql = this.#connect()
  }

  #connect(): SQL {
    const { readers, role } = this.#options
    const { host, synchronousCommit } = this.#server
    const session = {
      synchronous_commit: synchronousCommit,
      ...planSettings,
      // Makes a standby refuse the connection.
      ...(role === 'primary' && { transaction_read_only: 'off' }),
    }
    return connect(host, this.#size, session, readers ? 0 : idleSeconds)
  }

  /** How many connections the pool may open on its present server. */
  get #size(): number {
    const { connectionsMax, readers } = this.#options
    const allowed = this.#server.connectionsAllowed - (readers ? 0 : connectionsLeftFree)
    return Math.max(1, Math.min(connectionsMax, allowed))
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await close(this.#sql)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
