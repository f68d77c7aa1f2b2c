import { SQL } from 'bun'
import { IdsExhausted, StoreError, type StoreProblem, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import { int64Max } from '../../int64.ts'

const certificate = /^\w*(CERT|SELF_SIGNED)|^UNABLE_TO_|^ERR_TLS_/

/** The server's SQLSTATE if it has answered, otherwise the driver's own code. */
function codeOf(error: unknown): string {
  if (error instanceof SQL.PostgresError) {
    return error.errno === undefined ? error.code : String(error.errno)
  }
  // Certificate errors come from the runtime, not from the driver.
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return certificate.test(code) ? code : ''
}

// No connection, or the server is starting or stopping.
const lost = /^(ERR_POSTGRES_(CONNECTION|IDLE_TIMEOUT|LIFETIME_TIMEOUT)|08|57P)/

// Time-outs, locks, a full disk, too many connections, a changed password; 42P01 while a replica has no tables yet;
// 25001 if another isolation level was set.
const temporary = /^(ERR_POSTGRES_TLS|57014|55P03|40001|40P01|25001|25006|25P0|42P01|42501|53|58|28|3D)/

// A prepared statement is missing in this session, or a start-up parameter is refused; 08P01 has other meanings, too.
const pooler = /^(26000|42P05|08P01: .*(startup parameter|bind message))/

/** Whether another connection may succeed. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error)
  return lost.test(code) || certificate.test(code)
}

/** Whether the server refused a write because it is a standby, or read-only. */
export const isReadOnly = (error: unknown) => codeOf(error) === '25006'

/** Whether the server itself refused the statement, which means that nothing has changed. */
export function isRefusedByServer(error: unknown): error is Error {
  return error instanceof SQL.PostgresError && error.errno !== undefined
}

/** StoreUnavailable or IdsExhausted if the driver's code means that; otherwise the error itself. */
export function postgresUnavailable(error: unknown): unknown {
  const code = codeOf(error)
  // All other integers are checked before: only the counter of ids can overflow.
  if (code === '22003') return new IdsExhausted(`${int64Max} is the last id`, { cause: error })
  const text = described(error)
  if (!isConnectionLost(error) && !temporary.test(code) && !pooler.test(text)) return error
  const [, problem, happened] = entryFor(error) ?? []
  const isPassing = !problem || passingProblems.includes(problem) || code.startsWith('ERR_POSTGRES_CONNECTION')
  if (isPassing) return new StoreUnavailable(`PostgreSQL: ${text}`, { cause: error })
  return new StoreUnavailable(`PostgreSQL: ${happened} (${text})`, { problem, cause: error })
}

/** Outages that end by themselves. In others the operator has to act. */
const passingProblems: readonly StoreProblem[] = ['temporary', 'no-answer', 'locked']

/** `42501: permission denied for table pets`. The message about a refused login names the user, who is not shown. */
function described(error: unknown): string {
  const code = codeOf(error)
  return code.startsWith('28') ? code : `${code}: ${error instanceof Error ? error.message : error}`
}

/** A StoreError if the code is a known problem; otherwise the error itself. */
export function postgresStoreError(error: unknown, location: string, what = 'Cannot open the store'): unknown {
  const [, problem, happened, kind = StoreUnreachable] = entryFor(error) ?? []
  if (!problem) return error
  return new kind(problem, `${what} ${location}: ${happened} (${described(error)})`, { cause: error })
}

/** `start` matches the beginning of the code and the message. */
type Entry = readonly [start: RegExp, problem: StoreProblem, happened: string, kind?: typeof StoreError]

function entryFor(error: unknown): Entry | undefined {
  const text = described(error)
  return entries.find(([start]) => start.test(text))
}

/** The first match counts. A problem is StoreUnreachable, worth another attempt, unless its entry says StoreError. */
const entries: readonly Entry[] = [
  [pooler, 'pooler', 'the address looks like a connection pooler in transaction mode', StoreError],
  [/^28000/, 'host-rules', 'pg_hba.conf of the server does not admit this user from here'],
  [/^28/, 'refused-user', 'the server refuses this user'],
  [/^\w*ALTNAME/, 'certificate-name', "the server's certificate is for another host name"],
  [certificate, 'untrusted-certificate', "the server's certificate is not trusted"],
  [/^3F000/, 'no-schema', 'the search_path of the user names no schema that exists', StoreError],
  [/^3D000/, 'no-database', 'the server has no such database'],
  [/^57P01/, 'temporary', 'an administrator ended the session'],
  [/^57P03/, 'temporary', 'the server is starting up or shutting down'],
  [/^53300/, 'no-free-connection', 'the server has no free connection'],
  [/^53100/, 'disk-full', 'its disk is full'],
  [/^ERR_POSTGRES_(TLS|CONNECTION_CLOSED)/, 'wrong-tls', 'the server closed the connection'],
  [/^ERR_POSTGRES_CONNECTION_FAILED/, 'wrong-address', 'no PostgreSQL server answers'],
  [/^25006/, 'no-primary', 'the server takes no writes'],
  [lost, 'no-answer', 'the server does not answer'],
  [/^ERR_POSTGRES_/, 'wrong-address', 'the server is not a supported PostgreSQL', StoreError],
  [/^42501/, 'missing-right', 'the user lacks a right', StoreError],
  [/^(42P07|42710|42703)/, 'foreign-tables', 'another program has a table of the same name there', StoreError],
  [/^(57014|55P03|40P01)/, 'locked', 'another process has locked it'],
]
