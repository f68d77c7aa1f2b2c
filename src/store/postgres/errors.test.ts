import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { IdsExhausted, StoreError, type StoreProblem, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import { isConnectionLost, isRefusedByServer, postgresStoreError, postgresUnavailable } from './errors.ts'

const location = 'postgres://db:5432/pets'

/** As the driver fails by itself, or as the server answers with its SQLSTATE. */
function errorWith(code: string, message = 'the database says') {
  const options = code.startsWith('ERR_') ? { code } : { code: 'ERR_POSTGRES_SERVER_ERROR', errno: code }
  return new SQL.PostgresError(message, { ...options, detail: '', hint: '' })
}

// The log while the service runs: for `passing`, only what the server says; for `bug`, the stack.
type Running = 'passing' | 'problem' | 'bug'
const [retried, final] = [StoreUnreachable, StoreError]
const unanswered = 'ERR_POSTGRES_CONNECTION_REFUSED ERR_POSTGRES_IDLE_TIMEOUT ERR_POSTGRES_LIFETIME_TIMEOUT'

test.each<[codes: string, problem: StoreProblem, happened: string, atStart: typeof StoreError, Running]>([
  ['26000 42P05', 'pooler', 'the address looks like a connection pooler in transaction mode', final, 'problem'],
  ['28000', 'host-rules', 'the server does not admit this user from here', retried, 'problem'],
  ['28P01', 'refused-user', 'the server refuses this user', retried, 'problem'],
  ['3D000', 'wrong-database', 'the server has no such database', retried, 'problem'],
  ['3F000', 'no-schema', 'the search_path of the user names no schema that exists', final, 'problem'],
  ['42501', 'missing-right', 'the user lacks a right', final, 'problem'],
  ['25006', 'no-primary', 'the server takes no writes', retried, 'problem'],
  ['53300', 'no-free-connection', 'the server has no free connection', retried, 'problem'],
  ['53100', 'disk-full', 'its disk is full', retried, 'problem'],
  ['ERR_POSTGRES_TLS_NOT_AVAILABLE', 'no-answer', 'no TLS connection is possible', retried, 'problem'],
  ['57P01', 'temporary', 'an administrator ended the session', retried, 'passing'],
  ['57P03', 'temporary', 'the server is starting up or shutting down', retried, 'passing'],
  ['57014 55P03 40P01', 'locked', 'another process has locked it', retried, 'passing'],
  ['25P03 25001 40001 42P01 53200 58030', 'temporary', 'the server cannot do this now', retried, 'passing'],
  ['ERR_POSTGRES_CONNECTION_CLOSED', 'no-answer', 'the server closed the connection', retried, 'passing'],
  [`08006 57P02 ${unanswered}`, 'no-answer', 'no PostgreSQL server answers', retried, 'passing'],
  ['ERR_POSTGRES_UNEXPECTED_MESSAGE', 'no-answer', 'the server is not a supported PostgreSQL', final, 'bug'],
  ['42P07 42710 42703', 'wrong-database', 'another program has a table of the same name there', final, 'bug'],
])('%s is the problem %s, "%s"', (codes, problem, happened, atStart, running) => {
  for (const code of codes.split(' ')) {
    const error = errorWith(code)
    // The message about a refused login names the user.
    const shown = code.startsWith('28') ? code : `${code}: the database says`
    const opening = postgresStoreError(error, location)
    expect((opening as Error).constructor).toBe(atStart)
    const message = `Cannot open the store ${location}: ${happened} (${shown})`
    expect(opening).toMatchObject({ problem, message, cause: error })
    const found = postgresUnavailable(error)
    if (running === 'bug') expect(found).toBe(error)
    else expect(found).toBeInstanceOf(StoreUnavailable)
    if (running === 'passing') expect(found).toMatchObject({ problem: undefined, message: `PostgreSQL: ${shown}` })
    if (running === 'problem') expect(found).toMatchObject({ problem, message: `PostgreSQL: ${happened} (${shown})` })
  }
})

test.each([
  ['unsupported startup parameter: lock_timeout', 'pooler'],
  ['bind message supplies 1 parameters, but prepared statement "P1" requires 2', 'pooler'],
  ['no more connections allowed (max_client_conn)', 'no-answer'],
])('08P01 with the message "%s" is the problem %s', (message, problem) => {
  expect(postgresStoreError(errorWith('08P01', message), location)).toMatchObject({ problem })
})

test('any other error stays as it is', () => {
  const ofBug = ['23505', '42601', 'XX000'].map(code => errorWith(code))
  const withCode = Object.assign(new Error(), { code: '57P01' })
  const ofStore = new StoreUnreachable('no-answer', 'as it is')
  for (const error of [...ofBug, new Error('57P01'), withCode, ofStore, undefined]) {
    expect(isConnectionLost(error)).toBe(false)
    expect(postgresUnavailable(error)).toBe(error)
    expect(postgresStoreError(error, location)).toBe(error)
  }
})

test('an overflow of the counter means that no id is left; an error of the server, that nothing has changed', () => {
  expect(postgresUnavailable(errorWith('22003'))).toBeInstanceOf(IdsExhausted)
  const errors = [errorWith('23505'), errorWith('ERR_POSTGRES_INVALID_MESSAGE'), new Error('23505')]
  expect(errors.map(isRefusedByServer)).toEqual([true, false, false])
})
