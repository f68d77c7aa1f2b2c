import type { SQL } from 'bun'
import { NotReachable, SetupError } from '../../fault.ts'
import { close, connect, within } from './connection.ts'
import type { PostgresHost } from './url.ts'

/** One of the hosts, found fit. */
export interface Server {
  readonly host: PostgresHost
  /** It acknowledges commits that are not on its disk yet. */
  readonly losesCommits: boolean
}

/** `writing`: only a server that takes writes, the primary. `reading`: a standby is as good. */
export type Role = 'writing' | 'reading'

/** A migration may build an index on everything that is there; an export waits for whoever reads it. */
const longWorkMsMax = 600_000

/** To be reached, and to say who it is. */
const askMsMax = 3_000

const facts = `
  SELECT current_setting('transaction_read_only') = 'on' AS standby,
    current_setting('synchronous_commit') = 'off' AS loses_commits,
    current_setting('server_encoding') AS encoding`

interface Facts {
  readonly standby: boolean
  readonly loses_commits: boolean
  readonly encoding: string
}

/** The first of the hosts that is fit. Where none is, it throws what the first one had against it. */
export async function findServer(hosts: readonly PostgresHost[], role: Role): Promise<Server> {
  const refusals: unknown[] = []
  for (const host of hosts) {
    try {
      const { standby, loses_commits, encoding } = await ask(host)
      if (encoding !== 'UTF8') throw new SetupError(wrongEncoding(host, encoding))
      if (!standby || role === 'reading') return { host, losesCommits: loses_commits }
      throw new NotReachable(
        `Cannot use ${host.name}: it is a standby and takes no writes; name its primary too`,
      )
    } catch (error) {
      refusals.push(error)
    }
  }
  throw refusals[0]
}

/** One connection alone, closed with whoever has it. */
export interface Connection extends AsyncDisposable {
  readonly sql: SQL
}

/** For work that may take long, on the server that takes writes. */
export function connectForLong({ host, losesCommits }: Server): Connection {
  const sql = connect(host.url, { max: 1, insistOnDurability: losesCommits, patienceMs: longWorkMsMax })
  return { sql, [Symbol.asyncDispose]: () => close(sql) }
}

async function ask(host: PostgresHost): Promise<Facts> {
  const sql = connect(host.url, { max: 1 })
  try {
    const late = () => new NotReachable(`Cannot use ${host.name}: it did not answer within ${askMsMax} ms`)
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
