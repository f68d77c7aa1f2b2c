import { beforeEach, expect, test } from 'bun:test'
import { withAdvice } from '../cli/advice.ts'
import { IdsExhausted, StoreUnavailable } from '../errors.ts'
import type { Log, LogFields, LogLevel } from '../log.ts'
import { Exchange } from './exchange.ts'
import { RequestLog } from './request-log.ts'

let lines: { level: LogLevel; message: string; fields: LogFields }[]
let level: LogLevel
const log: Log = {
  isOn: asked => level === 'info' || asked !== 'info',
  write: (level, message, fields = {}) => lines.push({ level, message, fields }),
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
  [500, 'error'],
  [503, 'info'],
])('the log shows a response with status %p at the level %s', (status, expected) => {
  end(createExchange(), status)
  level = 'warn'
  end(createExchange(), status)
  expect(lines.map(({ level }) => level)).toEqual(expected === 'info' ? ['info'] : [expected, expected])
  const fields = { requestId: 'id-1', path: '/v1/nothing', status, durationMs: 1.235, client: '192.0.2.1' }
  expect(lines[0]?.fields).toMatchObject(fields)
})

test('the log shows a traceparent only if it is valid', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  for (const sent of [traceparent, `x${traceparent}`, `${traceparent}x`, traceparent.toUpperCase()]) {
    end(createExchange({ traceparent: sent }), 200)
  }
  expect(lines.map(({ fields }) => fields['traceparent'])).toEqual([traceparent, undefined, undefined, undefined])
})

test('the log has the first failure at once, and at each flush how many followed, until none did', () => {
  const fail = (requests: number) => {
    for (let i = 0; i < requests; i++) requestLog.requestFailed(createExchange(), new StoreUnavailable('full'))
    requestLog.flush()
  }
  for (const requests of [31, 2, 0, 3]) fail(requests)
  requestLog.requestFailed(createExchange(), new IdsExhausted('No id is left'))
  const logged = lines.map(({ level, message, fields }) => [level, message, fields['cause'], fields['requests']])
  const ofStore = [1, 30, 2, 1, 2].map(requests => ['error', 'store unavailable', 'full', requests])
  expect(logged).toEqual([...ofStore, ['error', 'ids exhausted', 'No id is left', 1]])
  expect(lines[0]?.fields['requestId']).toBe('id-1')
})

test('the log has the stack of an unexpected failure', () => {
  requestLog.requestFailed(createExchange(), new TypeError('oops'))
  const cause = expect.stringContaining('request-log.test.ts')
  expect(lines).toEqual([{ level: 'error', message: 'internal error', fields: { requestId: 'id-1', cause } }])
})

test('the log shows 200 characters of a path, and of a key across the limit only the first ones', () => {
  const before = `/${'x'.repeat(185)}/`
  for (const path of [`/${'x'.repeat(200)}`, `${before}pets_${'x'.repeat(36)}`]) end(createExchange({}, path), 404)
  expect(lines.map(({ fields }) => fields['path'])).toEqual([`/${'x'.repeat(199)}`, `${before}pets_xxxx…`])
})
