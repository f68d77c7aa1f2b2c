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

// Time-outs, locks, a full disk, too many connections, a changed password; 42P01 while a replica has no tables yet.
const temporary = /^(ERR_POSTGRES_QUERY_CANCELLED|57014|55P03|40001|40P01|25P0|42P01|53|58|28|3D)/

/** Whether another connection or another host may succeed. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error)
  return lost.test(code) || certificate.test(code)
}

/** Whether the server itself refused the statement, which means that nothing has changed. */
export function isRefusedByServer(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno !== undefined
}

/** StoreUnavailable or IdsExhausted if the driver's code means that; otherwise the error itself. */
export function storeErrorOf(error: unknown): unknown {
  const code = codeOf(error)
  // All other integers are checked before: only the counter of ids can overflow.
  if (code === '22003') return new IdsExhausted(`${int64Max} is the last id`, { cause: error })
  if (lost.test(code) || certificate.test(code) || temporary.test(code)) {
    return new StoreUnavailable(`PostgreSQL: ${code}`, { cause: error })
  }
  return error
}

/** One line for the operator if the code is a known problem; otherwise the error itself. */
export function setupErrorOf(error: unknown, location: string): unknown {
  if (error instanceof SetupError) return error
  const code = codeOf(error)
  const [, problem, kind = StoreUnreachable] = setupProblems.find(([codes]) => codes.test(code)) ?? []
  if (problem === undefined) return error
  return new kind(`Cannot open the store ${location}: ${problem} (${code})`, { cause: error })
}

/** The first match counts. A problem is StoreUnreachable, so worth another attempt, unless its entry says SetupError. */
const setupProblems: readonly (readonly [codes: RegExp, problem: string, kind?: typeof SetupError])[] = [
  [/^28/, 'the server refuses this user; check user and password in DATABASE_URL'],
  [
    certificate,
    "the server's certificate is not trusted; set NODE_EXTRA_CA_CERTS to its authority's file, or choose another sslmode in DATABASE_URL",
  ],
  [/^3D000/, 'the server has no such database; create it, or set DATABASE_URL to another one'],
  [/^57P03/, 'the server is starting up or shutting down; try again'],
  [/^53300/, 'the server has no free connection; raise its max_connections, or lower --database-pool'],
  [
    /^ERR_POSTGRES_(TLS|CONNECTION_CLOSED)/,
    'the server closed the connection; check that it is PostgreSQL and supports the sslmode in DATABASE_URL',
  ],
  [/^ERR_POSTGRES_CONNECTION_FAILED/, 'no PostgreSQL server answers; check host and port in DATABASE_URL'],
  [lost, 'the server does not answer; start it, or check host and port in DATABASE_URL'],
  [/^ERR_POSTGRES_/, 'the server is not a supported PostgreSQL; check host and port in DATABASE_URL', SetupError],
  [
    /^42501/,
    'this user may not create or use the tables; GRANT it CREATE on the schema, or SELECT, INSERT, UPDATE and DELETE on the tables',
    SetupError,
  ],
  [
    /^(42P07|42710|42703)/,
    'another program has a table of the same name there; set DATABASE_URL to a separate database',
    SetupError,
  ],
  [/^(57014|55P03)/, 'another program has locked it; stop that program, or try again'],
]
