import { SQL } from 'bun'
import { IdsExhausted, StoreError, type StoreProblem, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import { int64Max } from '../../int64.ts'

const certificate = /^\w*(CERT|SELF_SIGNED)|^UNABLE_TO_|^ERR_TLS_/
// No connection, or the server is starting or stopping.
const lost = /^(ERR_POSTGRES_(CONNECTION|IDLE_TIMEOUT|LIFETIME_TIMEOUT)|08|57P)/
// A prepared statement is missing in this session, or a start-up parameter is refused. 08P01 has other meanings, too:
// only its message says which.
const pooler = /^(26000|42P05|08P01: .*(startup parameter|bind message))/

/**
 * How a problem ends: `soon`, by itself; `later`, by itself or when the operator has acted; `never`, without the operator.
 * At the start, the first two are tried again. A `bug` is for the operator at the start, and later a mistake of ours.
 */
type End = 'soon' | 'later' | 'never' | 'bug'

/** The first match counts. `start` matches the beginning of the code and, only for poolers, of the message. */
const problems: readonly (readonly [start: RegExp, problem: StoreProblem, happened: string, end: End])[] = [
  [pooler, 'pooler', 'the address looks like a connection pooler in transaction mode', 'never'],
  [/^28000/, 'host-rules', 'the server does not admit this user from here', 'later'],
  [/^28/, 'refused-user', 'the server refuses this user', 'later'],
  [/^\w*ALTNAME/, 'certificate-name', "the server's certificate is for another host name", 'later'],
  [certificate, 'untrusted-certificate', "the server's certificate is not trusted", 'later'],
  [/^3F000/, 'no-schema', 'the search_path of the user names no schema that exists', 'never'],
  [/^3D000/, 'wrong-database', 'the server has no such database', 'later'],
  [/^42501/, 'missing-right', 'the user lacks a right', 'never'],
  [/^25006/, 'no-primary', 'the server takes no writes', 'later'],
  [/^53300/, 'no-free-connection', 'the server has no free connection', 'later'],
  [/^53100/, 'disk-full', 'its disk is full', 'later'],
  [/^57P01/, 'temporary', 'an administrator ended the session', 'soon'],
  [/^57P03/, 'temporary', 'the server is starting up or shutting down', 'soon'],
  [/^(57014|55P03|40P01)/, 'locked', 'another process has locked it', 'soon'],
  // Another isolation level, memory full, a failing disk, a session that was idle in its transaction, no tables on a
  // replica yet.
  [/^(25001|25P0|40001|42P01|53|58)/, 'temporary', 'the server cannot do this now', 'soon'],
  [/^ERR_POSTGRES_TLS/, 'no-answer', 'no TLS connection is possible', 'later'],
  [/^ERR_POSTGRES_CONNECTION_CLOSED/, 'no-answer', 'the server closed the connection', 'soon'],
  [lost, 'no-answer', 'no PostgreSQL server answers', 'soon'],
  [/^ERR_POSTGRES_/, 'no-answer', 'the server is not a supported PostgreSQL', 'bug'],
  [/^(42P07|42710|42703)/, 'wrong-database', 'another program has a table of the same name there', 'bug'],
]

/** Whether another connection may succeed. */
export function isConnectionLost(error: unknown): boolean {
  const code = readPostgresCode(error)
  return lost.test(code) || certificate.test(code)
}

/** Whether the server refused a write because it is a standby, or read-only. */
export const isReadOnly = (error: unknown) => readPostgresCode(error) === '25006'

/** Whether a statement did not get a lock in time, which means that nothing has changed. */
export function isLockTimeout(error: unknown): error is StoreUnavailable {
  return error instanceof StoreUnavailable && readPostgresCode(error.cause) === '55P03'
}

/** Whether the server itself refused the statement, which means that nothing has changed. */
export function isRefusedByServer(error: unknown): error is Error {
  return error instanceof SQL.PostgresError && error.errno !== undefined
}

/** While the service runs: StoreUnavailable or IdsExhausted if the code means that; otherwise the error itself. */
export function postgresUnavailable(error: unknown): unknown {
  // All other integers are checked before: only the counter of ids can overflow.
  if (readPostgresCode(error) === '22003') return new IdsExhausted(`${int64Max} is the last id`, { cause: error })
  const text = describe(error)
  const [, problem, happened, end = 'bug'] = findProblem(text) ?? []
  if (end === 'bug') return error
  if (end === 'soon') return new StoreUnavailable(`PostgreSQL: ${text}`, { cause: error })
  return new StoreUnavailable(`PostgreSQL: ${happened} (${text})`, { problem, cause: error })
}

/** At the start and for commands: a StoreError if the code is a known problem; otherwise the error itself. */
export function postgresStoreError(error: unknown, location: string, what = 'Cannot open the store'): unknown {
  const text = describe(error)
  const [, problem, happened, end] = findProblem(text) ?? []
  if (!problem) return error
  const kind = end === 'soon' || end === 'later' ? StoreUnreachable : StoreError
  return new kind(problem, `${what} ${location}: ${happened} (${text})`, { cause: error })
}

const findProblem = (text: string) => problems.find(([start]) => start.test(text))

/** `42501: permission denied for table pets`. The message about a refused login names the user, who is not shown. */
function describe(error: unknown): string {
  const code = readPostgresCode(error)
  return code.startsWith('28') ? code : `${code}: ${error instanceof Error ? error.message : error}`
}

/** The server's SQLSTATE if it has answered, otherwise the driver's own code. */
function readPostgresCode(error: unknown): string {
  if (error instanceof SQL.PostgresError) {
    return error.errno === undefined ? error.code : String(error.errno)
  }
  // Certificate errors come from the runtime, not from the driver.
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return certificate.test(code) ? code : ''
}
