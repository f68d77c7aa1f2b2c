import { describe, expect, test } from 'bun:test'
import {
  ConnectionError,
  errorClassOf,
  type PetstoreError,
  TimeoutError,
  UnexpectedResponseError,
} from './errors.ts'
import { readRetryAfter, wait, waitMsBeforeRetry } from './retry.ts'

const settings = { retries: 10, backoffMs: 100, backoffMaxMs: 1_000, retryAfterMaxMs: 5_000 }

function answered(status: number, retryAfterSeconds?: number, code = 'some_code'): PetstoreError {
  return new (errorClassOf(status))('', { code, status, retryAfterSeconds })
}

/** The shortest and the longest of many waits. */
function range(error: PetstoreError, attemptsMade: number): { min: number; max: number } {
  const waits = Array.from({ length: 2_000 }, () => waitMsBeforeRetry(error, attemptsMade, settings) ?? -1)
  return { min: Math.min(...waits), max: Math.max(...waits) }
}

describe('what is tried again', () => {
  test.each([
    ['a broken connection', new ConnectionError('', { code: 'connection_failed' })],
    ['a time-out', new TimeoutError('', { code: 'timeout' })],
    ['408', answered(408)],
    ['429', answered(429)],
    ['502', answered(502)],
    ['503', answered(503)],
    ['504', answered(504)],
  ])('%s is', (_what, error) => {
    expect(waitMsBeforeRetry(error, 1, settings)).toBeNumber()
  })

  test.each([
    ...[400, 401, 403, 404, 405, 409, 413, 415, 422, 500, 501].map(
      status => [`${status}`, answered(status)] as const,
    ),
    ['503 ids_exhausted', answered(503, undefined, 'ids_exhausted')] as const,
    ['an unexpected answer', new UnexpectedResponseError('', { code: 'unexpected_response' })] as const,
  ])('%s is not', (_what, error) => {
    expect(waitMsBeforeRetry(error, 1, settings)).toBeUndefined()
  })

  test('no more often than it was told', () => {
    expect(waitMsBeforeRetry(answered(503), 10, settings)).toBeNumber()
    expect(waitMsBeforeRetry(answered(503), 11, settings)).toBeUndefined()
    expect(waitMsBeforeRetry(answered(503), 1, { ...settings, retries: 0 })).toBeUndefined()
  })
})

describe('the wait', () => {
  test.each([
    [1, 100],
    [2, 200],
    [4, 800],
    [5, 1_000],
    [9, 1_000],
  ])('after %d attempts is anything up to %d ms', (attemptsMade, longest) => {
    const { min, max } = range(answered(503), attemptsMade)
    expect(min).toBeWithin(0, longest / 10)
    expect(max).toBeWithin(longest * 0.9, longest + 1)
  })

  test('is at least what the server asked for', () => {
    const { min, max } = range(answered(429, 3), 1)
    expect(min).toBeWithin(3_000, 3_010)
    expect(max).toBeWithin(3_090, 3_101)
  })

  test('is not begun where the server asks for too long a one', () => {
    expect(waitMsBeforeRetry(answered(429, 5), 1, settings)).toBeNumber()
    expect(waitMsBeforeRetry(answered(429, 6), 1, settings)).toBeUndefined()
  })

  test('ends with an abort, for its reason', async () => {
    const reason = new Error('enough')
    const controller = new AbortController()
    const waiting = wait(60_000, controller.signal).catch(error => error)
    controller.abort(reason)
    expect(await waiting).toBe(reason)
    expect(await wait(60_000, controller.signal).catch(error => error)).toBe(reason)
  })
})

test.each<[string | null, number | undefined]>([
  [null, undefined],
  ['0', 0],
  ['120', 120],
  ['Sun, 15 Nov 2026 00:00:30 GMT', 30],
  ['Sat, 14 Nov 2026 00:00:00 GMT', 0],
  ['soon', undefined],
  ['', undefined],
])('Retry-After: %s means %p seconds', (header, seconds) => {
  expect(readRetryAfter(header, new Date('2026-11-15T00:00:00Z'))).toBe(seconds as number)
})
