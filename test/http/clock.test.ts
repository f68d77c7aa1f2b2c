import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { issueApiKey } from '../../src/api-key.ts'
import { createAuthenticator } from '../../src/http/authenticate.ts'
import { createRateLimiter } from '../../src/http/rate-limit.ts'
import { startService } from '../support/service.ts'

afterEach(() => {
  setSystemTime()
})

const setBackAnHour = () => setSystemTime(new Date(Date.now() - 3_600_000))

test('a revoked key is refused in time, though the clock was set back', async () => {
  await using service = await startService()
  const { key, record } = issueApiKey({ name: 'leaked', permission: 'read-write', createdAt: new Date() })
  const { id } = await service.stores.keys.create(record)
  const { authenticate } = createAuthenticator({ keys: service.stores.keys })
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ ok: true })
  await service.stores.keys.revoke(id, new Date())
  setBackAnHour()
  await Bun.sleep(2_100)
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ ok: false })
})

test('a key ends when it expires, though it was verified a moment ago and the clock was set forward', async () => {
  await using service = await startService()
  const expiresAt = new Date(Date.now() + 3_600_000)
  const key = await service.newKey({ expiresAt })
  const { authenticate } = createAuthenticator({ keys: service.stores.keys })
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ ok: true })
  setSystemTime(new Date(expiresAt.getTime() + 1))
  expect(await authenticate(`Bearer ${key}`)).toMatchObject({ ok: false })
})

test('a rate begins anew in time, though the clock was set back', async () => {
  const limiter = createRateLimiter({ requests: 1, seconds: 1 })
  limiter.count('a')
  setBackAnHour()
  expect(limiter.count('a').refusal?.headers?.['Retry-After']).toBe('1')
  await Bun.sleep(1_050)
  expect(limiter.count('a').refusal).toBeUndefined()
})
