import { StoreUnavailable } from '../../errors.ts'
import type { OnStoreEvent, ReplicaActivity } from '../../store.ts'
import { withTimeout } from '../../timeout.ts'
import { outageOf } from './errors.ts'
import { checkIntervalMs, Pool, retryMs, type Work } from './pool.ts'
import { connect, planSettings, workMsMax } from './server.ts'
import type { PostgresHost } from './url.ts'

/** After this time without an answer, a read goes to the primary. */
const replicaMsMax = 2_000
/** How long a check waits for a replica that is behind, and how often it asks. */
const catchUpMsMax = 1_000
const askEveryMs = 100

/** Where the write-ahead log ends: on a standby, what it has replayed. */
const logEnd = 'CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END'
const positionOf = `SELECT ${logEnd}::text AS position`
/** Fails if the replica has no table of animals. */
const lagBehind = `SELECT pg_wal_lsn_diff($1, ${logEnd})::float8 AS bytes, (SELECT id FROM pets LIMIT 1)`

/** Reads animals from a replica while it answers, otherwise from the primary. */
export class Replica {
  readonly pool: Pool
  readonly #name: string
  readonly #primary: Pool
  readonly #onEvent: OnStoreEvent
  /** Of the primary, as of the last check. */
  #position = '0/0'
  #lagBytes: number | undefined
  /** Whether the log says that animals are read from the primary. */
  #isAway = false
  #checking: Promise<void> | undefined
  #nextCheck: NodeJS.Timeout | undefined
  #isClosed = false

  /** Reads go to the primary until the first check. */
  constructor(host: PostgresHost, primary: Pool, connectionsMax: number, onEvent: OnStoreEvent) {
    this.#name = host.name
    this.#primary = primary
    this.#onEvent = onEvent
    const connectReplica = () => connect(host, planSettings, { max: connectionsMax })
    this.pool = new Pool({ clients: 1, connectionsMax, msMax: replicaMsMax, connect: connectReplica })
    this.pool.fail({ message: 'it was not checked yet' })
  }

  get activity(): ReplicaActivity {
    return { isUsed: this.pool.isReachable, lagBytes: this.#lagBytes }
  }

  async read<T>(work: Work<T>): Promise<T> {
    if (!this.pool.isReachable) return this.#primary.read(work)
    const reading = this.pool.read(work).catch(error => {
      this.#leave(error)
      void this.check()
      return this.#primary.read(work)
    })
    return withTimeout(reading, workMsMax, () => {
      throw new StoreUnavailable(`PostgreSQL did not answer within ${workMsMax} ms`)
    })
  }

  /** Asks the replica how far it is, once for all who ask at the same time. */
  check(): Promise<void> {
    this.#checking ??= this.#compare().finally(() => {
      this.#checking = undefined
      clearTimeout(this.#nextCheck)
      const pauseMs = this.pool.isReachable ? checkIntervalMs : retryMs
      if (!this.#isClosed) this.#nextCheck = setTimeout(() => this.check(), pauseMs).unref()
    })
    return this.#checking
  }

  /**
   * Reads return to the replica when it has replayed what the primary had written at the beginning of this check: on a
   * replica that is behind, a client could reach the last page early. Without the primary there is no choice.
   */
  async #compare(): Promise<void> {
    try {
      const [primary] = await this.#primary.read(sql => sql.unsafe<{ position: string }[]>(positionOf)).catch(() => [])
      this.#position = primary?.position ?? this.#position
      for (let ms = 0; ; ms += askEveryMs) {
        const [{ bytes }] = await this.pool.probe(sql => sql.unsafe<[{ bytes: number }]>(lagBehind, [this.#position]))
        this.#lagBytes = Math.max(0, bytes)
        if (bytes <= 0 || this.pool.isReachable || !this.#primary.isReachable) break
        if (ms >= catchUpMsMax) throw new StoreUnavailable(`it is ${bytes} bytes behind the primary`)
        await Bun.sleep(askEveryMs)
      }
      if (this.#isAway) this.#onEvent('warn', { message: `Now reading from the replica ${this.#name}` })
      this.#isAway = false
      this.pool.resume()
    } catch (error) {
      this.#leave(error)
    }
  }

  #leave(error: unknown): void {
    const outage = outageOf(error)
    const message = `Reading from the primary, because the replica ${this.#name} fails: ${outage.message}`
    if (!this.#isAway) this.#onEvent('error', { message, problem: outage.problem })
    this.#isAway = true
    this.#lagBytes = undefined
    this.pool.fail(outage)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#nextCheck)
    await this.pool.close()
  }
}
