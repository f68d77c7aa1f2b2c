import { describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { IdsExhausted, SetupError, StoreUnavailable, StoreUnreachable } from '../../errors.ts'
import { isConnectionLost, runtimeErrorOf, setupErrorOf } from './fault.ts'

const place = 'postgres://db:5432/pets'

/** As the server answers, with its SQLSTATE. */
const answered = (errno: string) =>
  new SQL.PostgresError('the server says', { code: 'ERR_POSTGRES_SERVER_ERROR', errno, detail: '', hint: '' })

/** As the driver fails on its own. */
const failed = (code: string) => new SQL.PostgresError('the driver says', { code, detail: '', hint: '' })

const lost = [
  ['the connection was closed', failed('ERR_POSTGRES_CONNECTION_CLOSED')],
  ['nobody listens', failed('ERR_POSTGRES_CONNECTION_REFUSED')],
  ['nobody answers in time', failed('ERR_POSTGRES_CONNECTION_TIMEOUT')],
  ['the connection broke while it was made', failed('ERR_POSTGRES_CONNECTION_FAILED')],
  ['the connection was idle', failed('ERR_POSTGRES_IDLE_TIMEOUT')],
  ['the connection was old', failed('ERR_POSTGRES_LIFETIME_TIMEOUT')],
  ['the connection failed', answered('08006')],
  ['an operator ended it', answered('57P01')],
  ['the server crashed', answered('57P02')],
  ['the server starts', answered('57P03')],
  ['the server takes no writes any more', answered('25006')],
  ['a standby refuses a connection for writing', answered('0A000')],
] as const

const passing = [
  ['a statement took too long', answered('57014')],
  ['a statement was cancelled', failed('ERR_POSTGRES_QUERY_CANCELLED')],
  ['a lock was not to be had', answered('55P03')],
  ['two transactions met', answered('40001')],
  ['two transactions waited for one another', answered('40P01')],
  ['a transaction was idle for too long', answered('25P03')],
  ['the disk is full', answered('53100')],
  ['the memory is full', answered('53200')],
  ['there are too many connections', answered('53300')],
  ['the disk fails', answered('58030')],
  ['the password was changed', answered('28P01')],
  ['the user is not let in', answered('28000')],
  ['the database was dropped', answered('3D000')],
  ['a replica lacks our tables', answered('42P01')],
] as const

const neither = [
  ['a right is missing', answered('42501')],
  ['a value is there twice', answered('23505')],
  ['a statement is wrong', answered('42601')],
  ['the server has a defect', answered('XX000')],
  ['the driver has a defect', failed('ERR_POSTGRES_INVALID_MESSAGE')],
  ['another error', new Error('57P01')],
  ['an error with such a code that is not from the driver', Object.assign(new Error(), { code: '57P01' })],
  ['no error at all', undefined],
] as const

test('an overflow of the counter means that no id is left', () => {
  expect(runtimeErrorOf(answered('22003'))).toBeInstanceOf(IdsExhausted)
})

describe('while the service runs', () => {
  test.each(lost)('%s: another connection may do better, and it passes', (_, error) => {
    expect(isConnectionLost(error)).toBe(true)
    expect(runtimeErrorOf(error)).toBeInstanceOf(StoreUnavailable)
  })

  test.each(passing)('%s: it passes, and no other connection would do better', (_, error) => {
    expect(isConnectionLost(error)).toBe(false)
    expect(runtimeErrorOf(error)).toBeInstanceOf(StoreUnavailable)
  })

  test.each(neither)('%s: it stays what it is', (_, error) => {
    expect(isConnectionLost(error)).toBe(false)
    expect(runtimeErrorOf(error)).toBe(error)
  })

  test("what passes names the code alone, and keeps the driver's error as its cause", () => {
    const error = answered('53100')
    expect(runtimeErrorOf(error)).toMatchObject({ message: 'PostgreSQL: 53100', cause: error })
    const own = failed('ERR_POSTGRES_CONNECTION_CLOSED')
    expect(runtimeErrorOf(own)).toMatchObject({ message: 'PostgreSQL: ERR_POSTGRES_CONNECTION_CLOSED' })
  })
})

describe('at the start', () => {
  test.each([
    ['28P01', 'does not let this user in'],
    ['28000', 'does not let this user in'],
    ['3D000', 'no such database'],
    ['57P03', 'starting up or shutting down'],
    ['57P01', 'does not answer there'],
    ['08006', 'does not answer there'],
    ['53300', 'no connection left'],
    ['57014', 'another program holds it locked'],
    ['55P03', 'another program holds it locked'],
  ])('%s is one line, "%s", and whoever is willing may wait', (code, why) => {
    expectLine(setupErrorOf(answered(code), place), code, why)
    expect(setupErrorOf(answered(code), place)).toBeInstanceOf(StoreUnreachable)
  })

  test.each([
    ['ERR_POSTGRES_CONNECTION_REFUSED', 'does not answer there'],
    ['ERR_POSTGRES_CONNECTION_TIMEOUT', 'does not answer there'],
    ['ERR_POSTGRES_CONNECTION_CLOSED', 'closed the connection'],
    ['ERR_POSTGRES_CONNECTION_FAILED', 'no PostgreSQL answers there'],
    ['ERR_POSTGRES_TLS_NOT_AVAILABLE', 'takes the sslmode'],
  ])('%s is one line, "%s", and whoever is willing may wait', (code, why) => {
    expectLine(setupErrorOf(failed(code), place), code, why)
    expect(setupErrorOf(failed(code), place)).toBeInstanceOf(StoreUnreachable)
  })

  test.each([
    ['42501', 'lacks the right'],
    ['42P07', 'a table of another program'],
    ['42710', 'a table of another program'],
    ['42703', 'a table of another program'],
  ])('%s is one line, "%s", and waiting would not help', (code, why) => {
    expectLine(setupErrorOf(answered(code), place), code, why)
    expect(setupErrorOf(answered(code), place)).not.toBeInstanceOf(StoreUnreachable)
  })

  test('what does not speak PostgreSQL is one line, and waiting would not help', () => {
    const code = 'ERR_POSTGRES_UNEXPECTED_MESSAGE'
    expectLine(setupErrorOf(failed(code), place), code, 'does not speak PostgreSQL')
    expect(setupErrorOf(failed(code), place)).not.toBeInstanceOf(StoreUnreachable)
  })

  test('what was told already is not told anew', () => {
    for (const told of [new SetupError('as it is'), new StoreUnreachable('as it is')]) {
      expect(setupErrorOf(told, place)).toBe(told)
    }
  })

  test('a defect stays one', () => {
    for (const defect of [answered('42601'), answered('XX000'), new Error('28P01'), new TypeError()]) {
      expect(setupErrorOf(defect, place)).toBe(defect)
    }
  })

  test('a real refusal, where nobody listens, is told as one', async () => {
    const sql = new SQL('postgres://somebody:hunter2@127.0.0.1:1/pets', { max: 1 })
    const error: unknown = await sql`SELECT 1`.catch((reason: unknown) => reason)
    await sql.close()
    expect(isConnectionLost(error)).toBe(true)
    expect(runtimeErrorOf(error)).toBeInstanceOf(StoreUnavailable)
    expectLine(setupErrorOf(error, place), 'ERR_POSTGRES_CONNECTION_REFUSED', 'does not answer there')
    expect(String(setupErrorOf(error, place))).not.toContain('hunter2')
  })
})

function expectLine(error: unknown, code: string, why: string): void {
  expect(error).toBeInstanceOf(SetupError)
  const { message } = error as SetupError
  expect(message).toStartWith(`Cannot open the store ${place}: `)
  expect(message).toContain(why)
  expect(message).toEndWith(` (${code})`)
  expect(message).not.toContain('\n')
}
