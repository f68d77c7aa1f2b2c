import { afterEach, beforeEach, expect, type Mock, setSystemTime, spyOn, test } from 'bun:test'
import { Exchange } from './exchange.ts'
import { RateLimiter } from './rate-limit.ts'
import { Refusal } from './response.ts'

let clock: Mock<typeof performance.now>
beforeEach(() => {
  clock = spyOn(performance, 'now').mockReturnValue(10_000.7)
})
afterEach(() => {
  clock.mockRestore()
  setSystemTime()
})

function count(limiter: RateLimiter, keyHash: string) {
  const exchange = new Exchange(new Request('http://a/v1/pets'), undefined, text => text)
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
  const limiter = new RateLimiter({ requests: 2, seconds: 60 })
  const policy = '"default";q=2;w=60'
  expect(count(limiter, 'a')).toMatchObject({ rate: '"default";r=1;t=60', policy, retryAfter: undefined })
  clock.mockReturnValue(10_999.9)
  expect(count(limiter, 'a')).toMatchObject({ rate: '"default";r=0;t=60', policy, retryAfter: undefined })
  clock.mockReturnValue(11_000)
  for (let i = 0; i < 2; i++) {
    expect(count(limiter, 'a')).toEqual({ rate: '"default";r=0;t=59', policy, retryAfter: '59' })
  }
  expect(count(limiter, 'b')).toMatchObject({ rate: '"default";r=1;t=60', retryAfter: undefined })
})

test('a new window starts with the first request after the last one, even if the wall clock was set back', () => {
  const limiter = new RateLimiter({ requests: 1, seconds: 1 })
  count(limiter, 'a')
  setSystemTime(new Date(Date.now() - 3_600_000))
  clock.mockReturnValue(10_999.9)
  expect(count(limiter, 'a').retryAfter).toBe('1')
  clock.mockReturnValue(11_000)
  expect(count(limiter, 'a').retryAfter).toBeUndefined()
  clock.mockReturnValue(12_000)
  expect(count(limiter, 'a').retryAfter).toBeUndefined()
})

test('a limit holds for 10,000 keys at once', () => {
  const limiter = new RateLimiter({ requests: 1, seconds: 60 })
  const retryAfters = () => new Set(Array.from({ length: 10_000 }, (_, i) => count(limiter, String(i)).retryAfter))
  expect(retryAfters()).toEqual(new Set([undefined]))
  expect(retryAfters()).toEqual(new Set(['60']))
})

test('with more keys than there is room for, each may still send its requests, and the oldest window is dropped', () => {
  const limiter = new RateLimiter({ requests: 2, seconds: 60 }, 100)
  const left = (key: number) => count(limiter, String(key)).rate
  for (let i = 0; i < 200; i++) {
    expect([left(i), left(i)]).toEqual(['"default";r=1;t=60', '"default";r=0;t=60'])
  }
  expect(count(limiter, '100').retryAfter).toBe('60')
  expect(left(99)).toBe('"default";r=1;t=60')
})
