import { SQL } from 'bun'
import { IdsExhausted, SetupError, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import { int64Max } from '../../int64.ts'

const certificate = /CERT|SELF_SIGNED|^UNABLE_TO_|^ERR_TLS_/

/** The server's SQLSTATE where it answered at all, else the driver's own code. */
function codeOf(error: unknown): string {
  if (error instanceof SQL.PostgresError) {
    return error.errno === undefined ? error.code : String(error.errno)
  }
  // What is wrong with a certificate is told by the runtime, not by the driver.
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return certificate.test(code) ? code : ''
}

// The connection is gone or was never there; the server ends, begins, or is no longer the one that takes writes: a standby
// answers 25006 to a write, and 0A000 to a connection that is meant for writing.
const lost = /^(ERR_POSTGRES_(CONNECTION|IDLE_TIMEOUT|LIFETIME_TIMEOUT)|08|57P|25006|0A000)/

// What an operator or time can mend: a timeout, a lock, a full disk, too many connections, a password that was changed;
// 42P01, where a replica has not heard of our tables yet.
const passing = /^(ERR_POSTGRES_QUERY_CANCELLED|57014|55P03|40001|40P01|25P0|42P01|53|58|28|3D)/

/** Whether another connection, or another host, may do better. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error)
  return lost.test(code) || certificate.test(code)
}

/** Whether the server has judged the statement and refused it: then it has certainly changed nothing. */
export function isRefused(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno !== undefined
}

/** A driver's error, told by its code: one that passes becomes StoreUnavailable, any other stays what it is. */
export function runtimeErrorOf(error: unknown): unknown {
  const code = codeOf(error)
  // Every other integer was checked before: only the counter of ids can overflow.
  if (code === '22003') return new IdsExhausted(`${int64Max} is the last id`, { cause: error })
  if (lost.test(code) || certificate.test(code) || passing.test(code)) {
    return new StoreUnavailable(`PostgreSQL: ${code}`, { cause: error })
  }
  return error
}

/** What is wrong with the database at the start, as one line. */
export function setupErrorOf(error: unknown, place: string): unknown {
  if (error instanceof SetupError) return error
  const code = codeOf(error)
  const [, why, passes] = mends.find(([codes]) => codes.test(code)) ?? []
  if (why === undefined) return error
  const kind = passes ? StoreUnreachable : SetupError
  return new kind(`Cannot open the store ${place}: ${why} (${code})`, { cause: error })
}

const mends: readonly (readonly [RegExp, why: string, passes: boolean])[] = [
  [/^28/, 'the server does not let this user in; mend user and password in DATABASE_URL', true],
  [
    certificate,
    "the server's certificate is not trusted; name its authority's file in NODE_EXTRA_CA_CERTS, or another sslmode in DATABASE_URL",
    true,
  ],
  [/^3D000/, 'the server has no such database; create it, or name another in DATABASE_URL', true],
  [/^57P03/, 'the server is starting up or shutting down; try again', true],
  [
    /^53300/,
    'the server has no connection left for us; raise its max_connections, or lower --database-pool',
    true,
  ],
  [
    /^ERR_POSTGRES_(TLS|CONNECTION_CLOSED)/,
    'the server closed the connection; check that it speaks PostgreSQL and takes the sslmode in DATABASE_URL',
    true,
  ],
  [
    /^ERR_POSTGRES_CONNECTION_FAILED/,
    'no PostgreSQL answers there; check host and port in DATABASE_URL, and that it speaks PostgreSQL',
    true,
  ],
  [lost, 'the server does not answer there; start it, or mend host and port in DATABASE_URL', true],
  [/^ERR_POSTGRES_/, 'what answers there does not speak PostgreSQL as we know it; mend DATABASE_URL', false],
  [
    /^42501/,
    'this user lacks the right to make or use our tables; GRANT it CREATE on the schema, or SELECT, INSERT, UPDATE and DELETE on our tables',
    false,
  ],
  [
    /^(42P07|42710|42703)/,
    'a table of another program has the name of one of ours; name a database of its own in DATABASE_URL',
    false,
  ],
  [/^(57014|55P03)/, 'another program holds it locked; stop that program, or try again', true],
]
