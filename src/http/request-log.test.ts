import { beforeEach, describe, expect, jest, test } from 'bun:test'
import { standingClock } from '../../test/support/clock.ts'
import { withAdvice } from '../cli/advice.ts'
import { IdsExhausted, StoreUnavailable } from '../errors.ts'
import type { Log, LogFields, LogLevel } from '../log.ts'
import { IncomingRequest, splitUrl } from './request.ts'
import { loggedPath, RequestLog } from './request-log.ts'

describe('the log', () => {
  let lines: { level: LogLevel; message: string; fields: LogFields }[]
  let level: LogLevel
  const log: Log = {
    isOn: asked => level === 'info' || asked !== 'info',
    write: (level, message, fields = {}) => lines.push({ level, message, fields }),
    request: (level, fields) => lines.push({ level, message: 'request', fields }),
  }
  let requestLog: RequestLog
  beforeEach(() => {
    lines = []
    level = 'info'
    requestLog = new RequestLog({ log, advice: withAdvice, environmentKey: undefined, trustedProxies: undefined })
  })
  const incoming = (given: Record<string, string> = {}) => {
    const headers = { 'x-request-id': 'id-1', ...given }
    return new IncomingRequest(new Request('http://a/v1/nothing?secret', { headers }), undefined)
  }
  const end = (request: IncomingRequest, status: number) =>
    requestLog.requestEnded(request, { status, ms: 1.23456, operationId: undefined, caller: undefined })

  test.each<[number, LogLevel]>([
    [200, 'info'],
    [499, 'info'],
    [500, 'error'],
    [503, 'info'],
  ])('shows a response with status %p at the level %s', (status, expected) => {
    end(incoming(), status)
    level = 'warn'
    end(incoming(), status)
    expect(lines.map(({ level }) => level)).toEqual(expected === 'info' ? ['info'] : [expected, expected])
    expect(lines[0]?.fields).toMatchObject({ requestId: 'id-1', path: '/v1/nothing', status, durationMs: 1.235 })
  })

  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  test.each([
    [traceparent, traceparent],
    [`x${traceparent}`, undefined],
    [`${traceparent}x`, undefined],
    [traceparent.toUpperCase(), undefined],
  ])('shows the traceparent %s as %p', (sent, shown) => {
    end(incoming({ traceparent: sent }), 200)
    expect(lines[0]?.fields['traceparent']).toBe(shown)
  })

  test.each<[string, Error]>([
    ['store unavailable', new StoreUnavailable('The disk is full')],
    ['ids exhausted', new IdsExhausted('No id is left')],
  ])('has one line a second while requests fail, and counts none into the next outage: %s', (message, cause) => {
    using _ = standingClock()
    const fail = (requests: number) => {
      for (let i = 0; i < requests; i++) requestLog.requestFailed(incoming(), cause)
    }
    fail(31)
    jest.advanceTimersByTime(1_000)
    fail(2)
    // The process stops.
    requestLog.reportUnavailable()
    fail(3)
    jest.advanceTimersByTime(1_000)
    jest.advanceTimersByTime(86_400_000)
    fail(1)
    const fields = { requestId: 'id-1', cause: cause.message }
    const counts = [1, 30, 2, 3, 1]
    expect(lines).toEqual(counts.map(requests => ({ level: 'error', message, fields: { ...fields, requests } })))
  })

  test.each<[unknown, string]>([
    [new TypeError('oops'), 'request-log.test.ts'],
    [Object.assign(new Error('bare'), { stack: '' }), 'Error: bare'],
    ['a text', 'a text'],
  ])('has the cause of an unexpected failure: %#', (cause, shown) => {
    requestLog.requestFailed(incoming(), cause)
    const fields = { requestId: 'id-1', cause: expect.stringContaining(shown) }
    expect(lines).toEqual([{ level: 'error', message: 'internal error', fields }])
  })
})

describe('a path in the log', () => {
  const environmentKey = 'a/key\\from%41outside'
  const stored = `pets_${'x'.repeat(36)}`
  /** As it arrives: a URL's backslashes become slashes. */
  const logged = (path: string) => loggedPath(splitUrl(new Request(`http://127.0.0.1${path}`).url).path, environmentKey)

  test.each([
    ['the root', '/', '/'],
    ['an empty segment', '/v1//pets/', '/v1//pets/'],
    ['every character that stays', '/AZaz09._~-', '/AZaz09._~-'],
    ['a stored key', `/v1/${stored}`, '/v1/…'],
    ['a stored key that is encoded twice', `/v1/${stored.replace('_', '%255f')}`, '/v1/…'],
    ['an unknown key', '/v1/0123456789abcdef/pets', '/v1/…/pets'],
    ['a segment of 15 characters', '/v1/0123456789abcde', '/v1/0123456789abcde'],
    ['encoded letters', '/v1/%41%7e', '/v1/A~'],
    ['other characters', '/v1/a!/x', '/v1/…/x'],
    ['the environment key, encoded', `/v1/${encodeURIComponent(environmentKey)}/x`, '/v1/…/x'],
    ['the environment key, not encoded', `/v1/${environmentKey}/x`, '/v1/…/x'],
    ['a part of the environment key', '/v1/a/key?x', '/v1/a/key'],
    ['a malformed escape', '/v1/%zz/x', '/v1/…/x'],
    ['10 segments', '/a'.repeat(10), '/a'.repeat(10)],
    ['11 segments', '/a'.repeat(11), `${'/a'.repeat(10)}/…`],
    ['thousands of segments', '/'.repeat(7_900), `${'/'.repeat(11)}…`],
    ['a segment that is cut', `/v1/${'x%'.repeat(90)}/0123456789abcdef`, '/v1/…/…'],
    ['the environment key at the limit', `${'/x%'.repeat(65)}/${environmentKey}`, `${'/…'.repeat(11)}`],
    ['the environment key across the limit', `/${'x'.repeat(180)}/x${environmentKey}`, '/…/…'],
    ['the environment key behind itself', `/${environmentKey.repeat(20)}/a`, '/…'],
    ['a segment that begins after 200 characters', `/v1/${'x%'.repeat(100)}/a`, '/v1/…'],
  ])('%s is logged without a key', (_what, path, shown) => {
    expect(logged(path)).toBe(shown)
  })
})
