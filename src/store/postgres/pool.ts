import type { SQL } from 'bun'
import { StoreUnavailable } from '../../errors.ts'
import type { OnStoreEvent, PoolActivity } from '../../store.ts'
import { withTimeout } from '../../timeout.ts'
import { isConnectionLost, isIdleTimeout, isOutOfConnections, messageOf, postgresStoreError } from './errors.ts'
import {
  close,
  connect,
  findServer,
  type OnClose,
  primarySession,
  probeMsMax,
  type Server,
  workMsMax,
} from './server.ts'
import type { PostgresHost } from './url.ts'

/** Work that runs or waits for a connection, at most. */
export const workMax = 1_024
/** One for the batches of new animals, and one for all other writes. */
export const writeConnections = 2
/** Between two attempts while no server is usable. */
const retryMs = 500
/** Between two checks of connections that work. */
export const checkIntervalMs = 10_000

export type Work<T> = (sql: SQL) => Promise<T>

/** A pool of the driver. Its connections open when it is first used, and again after they were closed. */
interface Client {
  readonly sql: SQL
  running: number
  /** Whether the server had no free connection. Other clients are used until a check succeeds. */
  isRefused: boolean
}

interface PoolOptions {
  /** How many, and how many connections each of them opens. */
  readonly clients: number
  readonly connections: number
  readonly msMax: number
  connect(connections: number, onClose: OnClose): SQL
  /** Starts a recovery, which ends with {@link Pool.resume} or {@link Pool.fail}. */
  onLost(): void
  /** After a loss, work waits for this. */
  recovery?(): Promise<void> | undefined
}

/** Runs statements on the clients of one server, each for a limited time. */
export class Pool {
  readonly #options: PoolOptions
  readonly #clients: Client[]
  #running = 0
  /** Whether a connection was lost and no recovery has succeeded since. */
  isLost = false
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

  /** Whether work is possible. A failure before the connections were opened again says nothing about now. */
  isUsable(failedAtMs = Number.NEGATIVE_INFINITY): boolean {
    return this.isReachable && failedAtMs < this.#usableSinceMs
  }

  /** Bun does not report its connections, so a statement counts as one busy connection while any is free. */
  get activity(): PoolActivity {
    const connectionsMax = this.#options.clients * this.#options.connections
    const connectionsBusy = Math.min(this.#running, connectionsMax)
    return { connectionsMax, connectionsBusy, waiting: this.#running - connectionsBusy }
  }

  /** For statements that change nothing: after a lost connection, they run once more, on new connections. */
  read<T>(work: Work<T>): Promise<T> {
    return this.#run(work, isConnectionLost)
  }

  /** Runs the work once. If the server refuses a connection, nothing was sent, and another client is tried. */
  write<T>(work: Work<T>): Promise<T> {
    return this.#run(work, isOutOfConnections)
  }

  async #run<T>(work: Work<T>, mayRepeat: (error: unknown) => boolean): Promise<T> {
    const { msMax } = this.#options
    if (this.#running >= workMax) throw new StoreUnavailable(`${workMax} statements are waiting already`)
    this.#running++
    let client: Client | undefined
    const attempt = async () => {
      const recovery = this.#failure ? undefined : this.#options.recovery?.()
      if (recovery) await recovery
      if (this.#failure) throw this.#failure
      client = this.#nextClient()
      if (!client) throw new StoreUnavailable('the store is closed')
      return this.#runOn(client, work)
    }
    try {
      const done = attempt().catch(error => {
        if (mayRepeat(error)) return attempt()
        throw error
      })
      return await withTimeout(done, msMax, () => {
        const problem = `PostgreSQL did not answer within ${msMax} ms`
        // Nobody else waits for a server that is known not to answer.
        if (client && this.#lose(client)) this.fail(problem)
        throw new StoreUnavailable(problem)
      })
    } catch (error) {
      throw postgresStoreError(error)
    } finally {
      this.#running--
    }
  }

  async #runOn<T>(client: Client, work: Work<T>): Promise<T> {
    client.running++
    try {
      const result = await work(client.sql)
      client.isRefused = false
      return result
    } catch (error) {
      client.isRefused = isOutOfConnections(error)
      if (isConnectionLost(error)) this.#lose(client)
      throw error
    } finally {
      client.running--
    }
  }

  /** An idle one if possible, so that no write waits for another one. */
  #nextClient(): Client | undefined {
    const open = this.#clients.filter(({ isRefused }) => !isRefused)
    return open.find(({ running }) => running === 0) ?? open[0] ?? this.#clients[0]
  }

  /** Uses each idle client once, and replaces one that does not answer. Throws if none works. */
  async check(): Promise<void> {
    const checks = this.#clients.map(async client => {
      if (client.running > 0) return
      const answer = this.#runOn(client, sql => sql`SELECT 1`)
      await withTimeout(answer, probeMsMax, () => {
        this.#lose(client)
        throw new StoreUnavailable(`PostgreSQL did not answer within ${probeMsMax} ms`)
      })
    })
    await Promise.allSettled(checks)
    await Promise.any(checks).catch(() => {
      this.#startRecovery()
      return checks[0]
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
    this.#clients[index] = this.#newClient()
    return true
  }

  #startRecovery(): void {
    this.isLost = true
    this.#options.onLost()
  }

  /** Connects to another server. */
  reconnect(): void {
    for (const client of [...this.#clients]) this.#replace(client)
  }

  resume(): void {
    if (this.isLost) this.#usableSinceMs = performance.now()
    this.isLost = false
    this.#failure = undefined
  }

  fail(problem: string): void {
    this.isLost = true
    this.#failure = new StoreUnavailable(`no PostgreSQL server is usable: ${problem}`)
  }

  #newClient(): Client {
    const sql = this.#options.connect(this.#options.connections, error => {
      if (isConnectionLost(error) && !isIdleTimeout(error)) this.#lose(client)
    })
    const client = { sql, running: 0, isRefused: false }
    return client
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map(({ sql }) => close(sql)))
  }
}

/** The server that takes writes. These have their own connections, so that many readers cannot delay them. */
export class Primary {
  readonly reading: Pool
  readonly writing: Pool
  readonly #hosts: readonly PostgresHost[]
  readonly #onEvent: OnStoreEvent
  #server: Server
  #recovery: Promise<void> | undefined
  #isDown = false
  #isClosed = false
  /** Keeps firewalls from forgetting unused connections for writing, and opens those that were lost or refused. */
  readonly #checking = setInterval(() => void this.writing.check().catch(() => {}), checkIntervalMs).unref()

  /** `server` is one of the hosts, and was usable just now. */
  constructor(server: Server, hosts: readonly PostgresHost[], readConnections: number, onEvent: OnStoreEvent) {
    this.#server = server
    this.#hosts = hosts
    this.#onEvent = onEvent
    const connectTo = (idleSeconds?: number) => (connections: number, onClose: OnClose) =>
      connect(this.#server.host, { connections, session: primarySession(this.#server), idleSeconds, onClose })
    const shared = {
      msMax: workMsMax,
      recovery: () => this.#recovery,
      onLost: () => {
        this.#recovery ??= this.#recover()
      },
    }
    this.reading = new Pool({ ...shared, clients: 1, connections: readConnections, connect: connectTo() })
    // These stay open.
    this.writing = new Pool({ ...shared, clients: writeConnections, connections: 1, connect: connectTo(0) })
  }

  /**
   * A lost connection may mean a restart, a failover, or nothing: asks all hosts until one is usable. Work waits for the
   * first attempt, so connections for writing open before those for reading.
   */
  async #recover(): Promise<void> {
    const pools = [this.writing, this.reading]
    const { host } = this.#server
    try {
      this.#server = await findServer(this.#hosts, this.#server)
      if (this.#isClosed) return
      const hasMoved = this.#server.host !== host
      if (hasMoved) for (const pool of pools) pool.reconnect()
      await this.writing.check()
      for (const pool of pools) pool.resume()
      if (hasMoved || this.#isDown) this.#onEvent('warn', `Now using PostgreSQL at ${this.#server.host.name}`)
      this.#isDown = false
      this.#recovery = undefined
    } catch (error) {
      const problem = messageOf(postgresStoreError(error))
      for (const pool of pools) if (pool.isLost) pool.fail(problem)
      if (!this.#isDown) this.#onEvent('error', `No PostgreSQL server is usable: ${problem}; retrying until one is`)
      this.#isDown = true
      if (!this.#isClosed) setTimeout(() => this.#recover(), retryMs).unref()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#checking)
    await Promise.all([this.reading.close(), this.writing.close()])
  }
}
