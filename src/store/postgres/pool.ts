import type { SQL } from 'bun'
import { StoreUnavailable } from '../../errors.ts'
import type { OnStoreEvent } from '../../store.ts'
import { close, connect, statementMsMax, within } from './connection.ts'
import { isConnectionLost, runtimeErrorOf } from './fault.ts'
import { findServer, type Role, type Server } from './server.ts'
import type { PostgresHost } from './url.ts'

/** Connections to whichever of the hosts is fit; it moves by itself to another one when that changes. */
export interface Pool {
  /**
   * Runs statements; what fails is told apart, and nobody waits longer than `workMsMax`. Where a connection is lost, `again`
   * runs the work once more on another one: for work that changes nothing.
   */
  run<T>(work: (sql: SQL) => Promise<T>, again?: 'again'): Promise<T>
  close(): Promise<void>
}

export interface PoolOptions {
  readonly hosts: readonly PostgresHost[]
  readonly role: Role
  /** What it is for, in a line for the log. */
  readonly purpose: string
  /** Connections at most. */
  readonly max: number
  readonly onEvent: OnStoreEvent
}

/** Waiting for a connection and for the answer, together: by then the server itself would have ended the statement. */
export const workMsMax = statementMsMax + 1_000

/** What may run or wait for a connection at once. */
export const workMax = 1_024

/** How long to wait before the hosts are asked again, when none was fit. */
const searchEveryMs = 500

/** How often it is looked whether a preferred replica is back. */
const goBackEveryMs = 10_000

/** `first` is the one of the hosts that was found fit just now. */
export function createPool(first: Server, { hosts, role, purpose, max, onEvent }: PoolOptions): Pool {
  let server = first
  let sql = connectTo(server, role, max)
  let running = 0
  let searching: Promise<void> | undefined
  let closed = false

  function moveTo(found: Server): void {
    void close(sql)
    server = found
    sql = connectTo(found, role, max)
  }

  /** A lost connection may be just that one, or the server, or it is another one's turn: the hosts know. */
  async function search(): Promise<void> {
    for (let tries = 0; !closed; tries++) {
      // The one in use first: a former primary that wakes up still takes itself for the one that takes writes.
      const found = await findServer(
        [server.host, ...hosts.filter(host => host !== server.host)],
        role,
      ).catch((cause: unknown) => {
        if (tries === 0)
          onEvent(
            'error',
            `No PostgreSQL for ${purpose}: ${reasonOf(cause)}; asking again until there is one`,
          )
      })
      if (closed) return
      if (found) {
        const moves = found.host !== server.host
        if (moves) moveTo(found)
        if (moves || tries > 0) tellOfUse()
        return
      }
      await Bun.sleep(searchEveryMs)
    }
  }

  const tellOfUse = () => onEvent('warn', `For ${purpose} PostgreSQL at ${server.host.name} is used now`)

  /** A replica that was away is used again once it is back. Writes never go back by themselves: that is decided elsewhere. */
  async function goBack(): Promise<void> {
    const found = await findServer(hosts, role).catch(() => undefined)
    if (closed || !found || searching || found.host === server.host) return
    moveTo(found)
    tellOfUse()
  }

  const lookingBack =
    role === 'reading' && hosts.length > 1
      ? setInterval(() => server.host !== hosts[0] && void goBack(), goBackEveryMs).unref()
      : undefined

  function suspect(): void {
    searching ??= search().finally(() => {
      searching = undefined
    })
  }

  /** A connection that says nothing at all is not mended by waiting: whatever hangs is left behind. */
  function tooLate(used: SQL): StoreUnavailable {
    if (used === sql && !searching) {
      moveTo(server)
      suspect()
    }
    return new StoreUnavailable(`PostgreSQL did not answer within ${workMsMax} ms`)
  }

  async function attempt<T>(work: (sql: SQL) => Promise<T>, again: boolean): Promise<T> {
    try {
      return await work(sql)
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      suspect()
      if (again) return await work(sql)
      throw error
    }
  }

  return {
    async run(work, again) {
      if (running >= workMax) throw new StoreUnavailable(`${workMax} statements are waiting already`)
      running++
      const used = sql
      try {
        return await within(attempt(work, again !== undefined), workMsMax, () => tooLate(used))
      } catch (error) {
        throw runtimeErrorOf(error)
      } finally {
        running--
      }
    },
    async close() {
      closed = true
      clearInterval(lookingBack)
      await close(sql)
    },
  }
}

function connectTo({ host, synchronousCommit }: Server, role: Role, max: number): SQL {
  return connect(host.url, { max, synchronousCommit, takesWrites: role === 'writing' })
}

function reasonOf(cause: unknown): string {
  const told = runtimeErrorOf(cause)
  return told instanceof Error ? told.message : String(told)
}
