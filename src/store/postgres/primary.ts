import type { OnStoreEvent } from '../../store.ts'
import { outageOf } from './errors.ts'
import { checkIntervalMs, Pool, retryMs } from './pool.ts'
import { connect, findServer, primarySession, type Server, workMsMax } from './server.ts'
import type { PostgresHost } from './url.ts'

/** One for the batches of new animals, and one for all other writes. */
export const writeConnections = 2

/** The server that takes writes. They have their own connections, so that many readers cannot delay them. */
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
    const shared = {
      msMax: workMsMax,
      recovery: () => this.#recovery,
      onLost: () => {
        this.#recovery ??= this.#recover()
      },
    }
    const connectWith = (options: Parameters<typeof connect>[2]) =>
      connect(this.#server.host, primarySession(this.#server), options)
    this.reading = new Pool({
      ...shared,
      clients: 1,
      connectionsMax: readConnections,
      connect: onclose => connectWith({ max: readConnections, onclose }),
    })
    this.writing = new Pool({
      ...shared,
      clients: writeConnections,
      connectionsMax: writeConnections,
      // They stay open.
      connect: onclose => connectWith({ idleTimeout: 0, onclose }),
    })
  }

  /**
   * A lost connection may mean a restart, a failover, or nothing: asks all hosts until one is usable. Work without a
   * connection waits for the first attempt, so those for writing open before those for reading.
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
      if (hasMoved || this.#isDown)
        this.#onEvent('warn', { message: `Now using PostgreSQL at ${this.#server.host.name}` })
      this.#isDown = false
      this.#recovery = undefined
    } catch (error) {
      if (this.#isClosed) return
      const outage = outageOf(error)
      for (const pool of pools) if (!pool.hasWorkingClient) pool.fail(outage)
      const { problem, cause } = outage
      const message = `No PostgreSQL server is usable: retrying until one is (${outage.message})`
      if (!this.#isDown) this.#onEvent('error', { message, problem, cause })
      this.#isDown = true
      setTimeout(() => this.#recover(), retryMs).unref()
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#checking)
    await Promise.all([this.reading.close(), this.writing.close()])
  }
}
