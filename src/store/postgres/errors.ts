import { SQL } from 'bun'
import { IdsExhausted, SetupError, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import { int64Max } from '../../int64.ts'

const certificate = /CERT|SELF_SIGNED|^UNABLE_TO_|^ERR_TLS_/

/** The server's SQLSTATE if it has answered, otherwise the driver's own code. */
function codeOf(error: unknown): string {
  if (error instanceof SQL.PostgresError) {
    return error.errno === undefined ? error.code : String(error.errno)
  }
  // Certificate errors come from the runtime, not from the driver.
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return certificate.test(code) ? code : ''
}

// No connection, or the server is starting, stopping or no longer the primary: a standby answers 25006 to a write, and 0A000
// to a connection that asks for a primary.
const lost = /^(ERR_POSTGRES_(CONNECTION|IDLE_TIMEOUT|LIFETIME_TIMEOUT)|08|57P|25006|0A000)/

// Time-outs, locks, a full disk, too many connections, a changed password; 42P01 while a replica has no tables yet; 25001 if
// another isolation level was set.
const temporary = /^(ERR_POSTGRES_QUERY_CANCELLED|57014|55P03|40001|40P01|25001|25P0|42P01|53|58|28|3D)/

/** Whether a prepared statement is missing in this session, or a start-up parameter is refused. */
function isFromPooler(error: unknown, code: string): boolean {
  return /^(26000|42P05)/.test(code) || (code === '08P01' && /startup parameter|bind message/.test(String(error)))
}

export const poolerAdvice =
  'The address looks like a connection pooler in transaction mode: set PETSTORE_DATABASE_POOLER=true'

const rightsAdvice =
  'the user lacks a right; GRANT it SELECT, INSERT, UPDATE and DELETE on the tables, EXECUTE on the functions, and TEMPORARY on the database for an import; the first start needs CREATE on the schema, and an upgrade the owner of the tables'

const connectionsAdvice =
  'the server has no free connection; raise its max_connections, or the CONNECTION LIMIT of the role or the database, or lower --database-pool'

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Whether another connection or another host may succeed. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error)
  return lost.test(code) || certificate.test(code)
}

/** Whether the driver closed a connection because nobody used it. */
export function isIdleTimeout(error: unknown): boolean {
  return codeOf(error) === 'ERR_POSTGRES_IDLE_TIMEOUT'
}

/** Whether the server runs, but refuses further connections. */
export function isOutOfConnections(error: unknown): boolean {
  return codeOf(error) === '53300'
}

/** Whether an administrator, or a server that stops, has ended the session. */
export function isSessionEnded(error: unknown): boolean {
  return codeOf(error) === '57P01'
}

/** Whether the server itself refused the statement, which means that nothing has changed. */
export function isRefusedByServer(error: unknown): error is Error {
  return error instanceof SQL.PostgresError && error.errno !== undefined
}

/** StoreUnavailable or IdsExhausted if the driver's code means that; otherwise the error itself. */
export function postgresStoreError(error: unknown): unknown {
  const code = codeOf(error)
  // All other integers are checked before: only the counter of ids can overflow.
  if (code === '22003') return new IdsExhausted(`${int64Max} is the last id`, { cause: error })
  const advice = isFromPooler(error, code) ? poolerAdvice : runtimeAdvice.get(code)
  if (advice || isConnectionLost(error) || temporary.test(code)) {
    const message = `PostgreSQL: ${described(error, code)}${advice ? `; ${advice}` : ''}`
    return new StoreUnavailable(message, { cause: error })
  }
  return error
}

const runtimeAdvice = new Map([
  ['42501', rightsAdvice],
  ['53300', connectionsAdvice],
])

/** `42501: permission denied for table pets`. The message about a refused login names the user, who is not shown. */
function described(error: unknown, code: string): string {
  return code.startsWith('28') ? code : `${code}: ${messageOf(error)}`
}

/** One line for the operator if the code is a known problem; otherwise the error itself. */
export function postgresSetupError(error: unknown, location: string, what = 'Cannot open the store'): unknown {
  if (error instanceof SetupError) return error
  const code = codeOf(error)
  if (isFromPooler(error, code)) {
    const problem = `${described(error, code)}. ${poolerAdvice}`
    return new SetupError(`${what} ${location}: ${problem}`, { cause: error })
  }
  const [, problem, kind = StoreUnreachable] = setupProblems.find(([codes]) => codes.test(code)) ?? []
  if (problem === undefined) return error
  return new kind(`${what} ${location}: ${problem} (${described(error, code)})`, { cause: error })
}

/** The first match counts. A problem is StoreUnreachable, so worth another attempt, unless its entry says SetupError. */
const setupProblems: readonly (readonly [codes: RegExp, problem: string, kind?: typeof SetupError])[] = [
  [
    /^28000/,
    'pg_hba.conf of the server does not admit this user from here; add a line there, or set sslmode=require in DATABASE_URL if the server demands TLS',
  ],
  [/^28/, 'the server refuses this user; check user and password in DATABASE_URL'],
  [
    /ALTNAME/,
    "the server's certificate is for another host name; use that name in DATABASE_URL, or choose another sslmode",
  ],
  [
    certificate,
    "the server's certificate is not trusted; set NODE_EXTRA_CA_CERTS to its authority's file, or choose another sslmode in DATABASE_URL",
  ],
  [
    /^3F000/,
    'the search_path of the user names no schema that exists; create it, or change the search_path',
    SetupError,
  ],
  [/^3D000/, 'the server has no such database; create it, or set DATABASE_URL to another one'],
  [/^57P01/, 'an administrator ended the session; try again'],
  [/^57P03/, 'the server is starting up or shutting down; try again'],
  [/^53300/, connectionsAdvice],
  [/^53100/, 'its disk is full; free some space'],
  [
    /^ERR_POSTGRES_(TLS|CONNECTION_CLOSED)/,
    'the server closed the connection; check that it is PostgreSQL and supports the sslmode in DATABASE_URL',
  ],
  [/^ERR_POSTGRES_CONNECTION_FAILED/, 'no PostgreSQL server answers; check host and port in DATABASE_URL'],
  [lost, 'the server does not answer; start it, or check host and port in DATABASE_URL'],
  [/^ERR_POSTGRES_/, 'the server is not a supported PostgreSQL; check host and port in DATABASE_URL', SetupError],
  [/^42501/, rightsAdvice, SetupError],
  [
    /^(42P07|42710|42703)/,
    'another program has a table of the same name there; set DATABASE_URL to a separate database',
    SetupError,
  ],
  [/^(57014|55P03|40P01)/, 'another program has locked it; stop that program, or try again'],
]
