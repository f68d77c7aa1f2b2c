import { describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { IdsExhausted, SetupError, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import { isConnectionLost, setupErrorOf, storeErrorOf } from './errors.ts'

const location = 'postgres://db:5432/pets'

/** As the server answers, with its SQLSTATE. */
const fromServer = (errno: string) =>
  new SQL.PostgresError('the server says', { code: 'ERR_POSTGRES_SERVER_ERROR', errno, detail: '', hint: '' })

/** As the driver fails by itself. */
const fromDriver = (code: string) => new SQL.PostgresError('the driver says', { code, detail: '', hint: '' })

const errorWith = (code: string) => (code.startsWith('ERR_') ? fromDriver(code) : fromServer(code))

describe('while the service runs', () => {
  test.each([
    ['ERR_POSTGRES_CONNECTION_CLOSED', 'the connection was closed'],
    ['ERR_POSTGRES_CONNECTION_REFUSED', 'no server is listening'],
    ['ERR_POSTGRES_CONNECTION_TIMEOUT', 'the server does not answer'],
    ['ERR_POSTGRES_CONNECTION_FAILED', 'the connection broke while it was made'],
    ['ERR_POSTGRES_IDLE_TIMEOUT', 'the connection was idle'],
    ['ERR_POSTGRES_LIFETIME_TIMEOUT', 'the connection was old'],
    ['08006', 'the connection failed'],
    ['57P01', 'an operator ended it'],
    ['57P02', 'the server crashed'],
    ['57P03', 'the server is starting'],
    ['25006', 'the server takes no writes any more'],
    ['0A000', 'a standby refuses a connection for writing'],
  ])('%s (%s): unavailable, and another connection may succeed', code => {
    expect(isConnectionLost(errorWith(code))).toBe(true)
    expect(storeErrorOf(errorWith(code))).toBeInstanceOf(StoreUnavailable)
  })

  test.each([
    ['57014', 'a statement took too long'],
    ['ERR_POSTGRES_QUERY_CANCELLED', 'a statement was cancelled'],
    ['55P03', 'a lock was not available'],
    ['40001', 'a serialization failure'],
    ['40P01', 'a deadlock'],
    ['25P03', 'a transaction was idle for too long'],
    ['53100', 'the disk is full'],
    ['53200', 'the memory is full'],
    ['53300', 'too many connections'],
    ['58030', 'the disk fails'],
    ['28P01', 'the password was changed'],
    ['28000', 'the user is refused'],
    ['3D000', 'the database was dropped'],
    ['42P01', 'a replica has no tables yet'],
  ])('%s (%s): unavailable, and another connection would not help', code => {
    expect(isConnectionLost(errorWith(code))).toBe(false)
    expect(storeErrorOf(errorWith(code))).toBeInstanceOf(StoreUnavailable)
  })

  test.each([
    ['a missing right', fromServer('42501')],
    ['a duplicate value', fromServer('23505')],
    ['a wrong statement', fromServer('42601')],
    ['a bug of the server', fromServer('XX000')],
    ['a bug of the driver', fromDriver('ERR_POSTGRES_INVALID_MESSAGE')],
    ['another error', new Error('57P01')],
    ['another error with such a code', Object.assign(new Error(), { code: '57P01' })],
    ['no error', undefined],
  ])('%s stays as it is', (_, error) => {
    expect(isConnectionLost(error)).toBe(false)
    expect(storeErrorOf(error)).toBe(error)
  })

  test('an overflow of the counter means that no id is left', () => {
    expect(storeErrorOf(fromServer('22003'))).toBeInstanceOf(IdsExhausted)
  })

  test.each(['53100', 'ERR_POSTGRES_CONNECTION_CLOSED'])('the message shows the code %s only', code => {
    const error = errorWith(code)
    expect(storeErrorOf(error)).toMatchObject({ message: `PostgreSQL: ${code}`, cause: error })
  })
})

describe('at the start', () => {
  test.each([
    ['28P01', 'refuses this user', StoreUnreachable],
    ['28000', 'refuses this user', StoreUnreachable],
    ['3D000', 'no such database', StoreUnreachable],
    ['57P03', 'starting up or shutting down', StoreUnreachable],
    ['57P01', 'does not answer', StoreUnreachable],
    ['08006', 'does not answer', StoreUnreachable],
    ['53300', 'no free connection', StoreUnreachable],
    ['57014', 'has locked it', StoreUnreachable],
    ['55P03', 'has locked it', StoreUnreachable],
    ['ERR_POSTGRES_CONNECTION_REFUSED', 'does not answer', StoreUnreachable],
    ['ERR_POSTGRES_CONNECTION_TIMEOUT', 'does not answer', StoreUnreachable],
    ['ERR_POSTGRES_CONNECTION_CLOSED', 'closed the connection', StoreUnreachable],
    ['ERR_POSTGRES_CONNECTION_FAILED', 'no PostgreSQL server answers', StoreUnreachable],
    ['ERR_POSTGRES_TLS_NOT_AVAILABLE', 'supports the sslmode', StoreUnreachable],
    ['42501', 'may not create or use the tables', SetupError],
    ['42P07', 'a table of the same name', SetupError],
    ['42710', 'a table of the same name', SetupError],
    ['42703', 'a table of the same name', SetupError],
    ['ERR_POSTGRES_UNEXPECTED_MESSAGE', 'not a supported PostgreSQL', SetupError],
  ])('%s is one line, "%s"; only a StoreUnreachable is worth another attempt', (code, problem, kind) => {
    const error = setupErrorOf(errorWith(code), location) as SetupError
    expect(error.constructor).toBe(kind)
    expect(error.message).toStartWith(`Cannot open the store ${location}: `)
    expect(error.message).toContain(problem)
    expect(error.message).toEndWith(` (${code})`)
    expect(error.message).not.toContain('\n')
  })

  test.each([
    ['a SetupError', new SetupError('as it is')],
    ['a StoreUnreachable', new StoreUnreachable('as it is')],
    ['a wrong statement', fromServer('42601')],
    ['a bug of the server', fromServer('XX000')],
    ['another error', new Error('28P01')],
  ])('%s stays as it is', (_, error) => {
    expect(setupErrorOf(error, location)).toBe(error)
  })

  test('a real refused connection is recognised, and its message shows no password', async () => {
    await using sql = new SQL('postgres://somebody:hunter2@127.0.0.1:1/pets', { max: 1 })
    const error: unknown = await sql`SELECT 1`.catch((reason: unknown) => reason)
    expect(isConnectionLost(error)).toBe(true)
    expect(storeErrorOf(error)).toBeInstanceOf(StoreUnavailable)
    expect(String(setupErrorOf(error, location))).toContain('does not answer')
    expect(String(setupErrorOf(error, location))).not.toContain('hunter2')
  })
})
