import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createAuthenticator } from '../../src/http/authenticate.ts'
import { readIdempotencyKey } from '../../src/http/idempotency-key.ts'
import { prefersStrict } from '../../src/http/prefer.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service[Symbol.asyncDispose]())

const msFor = (judge: (header: string) => unknown, header: string) => {
  const beganMs = performance.now()
  for (let i = 0; i < 5; i++) judge(header)
  return performance.now() - beganMs
}

/** A header of 16 KB is the longest that reaches us. Judged in quadratic time, one of them would take hundreds of milliseconds. */
const shapes: [string, (chars: number) => string][] = [
  ['spaces', chars => `Bearer x${' '.repeat(chars)}y`],
  ['spaces in front', chars => `Bearer${' '.repeat(chars)}`],
  ['quotes', chars => '"'.repeat(chars)],
  ['escaped quotes', chars => '\\"'.repeat(chars / 2)],
  ['quotes and backslashes', chars => '"\\'.repeat(chars / 2)],
  ['a preference and spaces', chars => `handling=a${' '.repeat(chars)}b`],
  ['commas', chars => ','.repeat(chars)],
]

test.each(shapes)(
  'a header of many %s is judged in a time that grows with its length, not with its square',
  (_, make) => {
    const { authenticate } = createAuthenticator({ keys: service.stores.keys })
    for (const judge of [authenticate, prefersStrict, readIdempotencyKey]) {
      // 64 times as long: linear is 64 times the time, quadratic 4,096 times.
      judge(make(250))
      const short = Math.max(0.05, msFor(judge, make(250)))
      expect(msFor(judge, make(16_000)) / short).toBeLessThan(600)
    }
  },
)

test('one key with ever more spaces before it does not fill the memory', async () => {
  const { authenticate } = createAuthenticator({ keys: service.stores.keys })
  let lookUps = 0
  const counted = createAuthenticator({
    keys: {
      ...service.stores.keys,
      find(hash) {
        lookUps++
        return service.stores.keys.find(hash)
      },
    },
  })
  const long = `Bearer ${' '.repeat(400)}${service.key}`
  expect(await authenticate(long)).toMatchObject({ ok: true })
  for (let i = 0; i < 3; i++) await counted.authenticate(long)
  expect(lookUps).toBe(3)
})
