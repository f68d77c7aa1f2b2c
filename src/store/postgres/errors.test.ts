import { describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { IdsExhausted, StoreError, type StoreProblem, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import { isConnectionLost, isRefusedByServer, postgresStoreError, postgresUnavailable } from './errors.ts'

const location = 'postgres://db:5432/pets'
const pooler = 'the address looks like a connection pooler in transaction mode'

/** As the driver fails by itself, or as the server answers with its SQLSTATE. */
const errorWith = (code: string) =>
  new SQL.PostgresError('the database says', {
    ...(code.startsWith('ERR_') ? { code } : { code: 'ERR_POSTGRES_SERVER_ERROR', errno: code }),
    ...{ detail: '', hint: '' },
  })

describe('while the service runs', () => {
  test.each<[string, string, boolean]>([
    ['the driver has no connection', 'ERR_CLOSED ERR_REFUSED ERR_TIMEOUT ERR_FAILED', true],
    ['the driver closed an idle or old connection', 'ERR_POSTGRES_IDLE_TIMEOUT ERR_POSTGRES_LIFETIME_TIMEOUT', true],
    ['the server is starting, stopping or crashed', '08006 57P01 57P02 57P03', true],
    ['a statement was cancelled, or a transaction was idle', '57014 25P03', false],
    ['a lock, a serialization failure, a deadlock', '55P03 40001 40P01', false],
    ['memory full, a failing disk', '53200 58030', false],
    ['a replica has no tables yet', '42P01', false],
  ])('%s: unavailable, with code and message, and known whether another connection may succeed', (_, codes, isLost) => {
    for (const short of codes.split(' ')) {
      const code = short.replace(/^ERR_(?!POSTGRES)/, 'ERR_POSTGRES_CONNECTION_')
      const error = errorWith(code)
      expect(isConnectionLost(error), code).toBe(isLost)
      expect(postgresUnavailable(error)).toBeInstanceOf(StoreUnavailable)
      expect(postgresUnavailable(error)).toMatchObject({
        message: `PostgreSQL: ${code}: the database says`,
        problem: undefined,
        cause: error,
      })
    }
  })

  test.each<[StoreProblem, string, string]>([
    ['pooler', pooler, '26000 42P05'],
    ['missing-right', 'the user lacks a right', '42501'],
    ['no-free-connection', 'the server has no free connection', '53300'],
    ['no-primary', 'the server takes no writes', '25006'],
    ['disk-full', 'its disk is full', '53100'],
    ['refused-user', 'the server refuses this user', '28P01'],
    ['host-rules', 'pg_hba.conf of the server does not admit this user from here', '28000'],
    ['no-database', 'the server has no such database', '3D000'],
    ['wrong-tls', 'the server closed the connection', 'ERR_POSTGRES_TLS_NOT_AVAILABLE'],
  ])('the problem is %s, "%s", with what the server says, for %s', (problem, happened, codes) => {
    for (const code of codes.split(' ')) {
      const error = postgresUnavailable(errorWith(code))
      expect(error).toBeInstanceOf(StoreUnavailable)
      // The message about a refused login names the user.
      const shown = code.startsWith('28') ? code : `${code}: the database says`
      expect(error).toMatchObject({ problem, message: `PostgreSQL: ${happened} (${shown})` })
    }
  })

  test.each([
    ['a duplicate value', errorWith('23505')],
    ['a wrong statement', errorWith('42601')],
    ['a bug of the server', errorWith('XX000')],
    ['a bug of the driver', errorWith('ERR_POSTGRES_INVALID_MESSAGE')],
    ['another error', new Error('57P01')],
    ['another error with such a code', Object.assign(new Error(), { code: '57P01' })],
    ['no error', undefined],
  ])('%s stays as it is', (_, error) => {
    expect(isConnectionLost(error)).toBe(false)
    expect(postgresUnavailable(error)).toBe(error)
  })

  test('an overflow of the counter means that no id is left', () => {
    expect(postgresUnavailable(errorWith('22003'))).toBeInstanceOf(IdsExhausted)
  })
})

describe('at the start', () => {
  test.each<[StoreProblem, string, string, typeof StoreError]>([
    ['refused-user', 'the server refuses this user', '28P01', StoreUnreachable],
    ['host-rules', 'pg_hba.conf of the server does not admit this user from here', '28000', StoreUnreachable],
    ['no-database', 'the server has no such database', '3D000', StoreUnreachable],
    ['temporary', 'the server is starting up or shutting down', '57P03', StoreUnreachable],
    ['temporary', 'an administrator ended the session', '57P01', StoreUnreachable],
    ['no-answer', 'the server does not answer', '08006', StoreUnreachable],
    ['no-answer', 'the server does not answer', 'ERR_POSTGRES_CONNECTION_REFUSED', StoreUnreachable],
    ['no-answer', 'the server does not answer', 'ERR_POSTGRES_CONNECTION_TIMEOUT', StoreUnreachable],
    ['no-free-connection', 'the server has no free connection', '53300', StoreUnreachable],
    ['disk-full', 'its disk is full', '53100', StoreUnreachable],
    ['locked', 'another process has locked it', '57014 55P03 40P01', StoreUnreachable],
    ['wrong-tls', 'the server closed the connection', 'ERR_POSTGRES_CONNECTION_CLOSED', StoreUnreachable],
    ['wrong-tls', 'the server closed the connection', 'ERR_POSTGRES_TLS_NOT_AVAILABLE', StoreUnreachable],
    ['wrong-address', 'no PostgreSQL server answers', 'ERR_POSTGRES_CONNECTION_FAILED', StoreUnreachable],
    ['missing-right', 'the user lacks a right', '42501', StoreError],
    ['no-schema', 'the search_path of the user names no schema that exists', '3F000', StoreError],
    ['foreign-tables', 'another program has a table of the same name there', '42P07 42710 42703', StoreError],
    ['wrong-address', 'the server is not a supported PostgreSQL', 'ERR_POSTGRES_UNEXPECTED_MESSAGE', StoreError],
  ])('%s, "%s", is the problem for %s; only a StoreUnreachable is worth another attempt', (...expected) => {
    const [problem, happened, codes, kind] = expected
    for (const code of codes.split(' ')) {
      const error = postgresStoreError(errorWith(code), location) as StoreError
      const shown = code.startsWith('28') ? code : `${code}: the database says`
      expect(error.constructor).toBe(kind)
      expect([error.problem, error.message]).toEqual([
        problem,
        `Cannot open the store ${location}: ${happened} (${shown})`,
      ])
    }
  })

  test.each([
    ['26000', 'prepared statement "P1" does not exist', true],
    ['42P05', 'prepared statement "P1" already exists', true],
    ['08P01', 'unsupported startup parameter: lock_timeout', true],
    ['08P01', 'bind message supplies 1 parameters, but prepared statement "P1" requires 2', true],
    ['08P01', 'no more connections allowed (max_client_conn)', false],
  ])('%s, "%s", comes from a pooler: %p', (code, message, isFromPooler) => {
    const cause = new SQL.PostgresError(message, { code: 'X', errno: code } as never)
    const error = postgresStoreError(cause, location) as StoreError
    expect(error.constructor).toBe(isFromPooler ? StoreError : StoreUnreachable)
    const happened = isFromPooler ? pooler : 'the server does not answer'
    expect(error.message).toBe(`Cannot open the store ${location}: ${happened} (${code}: ${message})`)
    expect(error.problem).toBe(isFromPooler ? 'pooler' : 'no-answer')
  })

  test.each([
    ['a StoreError', new StoreError('no-file', 'as it is')],
    ['a StoreUnreachable', new StoreUnreachable('no-answer', 'as it is')],
    ['a wrong statement', errorWith('42601')],
    ['another error', new Error('28P01')],
  ])('%s stays as it is', (_, error) => {
    expect(postgresStoreError(error, location)).toBe(error)
  })
})

test('only an error from the server itself means that nothing has changed', () => {
  const errors = [errorWith('23505'), errorWith('ERR_POSTGRES_INVALID_MESSAGE'), new Error('23505')]
  expect(errors.map(isRefusedByServer)).toEqual([true, false, false])
})
