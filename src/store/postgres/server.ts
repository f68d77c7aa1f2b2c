import type { SQL } from 'bun'
import { SetupError, StoreUnreachable } from '../../errors.ts'
import { close, connect, within } from './connection.ts'
import { setupErrorOf } from './fault.ts'
import type { PostgresHost } from './url.ts'

/** One of the hosts, found fit. */
export interface Server {
  readonly host: PostgresHost
  /** How it commits, for our sessions: as it is set up, but never so that an answer comes before the disk has it. */
  readonly synchronousCommit: string
}

/** `writing`: only a server that takes writes, the primary. `reading`: a standby is as good. */
export type Role = 'writing' | 'reading'

/** A migration may build an index on everything that is there; an export waits for whoever reads it. */
const longWorkMsMax = 600_000

/** To be reached, and to say who it is. */
const askMsMax = 3_000

const facts = `
  SELECT current_setting('transaction_read_only') = 'on' AS standby,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('server_encoding') AS encoding`

interface Facts {
  readonly standby: boolean
  readonly synchronous_commit: string
  readonly encoding: string
}

/** The first of the hosts that is fit. Where none is, it throws what all of them had against it. */
export async function findServer(hosts: readonly PostgresHost[], role: Role): Promise<Server> {
  const refusals: unknown[] = []
  for (const host of hosts) {
    try {
      return await fit(host, role)
    } catch (error) {
      refusals.push(error)
    }
  }
  throw refusals.length === 1 ? refusals[0] : refusalOf(hosts, refusals)
}

async function fit(host: PostgresHost, role: Role): Promise<Server> {
  const { standby, synchronous_commit: found, encoding } = await ask(host)
  if (encoding !== 'UTF8') throw new SetupError(wrongEncoding(host, encoding))
  if (standby && role === 'writing') {
    throw new StoreUnreachable(
      `Cannot use ${host.name}: it takes no writes (a standby, or set to be read-only); name its primary`,
    )
  }
  return { host, synchronousCommit: found === 'off' ? 'on' : found }
}

/** All may be well once one of them is reached. */
function refusalOf(hosts: readonly PostgresHost[], refusals: readonly unknown[]): StoreUnreachable {
  const told = refusals.map((refusal, place) => setupErrorOf(refusal, hosts[place]?.name ?? ''))
  return new StoreUnreachable(
    told.map(each => (each instanceof Error ? each.message : String(each))).join('; '),
  )
}

/** One connection alone, closed with whoever has it. */
export interface Connection extends AsyncDisposable {
  readonly sql: SQL
}

/** For work that may take long, on the server that takes writes. */
export function connectForLong({ host, synchronousCommit }: Server): Connection {
  const sql = connect(host.url, { max: 1, synchronousCommit, patienceMs: longWorkMsMax })
  return { sql, [Symbol.asyncDispose]: () => close(sql) }
}

async function ask(host: PostgresHost): Promise<Facts> {
  const sql = connect(host.url, { max: 1 })
  try {
    const late = () =>
      new StoreUnreachable(`Cannot use ${host.name}: it did not answer within ${askMsMax} ms`)
    const [found] = await within(sql.unsafe<Facts[]>(facts), askMsMax, late)
    if (!found) throw new Error('SELECT gave no row')
    return found
  } finally {
    void close(sql)
  }
}

function wrongEncoding({ name }: PostgresHost, encoding: string): string {
  return `Cannot use the database at ${name}: its encoding is ${encoding}, and names can be kept only in UTF8; create it with ENCODING 'UTF8'`
}
