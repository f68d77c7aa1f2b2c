import { describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { IdsExhausted, SetupError, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import { isConnectionLost, isRefusedByServer, postgresSetupError, postgresStoreError } from './errors.ts'

const location = 'postgres://db:5432/pets'
const setPooler = 'set PETSTORE_DATABASE_POOLER=true'

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
    ['the server is a standby', '25006 0A000', true],
    ['a statement was cancelled, or a transaction was idle', '57014 ERR_POSTGRES_QUERY_CANCELLED 25P03', false],
    ['a lock, a serialization failure, a deadlock', '55P03 40001 40P01', false],
    ['disk or memory full, a failing disk', '53100 53200 58030', false],
    ['the password was changed, the user is refused, the database was dropped', '28P01 28000 3D000', false],
    ['a replica has no tables yet', '42P01', false],
  ])('%s: unavailable, with code and message, and known whether another connection may succeed', (_, codes, isLost) => {
    for (const short of codes.split(' ')) {
      const code = short.replace(/^ERR_(?!POSTGRES)/, 'ERR_POSTGRES_CONNECTION_')
      const error = errorWith(code)
      expect(isConnectionLost(error), code).toBe(isLost)
      expect(postgresStoreError(error)).toBeInstanceOf(StoreUnavailable)
      // The message about a refused login names the user.
      const message = code.startsWith('28') ? code : `${code}: the database says`
      expect(postgresStoreError(error)).toMatchObject({ message: `PostgreSQL: ${message}`, cause: error })
    }
  })

  test.each([
    [`The address looks like a connection pooler in transaction mode: ${setPooler}`, '26000 42P05'],
    ['the user lacks a right; GRANT it SELECT', '42501'],
    ['the server has no free connection; raise its max_connections', '53300'],
  ])('the log says "%s", and what the server says, for %s', (advice, codes) => {
    for (const code of codes.split(' ')) {
      const error = postgresStoreError(errorWith(code)) as Error
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(error.message).toStartWith(`PostgreSQL: ${code}: the database says; ${advice}`)
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
    expect(postgresStoreError(error)).toBe(error)
  })

  test('an overflow of the counter means that no id is left', () => {
    expect(postgresStoreError(errorWith('22003'))).toBeInstanceOf(IdsExhausted)
  })
})

describe('at the start', () => {
  test.each<[string, string, typeof SetupError]>([
    ['refuses this user; check user and password', '28P01', StoreUnreachable],
    ['pg_hba.conf .* sslmode', '28000', StoreUnreachable],
    ['no such database', '3D000', StoreUnreachable],
    ['starting up or shutting down', '57P03', StoreUnreachable],
    ['an administrator ended the session; try again', '57P01', StoreUnreachable],
    ['does not answer', '08006', StoreUnreachable],
    ['does not answer', 'ERR_POSTGRES_CONNECTION_REFUSED ERR_POSTGRES_CONNECTION_TIMEOUT', StoreUnreachable],
    ['no free connection', '53300', StoreUnreachable],
    ['has locked it', '57014 55P03 40P01', StoreUnreachable],
    ['closed the connection', 'ERR_POSTGRES_CONNECTION_CLOSED', StoreUnreachable],
    ['supports the sslmode', 'ERR_POSTGRES_TLS_NOT_AVAILABLE', StoreUnreachable],
    ['no PostgreSQL server answers', 'ERR_POSTGRES_CONNECTION_FAILED', StoreUnreachable],
    ['the user lacks a right', '42501', SetupError],
    ['names no schema that exists', '3F000', SetupError],
    ['a table of the same name', '42P07 42710 42703', SetupError],
    ['not a supported PostgreSQL', 'ERR_POSTGRES_UNEXPECTED_MESSAGE', SetupError],
  ])('one line says "%s" for %s; only a StoreUnreachable is worth another attempt', (problem, codes, kind) => {
    for (const code of codes.split(' ')) {
      const error = postgresSetupError(errorWith(code), location) as SetupError
      expect(error.constructor).toBe(kind)
      expect(error.message).toMatch(
        new RegExp(`^Cannot open the store ${location}: .*${problem}.* \\(${code}(: the database says)?\\)$`),
      )
    }
  })

  test.each([
    ['26000', 'prepared statement "P1" does not exist', true],
    ['42P05', 'prepared statement "P1" already exists', true],
    ['08P01', 'unsupported startup parameter: lock_timeout', true],
    ['08P01', 'bind message supplies 1 parameters, but prepared statement "P1" requires 2', true],
    ['08P01', 'no more connections allowed (max_client_conn)', false],
  ])('%s, "%s", is advice about a pooler: %p', (code, message, isAdvice) => {
    const cause = new SQL.PostgresError(message, { code: 'X', errno: code } as never)
    const error = postgresSetupError(cause, location) as SetupError
    expect(error.constructor).toBe(isAdvice ? SetupError : StoreUnreachable)
    expect(error.message).toContain(message)
    expect(error.message.includes('PETSTORE_DATABASE_POOLER')).toBe(isAdvice)
  })

  test.each([
    ['a SetupError', new SetupError('as it is')],
    ['a StoreUnreachable', new StoreUnreachable('as it is')],
    ['a wrong statement', errorWith('42601')],
    ['another error', new Error('28P01')],
  ])('%s stays as it is', (_, error) => {
    expect(postgresSetupError(error, location)).toBe(error)
  })
})

test('only an error from the server itself means that nothing has changed', () => {
  const errors = [errorWith('23505'), errorWith('ERR_POSTGRES_INVALID_MESSAGE'), new Error('23505')]
  expect(errors.map(isRefusedByServer)).toEqual([true, false, false])
})
