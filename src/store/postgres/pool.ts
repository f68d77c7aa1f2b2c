import type { SQL } from 'bun'
import { type StoreTrouble, StoreUnavailable } from '../../errors.ts'
import type { PoolActivity } from '../../store.ts'
import { withTimeout } from '../../timeout.ts'
import { isConnectionLost, isIdleTimeout, isOutOfConnections, postgresUnavailable } from './errors.ts'
import { close, probeMsMax } from './server.ts'

/** Work that runs or waits for a connection, at most. */
export const workMax = 1_024
/** Between two attempts while no server is usable. */
export const retryMs = 500
/** Between two checks of connections that work. */
export const checkIntervalMs = 10_000

export type Work<T> = (sql: SQL) => Promise<T>

/** A pool of the driver: one connection for writing, or all for reading. They open when it is first used. */
interface Client {
  readonly sql: SQL
  running: number
  /** False after a connection was lost or refused, until work succeeds. */
  works: boolean
}

interface PoolOptions {
  readonly clients: number
  /** Of all clients together. */
  readonly connectionsMax: number
  readonly msMax: number
  /** The client calls `onclose` with the reason why a connection was closed, or could not be opened. */
  connect(onclose: (reason: Error | null) => void): SQL
  /** Starts a recovery, which ends with {@link Pool.resume} or {@link Pool.fail}. */
  onLost?(): void
  /** Work waits for this if no client works. */
  recovery?(): Promise<void> | undefined
}

/** Runs statements on the clients of one server, each for a limited time. */
export class Pool {
  readonly #options: PoolOptions
  readonly #clients: Client[]
  #running = 0
  /** Since the last recovery. */
  #hasLost = false
  #failure: StoreUnavailable | undefined
  #usableSinceMs = performance.now()

  constructor(options: PoolOptions) {
    this.#options = options
    this.#clients = Array.from({ length: options.clients }, () => this.#newClient())
  }

  /** False while the server is known not to be usable: work fails at once. */
  get isReachable(): boolean {
    return this.#failure === undefined
  }

  get hasWorkingClient(): boolean {
    return this.#clients.some(({ works }) => works)
  }

  /** Whether work is possible. A failure before lost connections were replaced says nothing about now. */
  isUsable(failedAtMs = Number.NEGATIVE_INFINITY): boolean {
    return this.isReachable && failedAtMs < this.#usableSinceMs
  }

  /** Bun does not report its connections, so a statement counts as one busy connection while any is free. */
  get activity(): PoolActivity {
    const { connectionsMax } = this.#options
    const connectionsBusy = Math.min(this.#running, connectionsMax)
    return { connectionsMax, connectionsBusy, waiting: this.#running - connectionsBusy }
  }

  /** For work that changes nothing: after a lost connection, it runs once more, on new connections. */
  read<T>(work: Work<T>): Promise<T> {
    return this.#run(work, isConnectionLost)
  }

  /** Runs the work once. If the server refuses a connection, nothing was sent, and another client is tried. */
  write<T>(work: Work<T>): Promise<T> {
    return this.#run(work, isOutOfConnections)
  }

  async #run<T>(work: Work<T>, mayRepeat: (error: unknown) => boolean): Promise<T> {
    const { msMax, recovery } = this.#options
    if (this.#running >= workMax) throw new StoreUnavailable(`${workMax} statements are waiting already`)
    this.#running++
    let client: Client | undefined
    let late: StoreUnavailable | undefined
    const attempt = async () => {
      if (!this.#failure && !this.hasWorkingClient) await recovery?.()
      // Nothing is sent after the 503: the same animal may have been sent again.
      const problem = late ?? this.#failure
      if (problem) throw problem
      client = this.#nextClient()
      return this.#runOn(client, work)
    }
    try {
      const done = attempt().catch(error => {
        if (mayRepeat(error)) return attempt()
        throw error
      })
      return await withTimeout(done, msMax, () => {
        late = new StoreUnavailable(`PostgreSQL did not answer within ${msMax} ms`)
        // Nobody else waits for a server that is known not to answer.
        if (client && this.#lose(client)) this.fail(late)
        throw late
      })
    } catch (error) {
      throw postgresUnavailable(error)
    } finally {
      this.#running--
    }
  }

  async #runOn<T>(client: Client, work: Work<T>): Promise<T> {
    client.running++
    try {
      const result = await work(client.sql)
      client.works = true
      return result
    } catch (error) {
      if (isOutOfConnections(error)) client.works = false
      if (isConnectionLost(error)) this.#lose(client)
      throw error
    } finally {
      client.running--
    }
  }

  /** One that works and is idle if possible, so that no write waits for another one. */
  #nextClient(): Client {
    const idle = this.#clients.find(({ works, running }) => works && running === 0)
    const next = idle ?? this.#clients.find(({ works }) => works) ?? this.#clients[0]
    if (!next) throw new StoreUnavailable('the store is closed')
    return next
  }

  /** Uses each idle client once, and replaces one that does not answer. Throws if none works. */
  async check(): Promise<void> {
    const idle = this.#clients.filter(({ running }) => running === 0)
    const outcomes = await Promise.allSettled(idle.map(client => this.probe(sql => sql`SELECT 1`, client)))
    const problems = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason] : []))
    if (problems.length < this.#clients.length) return
    this.#startRecovery()
    throw problems[0]
  }

  /** Runs work to learn whether the server is usable. */
  probe<T>(work: Work<T>, client = this.#nextClient()): Promise<T> {
    return withTimeout(this.#runOn(client, work), probeMsMax, () => {
      this.#lose(client)
      throw new StoreUnavailable(`PostgreSQL did not answer within ${probeMsMax} ms`)
    })
  }

  /** Replaces a client and starts a recovery, once however many statements fail on it. */
  #lose(client: Client): boolean {
    const isFirst = this.#replace(client)
    if (isFirst) this.#startRecovery()
    return isFirst
  }

  #replace(client: Client): boolean {
    const index = this.#clients.indexOf(client)
    if (index < 0) return false
    void close(client.sql)
    this.#clients[index] = Object.assign(this.#newClient(), { works: false })
    return true
  }

  #startRecovery(): void {
    this.#hasLost = true
    this.#options.onLost?.()
  }

  /** Connects to another server. */
  reconnect(): void {
    for (const client of [...this.#clients]) this.#replace(client)
  }

  /** The server is usable. */
  resume(): void {
    if (this.#hasLost) this.#usableSinceMs = performance.now()
    this.#hasLost = false
    this.#failure = undefined
  }

  /** The server is not usable: work fails at once. */
  fail({ message, problem, cause }: StoreTrouble): void {
    this.#hasLost = true
    this.#failure = new StoreUnavailable(`no PostgreSQL server is usable: ${message}`, { problem, cause })
  }

  #newClient(): Client {
    const sql = this.#options.connect(reason => {
      if (isConnectionLost(reason) && !isIdleTimeout(reason)) this.#lose(client)
    })
    const client = { sql, running: 0, works: true }
    return client
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map(({ sql }) => close(sql)))
  }
}
