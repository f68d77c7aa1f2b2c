import { afterEach, expect, setSystemTime, spyOn, test } from 'bun:test'
import { Exchange } from './exchange.ts'
import { RateLimiter } from './rate-limit.ts'
import { Refusal } from './response.ts'

afterEach(() => void setSystemTime())

function count(limiter: RateLimiter, keyHash: string) {
  const exchange = new Exchange(new Request('http://a/v1/pets'), undefined, undefined)
  exchange.caller = { keyName: 'till', permission: 'read-write', keyHash }
  let retryAfter: string | undefined
  try {
    limiter.count(exchange)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    retryAfter = error.headers?.['Retry-After']
  }
  return { rate: exchange.headers['RateLimit'], policy: exchange.headers['RateLimit-Policy'], retryAfter }
}

test('each request says how many are left, and one too many is refused', () => {
  using clock = spyOn(performance, 'now').mockReturnValue(10_000.7)
  const limiter = new RateLimiter({ requests: 2, seconds: 60 })
  const policy = '"default";q=2;w=60'
  expect(count(limiter, 'a')).toEqual({ rate: '"default";r=1;t=60', policy, retryAfter: undefined })
  clock.mockReturnValue(10_999.9)
  expect(count(limiter, 'a')).toEqual({ rate: '"default";r=0;t=60', policy, retryAfter: undefined })
  clock.mockReturnValue(11_000)
  for (let i = 0; i < 2; i++) {
    expect(count(limiter, 'a')).toEqual({ rate: '"default";r=0;t=59', policy, retryAfter: '59' })
  }
  expect(count(limiter, 'b')).toMatchObject({ rate: '"default";r=1;t=60', retryAfter: undefined })
})

test('a new window starts with the first request after the last one, even if the wall clock was set back', () => {
  using clock = spyOn(performance, 'now').mockReturnValue(10_000.7)
  const limiter = new RateLimiter({ requests: 1, seconds: 1 })
  count(limiter, 'a')
  setSystemTime(new Date(Date.now() - 3_600_000))
  clock.mockReturnValue(10_999.9)
  expect(count(limiter, 'a').retryAfter).toBe('1')
  for (const nowMs of [11_000, 12_000]) {
    clock.mockReturnValue(nowMs)
    expect(count(limiter, 'a').retryAfter).toBeUndefined()
  }
})
