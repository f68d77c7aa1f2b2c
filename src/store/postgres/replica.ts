import type { SQL } from 'bun'
import { StoreUnavailable } from '../../errors.ts'
import type { OnStoreEvent, ReplicaActivity } from '../../store.ts'
import { withTimeout } from '../../timeout.ts'
import { messageOf, postgresStoreError } from './errors.ts'
import { checkIntervalMs, Pool, type Work } from './pool.ts'
import { close, connect, planSettings, probeMsMax, workMsMax } from './server.ts'
import type { PostgresHost } from './url.ts'

/** After this time without an answer, a read goes to the primary. */
const replicaMsMax = 2_000
/** How long a check waits for a replica that is behind, and how often it asks. */
const catchUpMsMax = 1_000
const askEveryMs = 100

/** Reads animals from a replica while it answers, otherwise from the primary. */
export class Replica {
  readonly pool: Pool
  readonly #host: PostgresHost
  readonly #primary: Pool
  readonly #onEvent: OnStoreEvent
  /** Where the primary's write-ahead log ended at the last check. */
  #position = '0/0'
  #lagBytes: number | undefined
  /** Whether the log says that the primary is read. */
  #isAway = false
  #checking: Promise<void> | undefined
  readonly #timer = setInterval(() => void this.check(), checkIntervalMs).unref()

  /** Not used before the first check. */
  constructor(host: PostgresHost, primary: Pool, connectionsMax: number, onEvent: OnStoreEvent) {
    this.#host = host
    this.#primary = primary
    this.#onEvent = onEvent
    this.pool = new Pool({
      clients: 1,
      connections: connectionsMax,
      msMax: replicaMsMax,
      connect: (connections, onClose) => connect(host, { connections, session: planSettings, onClose }),
      onLost: () => this.#leave(new StoreUnavailable('a connection was lost')),
    })
    this.pool.fail('not checked yet')
  }

  get activity(): ReplicaActivity {
    return { isUsed: this.pool.isReachable, lagBytes: this.#lagBytes }
  }

  async read<T>(work: Work<T>): Promise<T> {
    if (!this.pool.isReachable) return this.#primary.read(work)
    return withTimeout(this.#readBoth(work), workMsMax, () => {
      throw new StoreUnavailable(`PostgreSQL did not answer within ${workMsMax} ms`)
    })
  }

  async #readBoth<T>(work: Work<T>): Promise<T> {
    try {
      return await this.pool.write(work)
    } catch (error) {
      this.#leave(error)
      return this.#primary.read(work)
    }
  }

  /** Asks the replica how far it is, once for all who ask at the same time. */
  check(): Promise<void> {
    this.#checking ??= this.#compare().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  /**
   * Reads return to the replica only when it has replayed what they may have seen on the primary: otherwise a client
   * could reach the last page early. Without the primary, its last known position counts.
   */
  async #compare(): Promise<void> {
    const sql = connect(this.#host, { connections: 1 })
    try {
      const ended = await this.#primary.read(sql => sql.unsafe(`SELECT ${logEnd}::text AS position`)).catch(() => [])
      this.#position = ended[0]?.position ?? this.#position
      this.#lagBytes = await this.#lagOf(sql)
      for (let ms = 0; this.#lagBytes > 0 && !this.pool.isReachable; ms += askEveryMs) {
        if (ms === catchUpMsMax) throw new StoreUnavailable(`it is ${this.#lagBytes} bytes behind the primary`)
        await Bun.sleep(askEveryMs)
        this.#lagBytes = await this.#lagOf(sql)
      }
      if (this.#isAway) this.#onEvent('warn', `Now reading from the replica ${this.#host.name}`)
      this.#isAway = false
      this.pool.resume()
    } catch (error) {
      this.#stopUsing(error)
    } finally {
      void close(sql)
    }
  }

  async #lagOf(sql: SQL): Promise<number> {
    const query = sql.unsafe(`SELECT pg_wal_lsn_diff($1, ${logEnd})::float8 AS bytes`, [this.#position])
    const [row] = await withTimeout(query, probeMsMax, () => {
      throw new StoreUnavailable(`it did not answer within ${probeMsMax} ms`)
    })
    return Math.max(0, row.bytes)
  }

  /** A check, which starts at once, ends this. */
  #leave(error: unknown): void {
    this.#stopUsing(error)
    void this.check()
  }

  #stopUsing(error: unknown): void {
    const problem = messageOf(postgresStoreError(error))
    if (!this.#isAway) {
      this.#onEvent('error', `Reading from the primary, because the replica ${this.#host.name} fails: ${problem}`)
    }
    this.#isAway = true
    this.#lagBytes = undefined
    this.pool.fail(problem)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.pool.close()
  }
}

/** Where the write-ahead log ends: on a standby, what it has replayed. */
const logEnd = 'CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END'
