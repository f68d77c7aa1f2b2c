import { SQL } from 'bun'
import { SetupError, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import type { OnStoreEvent } from '../../store.ts'
import { withTimeout } from '../../timeout.ts'
import { isConnectionLost, setupErrorOf, storeErrorOf } from './errors.ts'
import type { PostgresHost } from './url.ts'

/** The server ends a statement that runs or waits for a lock longer than this. */
const statementMsMax = 4_000
const lockMsMax = 3_000
/** A migration may build an index on the whole table; an export waits for its reader. */
const longStatementMsMax = 600_000
const connectSecondsMax = 2
/** Statements may finish for this long when a pool closes. */
const closeSeconds = 1
/** Unused connections are closed after this time. */
const idleSeconds = 60
/** For a host to accept a connection and describe itself. */
const probeMsMax = 3_000
/** Between two searches while no host is usable. */
const searchIntervalMs = 500
/** Between two checks whether the preferred replica is back. */
const returnIntervalMs = 10_000

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
}

/** Connections to one host, each opened when it is first needed. `session` adds or replaces settings of the session. */
function connect({ url }: PostgresHost, connectionsMax: number, session: Record<string, string | number> = {}): SQL {
  return new SQL(url, {
    max: connectionsMax,
    bigint: true,
    connectionTimeout: connectSecondsMax,
    idleTimeout: idleSeconds,
    connection: {
      application_name: 'petstore',
      statement_timeout: statementMsMax,
      lock_timeout: lockMsMax,
      idle_in_transaction_session_timeout: 2 * statementMsMax,
      // After waiting for the counter's lock, a statement must see what the lock's holder has committed.
      default_transaction_isolation: 'read committed',
      ...session,
    },
  })
}

/** Bounded in time even if the server does not respond. Errors do not matter any more. */
async function close(sql: SQL): Promise<void> {
  await withTimeout(sql.close({ timeout: closeSeconds }), 2 * closeSeconds * 1_000, () => {}).catch(() => {})
}

/** One connection for work that may take minutes. Dispose of it to close it. */
export function connectForLongWork({ host, synchronousCommit }: Server): AsyncDisposable & { readonly sql: SQL } {
  const sql = connect(host, 1, {
    synchronous_commit: synchronousCommit,
    statement_timeout: longStatementMsMax,
    lock_timeout: longStatementMsMax,
    idle_in_transaction_session_timeout: longStatementMsMax,
  })
  return { sql, [Symbol.asyncDispose]: () => close(sql) }
}

/** The first usable host. Throws the problem of every host if none is usable. */
export async function findServer(hosts: readonly PostgresHost[], role: Role): Promise<Server> {
  const errors: unknown[] = []
  for (const host of hosts) {
    try {
      return await checkHost(host, role)
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length === 1) throw errors[0]
  const messages = errors.map((error, index) => messageOf(setupErrorOf(error, hosts[index]?.name ?? '')))
  throw new StoreUnreachable(messages.join('; '))
}

async function checkHost(host: PostgresHost, role: Role): Promise<Server> {
  const sql = connect(host, 1)
  const query = sql<[{ standby: boolean; synchronousCommit: string; encoding: string }]>`
    SELECT current_setting('transaction_read_only') = 'on' AS standby,
      current_setting('synchronous_commit') AS "synchronousCommit", current_setting('server_encoding') AS encoding`
  const [{ standby, synchronousCommit, encoding }] = await withTimeout(query, probeMsMax, () => {
    throw new StoreUnreachable(`Cannot use ${host.name}: it did not answer within ${probeMsMax} ms`)
  }).finally(() => void close(sql))
  if (encoding !== 'UTF8') {
    throw new SetupError(
      `Cannot use the database at ${host.name}: its encoding is ${encoding}; create it with ENCODING 'UTF8'`,
    )
  }
  if (standby && role === 'primary') {
    throw new StoreUnreachable(
      `Cannot use ${host.name}: it takes no writes (a standby, or read-only); name its primary`,
    )
  }
  return { host, synchronousCommit: synchronousCommit === 'off' ? 'on' : synchronousCommit }
}

interface PoolOptions {
  readonly hosts: readonly PostgresHost[]
  readonly role: Role
  /** For log lines, such as `writing`. */
  readonly purpose: string
  readonly connectionsMax: number
  readonly onEvent: OnStoreEvent
}

/** Connections to one of several hosts. Moves to another host when that one is no longer usable. */
export class Pool {
  readonly #options: PoolOptions
  #server: Server
  #sql: SQL
  #running = 0
  #searching: Promise<void> | undefined
  #closed = false
  readonly #returnTimer: ReturnType<typeof setInterval> | undefined

  /** `server` is one of the hosts, and was usable just now. */
  constructor(server: Server, options: PoolOptions) {
    this.#options = options
    this.#server = server
    this.#sql = this.#connect()
    if (options.role === 'any' && options.hosts.length > 1) {
      this.#returnTimer = setInterval(() => void this.#returnToPreferred(), returnIntervalMs).unref()
    }
  }

  /** Rows of a statement that changes nothing: after a lost connection, it is run once more. */
  read<Row>(statement: string, values: unknown[] = []): Promise<Row[]> {
    return this.run(sql => sql.unsafe<Row[]>(statement, values), 2)
  }

  /** Runs statements, for at most {@link workMsMax}; after a lost connection again, if there are `attempts` left. */
  async run<T>(work: (sql: SQL) => Promise<T>, attempts = 1): Promise<T> {
    if (this.#running >= workMax) throw new StoreUnavailable(`${workMax} statements are waiting already`)
    this.#running++
    const sql = this.#sql
    try {
      return await withTimeout(this.#attempt(work, attempts), workMsMax, () => {
        this.#abandon(sql)
        throw new StoreUnavailable(`PostgreSQL did not answer within ${workMsMax} ms`)
      })
    } catch (error) {
      throw storeErrorOf(error)
    } finally {
      this.#running--
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#returnTimer)
    await close(this.#sql)
  }

  async #attempt<T>(work: (sql: SQL) => Promise<T>, attempts: number): Promise<T> {
    try {
      return await work(this.#sql)
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      this.#startSearch()
      if (attempts === 1) throw error
      return await this.#attempt(work, attempts - 1)
    }
  }

  /** Replaces connections that do not answer, and looks for a usable host. */
  #abandon(sql: SQL): void {
    if (sql !== this.#sql || this.#searching) return
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
    const { hosts, role, purpose, onEvent } = this.#options
    for (let attempt = 0; !this.#closed; attempt++) {
      const current = this.#server.host
      // The current host first: a former primary that comes back may still believe that it is the primary.
      const inOrder = [current, ...hosts.filter(host => host !== current)]
      try {
        const found = await findServer(inOrder, role)
        if (this.#closed) return
        if (found.host !== current) this.#moveTo(found)
        if (found.host !== current || attempt > 0) this.#reportServer()
        return
      } catch (error) {
        const problem = messageOf(storeErrorOf(error))
        const message = `No PostgreSQL for ${purpose}: ${problem}; trying again until a server answers`
        if (attempt === 0) onEvent('error', message)
      }
      await Bun.sleep(searchIntervalMs)
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

  #connect(): SQL {
    const { connectionsMax, role } = this.#options
    const { host, synchronousCommit } = this.#server
    return connect(host, connectionsMax, {
      synchronous_commit: synchronousCommit,
      // Makes a standby refuse the connection.
      ...(role === 'primary' && { transaction_read_only: 'off' }),
    })
  }

  #reportServer(): void {
    const { onEvent, purpose } = this.#options
    onEvent('warn', `Now using PostgreSQL at ${this.#server.host.name} for ${purpose}`)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
