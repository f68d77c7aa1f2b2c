import type { SQL } from 'bun'
import { type StoreTrouble, StoreUnavailable } from '../../errors.ts'
import type { OnStoreEvent, PoolActivity } from '../../store-contract.ts'
import { withTimeout } from '../../timeout.ts'
import { isConnectionLost, isReadOnly, postgresUnavailable } from './errors.ts'
import { close, connect, workMsMax } from './server.ts'
import type { PostgresAddress } from './url.ts'

/** Work that waits for a connection, at most. */
export const waitingMax = 1_024
/** One timer counts the time of all work: a timer for each work costs more. */
const tickMs = 250
/**
 * The driver sends what it was given, even after `cancel()`; what waits with us can be refused at its deadline. For
 * reading, one at a time is slower.
 */
const atOnceMax = { reading: 16, writing: 1 }
/** Between attempts to open a connection while others are open. Otherwise, the next tick tries again. */
const retryTicks = 20

export type Work<T> = (sql: SQL) => Promise<T>

export interface RunOptions {
  readonly msMax?: number
  /** It goes before all that waits, and does not count there. Only for callers with few statements. */
  readonly isFirst?: boolean
}

/** Where work that only reads is done: on one server, or on one of two. */
export interface Reader {
  run<T>(work: Work<T>, options?: Pick<RunOptions, 'isFirst'>): Promise<T>
}

interface Task {
  readonly work: Work<unknown>
  resolve(result: unknown): void
  reject(reason: unknown): void
  readonly msMax: number
  ticksLeft: number
  /** How often it may still be sent. */
  triesLeft: number
}

/** A client of the driver with a single connection. It is opened once, and replaced when it is lost. */
interface Connection {
  readonly sql: SQL
  /** An array: with a Set, a list takes 10% longer. */
  readonly tasks: Task[]
  /** The server's process, and when it began, because its number may be used again. Empty behind a pooler. */
  backend: string
  /** Since work last began or ended. */
  silentTicks: number
  /** It was lost while it began, or its server has become read-only. The next tick removes it. */
  isStale: boolean
}

interface ConnectionsOptions {
  readonly use: keyof typeof atOnceMax
  readonly address: PostgresAddress
  readonly connectionsMax: number
  readonly onEvent: OnStoreEvent
}

/**
 * Gives each work to the connection with the least work. Connections are opened when all others are busy. One is
 * removed if it is lost, or if it is hung: it has work, and the server has said nothing for 5 s.
 */
export class Connections implements Reader {
  readonly #options: ConnectionsOptions
  /** The open ones. */
  #connections: Connection[] = []
  #opening: SQL | undefined
  #waiting: Task[] = []
  /** Why the last attempt to open a connection failed. Undefined if it succeeded. */
  #failure: StoreUnavailable | undefined
  /** Failed attempts since the last connection was lost. */
  #failures = 0
  #pauseTicks = 0
  /** Backends of hung connections. They may hold locks until a standby or a disk answers. */
  readonly #abandoned: string[] = []
  #ticking: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  get host(): string {
    return this.#options.address.host
  }

  get isFull(): boolean {
    return this.#waiting.length >= waitingMax
  }

  /** Whether a connection is open. */
  get isUsable(): boolean {
    return this.#connections.length > 0
  }

  /** Whether none is open, and the last attempt to open one failed. */
  get isDown(): boolean {
    return !this.isUsable && this.#failure !== undefined
  }

  get activity(): PoolActivity {
    const { connectionsMax } = this.#options
    const connectionsBusy = this.#connections.filter(({ tasks }) => tasks.length > 0).length
    const sent = this.#connections.reduce((sum, { tasks }) => sum + tasks.length, 0)
    return { connectionsMax, connectionsBusy, waiting: this.#waiting.length + sent - connectionsBusy }
  }

  /**
   * Reads end within `msMax`, and are sent again if they lose their connection. Writes are sent within `msMax`, at most
   * once, and then end when the server answers or their connection is removed.
   */
  run<T>(work: Work<T>, { msMax = workMsMax, isFirst = false }: RunOptions = {}): Promise<T> {
    const { use, connectionsMax } = this.#options
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (this.#isClosed) reject(new StoreUnavailable('the store is closed'))
    else if (this.isFull && !isFirst) reject(new StoreUnavailable(`${waitingMax} statements are waiting already`))
    else {
      this.#ticking ??= setInterval(() => this.#tick(), tickMs)
      // All connections can be lost one after the other.
      const triesLeft = use === 'reading' ? connectionsMax + 1 : 1
      const task = { work, resolve, reject, msMax, ticksLeft: msMax / tickMs, triesLeft }
      if (isFirst) this.#waiting.unshift(task)
      else this.#waiting.push(task)
      this.#dispatch()
    }
    return promise
  }

  /** Sends what waits. Opens a connection if none is idle. Refuses what waits if none can be opened. */
  #dispatch(): void {
    const { use, connectionsMax } = this.#options
    let idlest = this.#leastBusy()
    while (idlest && idlest.tasks.length < atOnceMax[use]) {
      const task = this.#waiting.shift()
      if (!task) break
      void this.#execute(idlest, task)
      idlest = this.#leastBusy()
    }
    if (idlest?.tasks.length === 0) return
    // A single failure may be a session that an administrator has ended.
    if (!idlest && this.#failures > 1) for (const { reject } of this.#waiting.splice(0)) reject(this.#failure)
    if (!this.#opening && this.#pauseTicks === 0 && this.#connections.length < connectionsMax) void this.#open()
  }

  #leastBusy(): Connection | undefined {
    let found: Connection | undefined
    for (const each of this.#connections) if (!found || each.tasks.length < found.tasks.length) found = each
    return found
  }

  async #execute(connection: Connection, task: Task): Promise<void> {
    if (connection.tasks.length === 0) connection.silentTicks = 0
    connection.tasks.push(task)
    task.triesLeft--
    try {
      task.resolve(await task.work(connection.sql))
    } catch (error) {
      const isLost = isConnectionLost(error)
      if (isLost) this.#remove(connection)
      connection.isStale ||= isReadOnly(error)
      if (isLost && task.triesLeft > 0 && task.ticksLeft > 0 && !this.#isClosed) this.#waiting.unshift(task)
      else task.reject(postgresUnavailable(error))
    }
    connection.tasks.splice(connection.tasks.indexOf(task), 1)
    connection.silentTicks = 0
    if (this.#waiting.length > 0) this.#dispatch()
  }

  async #open(): Promise<void> {
    const { use, address, onEvent } = this.#options
    const sql = connect(address, () => {
      connection.isStale = true
      this.#remove(connection)
    })
    const connection: Connection = { sql, tasks: [], backend: '', silentTicks: 0, isStale: false }
    this.#opening = sql
    const where = `PostgreSQL at ${address.host} for ${use}`
    try {
      connection.backend = await withTimeout(this.#begin(sql), workMsMax, () => Promise.reject(late(workMsMax)))
      this.#connections.push(connection)
      if (this.#failure) onEvent('warn', { message: `Connected again to ${where}` })
      this.#failure = undefined
      this.#failures = 0
    } catch (cause) {
      if (this.#isClosed) return
      const found = postgresUnavailable(cause)
      const outage = found instanceof StoreUnavailable ? found : new StoreUnavailable(String(cause), { cause })
      const { message, problem } = outage
      if (!this.#failure) onEvent('error', { message: `Cannot connect to ${where}: ${message}`, problem, cause })
      this.#failure = outage
      this.#failures++
      this.#pauseTicks = retryTicks
      abort(sql)
    } finally {
      this.#opening = undefined
    }
    this.#dispatch()
  }

  /** Returns the backend. Behind a pooler, each transaction may have another one. */
  async #begin(sql: SQL): Promise<string> {
    if (this.#options.address.pooled) return sql`SELECT 1`.then(() => '')
    const abandoned = [...this.#abandoned]
    const [{ backend }] = await sql.unsafe<[{ backend: string }]>(beginSession, [sql.array(abandoned, 'TEXT')])
    this.#abandoned.splice(0, abandoned.length)
    return backend
  }

  /** Rejects what was sent. */
  #remove(connection: Connection): void {
    if (!this.#connections.includes(connection)) return
    this.#connections = this.#connections.filter(each => each !== connection)
    abort(connection.sql)
    if (this.isUsable || this.#isClosed) return
    this.#failures = 0
    this.#dispatch()
  }

  #tick(): void {
    this.#pauseTicks = this.isUsable ? Math.max(this.#pauseTicks - 1, 0) : 0
    const sent = this.#options.use === 'reading' ? this.#connections.flatMap(({ tasks }) => tasks) : []
    for (const task of [...this.#waiting, ...sent]) if (--task.ticksLeft === 0) task.reject(late(task.msMax))
    this.#waiting = this.#waiting.filter(({ ticksLeft }) => ticksLeft > 0)
    // One without work that is silent for as long is suspect, too.
    const silent = this.#connections.filter(each => ++each.silentTicks >= workMsMax / tickMs)
    if (silent.some(({ tasks }) => tasks.length > 0)) {
      const message = `PostgreSQL at ${this.host} is silent for 5 s: replacing connections (${silent.length})`
      this.#options.onEvent('error', { message })
      for (const connection of silent) {
        // Without work, it holds nothing.
        if (connection.backend && connection.tasks.length > 0) this.#abandoned.push(connection.backend)
        this.#remove(connection)
      }
    }
    for (const connection of this.#connections) if (connection.isStale) this.#remove(connection)
    if (!this.isUsable) this.#dispatch()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#ticking)
    for (const { reject } of this.#waiting.splice(0)) reject(new StoreUnavailable('the store is closed'))
    const clients = [...this.#connections.splice(0).map(({ sql }) => sql), ...(this.#opening ? [this.#opening] : [])]
    await Promise.all(clients.map(close))
  }
}

const abort = (sql: SQL) => void sql.close({ timeout: 0 }).catch(() => {})

export const late = (msMax: number) => new StoreUnavailable(`PostgreSQL did not answer within ${msMax} ms`)

/** How long the first of two servers may take for a read. */
const firstMsMax = 1_000
/** Between two attempts to return to it. */
const trialEveryMs = 5_000

/**
 * Reads on the first server, or on the second if the first fails. After a failure, reads begin on the second, and every
 * 5 s one on the first, until that succeeds.
 */
export function readFrom(first: Connections, second: Connections, onEvent: OnStoreEvent): Reader {
  /** Undefined while reads begin on the first. */
  let nextTrialMs: number | undefined
  const onFirst = async <T>(work: Work<T>, isFirst: boolean): Promise<T> => {
    const wasAway = nextTrialMs !== undefined
    try {
      const result = await first.run(work, { msMax: firstMsMax, isFirst })
      if (wasAway) nextTrialMs = undefined
      return result
    } catch (error) {
      const { message, problem } = error as StoreTrouble
      const left = `Reading from ${second.host}, because ${first.host} fails: ${message}`
      if (nextTrialMs === undefined) onEvent('error', { message: left, problem })
      nextTrialMs = performance.now() + trialEveryMs
      throw error
    }
  }
  const onSecond = <T>(work: Work<T>, isFirst: boolean) => second.run(work, { msMax: workMsMax - firstMsMax, isFirst })
  return {
    run(work, { isFirst = false } = {}) {
      // A full queue is no failure: it must not move reads to where nothing answers.
      if (first.isFull || (first.isUsable && second.isDown)) return first.run(work, { isFirst })
      const isFirstAway = nextTrialMs !== undefined && performance.now() < nextTrialMs
      if (isFirstAway) return onSecond(work, isFirst).catch(() => onFirst(work, isFirst))
      if (nextTrialMs !== undefined) nextTrialMs = performance.now() + trialEveryMs
      return onFirst(work, isFirst).catch(() => onSecond(work, isFirst))
    },
  }
}

/** Ends abandoned backends, and keeps synchronous_commit from being off in this session. */
const beginSession = `
  SELECT pid || ' ' || backend_start AS backend,
    set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false),
    (SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid || ' ' || backend_start = ANY ($1)
      AND pid <> pg_backend_pid())
  FROM pg_stat_activity WHERE pid = pg_backend_pid()`
