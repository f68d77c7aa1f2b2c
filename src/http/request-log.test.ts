import { beforeEach, describe, expect, test } from 'bun:test'
import { withAdvice } from '../cli/advice.ts'
import { IdsExhausted, StoreUnavailable } from '../errors.ts'
import type { Log, LogFields, LogLevel } from '../log.ts'
import { Exchange } from './exchange.ts'
import { RequestLog } from './request-log.ts'

describe('the log', () => {
  let lines: { level: LogLevel; message: string; fields: LogFields }[]
  let level: LogLevel
  const log: Log = {
    isOn: asked => level === 'info' || asked !== 'info',
    write: (level, message, fields = {}) => lines.push({ level, message, fields }),
    request: (level, fields) => lines.push({ level, message: 'request', fields }),
  }
  let requestLog: RequestLog
  const environmentKey = 'a-key-from-outside'
  beforeEach(() => {
    lines = []
    level = 'info'
    requestLog = new RequestLog({ log, advice: withAdvice, trustedProxies: undefined })
  })
  const createExchange = (given: Record<string, string> = {}, path = '/v1/nothing') => {
    const headers = { 'x-request-id': 'id-1', ...given }
    const peers = { requestIP: () => ({ address: '192.0.2.1' }) }
    return new Exchange(new Request(`http://a${path}?secret`, { headers }), peers, environmentKey)
  }
  const end = (exchange: Exchange, status: number) => requestLog.requestEnded(exchange, status, 1.23456)

  test.each<[number, LogLevel]>([
    [200, 'info'],
    [499, 'info'],
    [500, 'error'],
    [503, 'info'],
  ])('shows a response with status %p at the level %s', (status, expected) => {
    end(createExchange(), status)
    level = 'warn'
    end(createExchange(), status)
    expect(lines.map(({ level }) => level)).toEqual(expected === 'info' ? ['info'] : [expected, expected])
    const fields = { requestId: 'id-1', path: '/v1/nothing', status, durationMs: 1.235, client: '192.0.2.1' }
    expect(lines[0]?.fields).toMatchObject(fields)
  })

  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  test.each([
    [traceparent, traceparent],
    [`x${traceparent}`, undefined],
    [`${traceparent}x`, undefined],
    [traceparent.toUpperCase(), undefined],
  ])('shows the traceparent %s as %p', (sent, shown) => {
    end(createExchange({ traceparent: sent }), 200)
    expect(lines[0]?.fields['traceparent']).toBe(shown)
  })

  test.each<[string, Error]>([
    ['store unavailable', new StoreUnavailable('The disk is full')],
    ['ids exhausted', new IdsExhausted('No id is left')],
  ])('has the first failure at once, and at each flush how many followed, until none did: %s', (message, cause) => {
    const fail = (requests: number) => {
      for (let i = 0; i < requests; i++) requestLog.requestFailed(createExchange(), cause)
    }
    fail(31)
    requestLog.flush()
    fail(2)
    requestLog.flush()
    requestLog.flush()
    fail(3)
    const fields = { requestId: 'id-1', cause: cause.message }
    const counts = [1, 30, 2, 1]
    expect(lines).toEqual(counts.map(requests => ({ level: 'error', message, fields: { ...fields, requests } })))
  })

  test.each<[unknown, string]>([
    [new TypeError('oops'), 'request-log.test.ts'],
    [Object.assign(new Error('bare'), { stack: '' }), 'Error: bare'],
    ['a text', 'a text'],
  ])('has the cause of an unexpected failure: %#', (cause, shown) => {
    requestLog.requestFailed(createExchange(), cause)
    const fields = { requestId: 'id-1', cause: expect.stringContaining(shown) }
    expect(lines).toEqual([{ level: 'error', message: 'internal error', fields }])
  })

  const stored = `pets_${'x'.repeat(36)}`
  test.each([
    ['a stored key', `/v1/${stored}/a`, '/v1/pets_xxxx…/a'],
    ['the environment key', `/v1/x${environmentKey}/a`, '/v1/x…/a'],
    ['200 characters', `/${'x'.repeat(199)}`, `/${'x'.repeat(199)}`],
    ['more', `/${'x'.repeat(200)}`, `/${'x'.repeat(199)}`],
    ['a stored key across the limit', `/${'x'.repeat(185)}/${stored}`, `/${'x'.repeat(185)}/pets_xxxx…`],
  ])('shows a path without a key and cut: %s', (_what, path, shown) => {
    end(createExchange({}, path), 404)
    expect(lines[0]?.fields['path']).toBe(shown)
  })
})
