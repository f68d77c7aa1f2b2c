import { afterAll, afterEach, beforeEach, expect, type Mock, setSystemTime, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/process.ts'
import { generateApiKey, hashSecret, issueApiKey, type Permission } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import { openStores } from '../store/open.ts'
import type { KeyStore } from '../store-contract.ts'
import { Authenticator, lookUpsMax, requirePermission, verifiedForMs } from './auth.ts'
import { type Caller, Exchange } from './exchange.ts'
import { UsageRecorder } from './key-usage.ts'
import { Refusal } from './response.ts'

const folder = temporaryFolder()
const stores = await openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true })
afterAll(async () => {
  await stores.close()
  folder[Symbol.dispose]()
})

/** How the store finds a key; each call is recorded. */
let find: KeyStore['find']
let lookups: string[]
const keys: KeyStore = {
  ...stores.keys,
  find(hash) {
    lookups.push(hash)
    return find(hash)
  },
}
const unavailable: KeyStore['find'] = () => Promise.reject(new StoreUnavailable('no server is usable'))
let authenticator: Authenticator
const environmentKey = 'from-the-environment!'
const start = (key = environmentKey) => {
  authenticator = new Authenticator(keys, new UsageRecorder(keys), key)
}
let clock: Mock<typeof performance.now>
beforeEach(() => {
  clock = spyOn(performance, 'now').mockReturnValue(1_000)
  ;[find, lookups] = [stores.keys.find, []]
  start()
})
afterEach(() => {
  clock.mockRestore()
  setSystemTime()
})

async function newKey(options: { name?: string; permission?: Permission; expiresAt?: Date } = {}) {
  const { key, record } = issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date(), ...options })
  const { id } = await stores.keys.create(record)
  return { id, key, hash: record.hash, header: `Bearer ${key}` }
}

const createExchange = (authorization?: string, laterMs = 0) => {
  const headers = authorization === undefined ? {} : { authorization }
  const exchange = new Exchange(new Request('http://a/v1/pets', { headers }), undefined, undefined)
  return Object.assign(exchange, { startedMs: exchange.startedMs + laterMs })
}
/** Undefined if nothing is thrown. Other errors are thrown on. */
const catchRefusal = (step: () => unknown): Promise<Refusal | undefined> =>
  Promise.try(step).then(
    () => undefined,
    error => (error instanceof Refusal ? error : Promise.reject(error)),
  )
/** As the pipeline does. */
const refusal = (authorization: string | undefined, laterMs = 0) => {
  const exchange = createExchange(authorization, laterMs)
  return catchRefusal(() => authenticator.recognize(exchange) ?? authenticator.verify(exchange))
}
const outcome = async (authorization: string | undefined, laterMs = 0) =>
  (await refusal(authorization, laterMs))?.code ?? 'accepted'

/** Accepted twice as this caller: the second time without a look into the store, because it is remembered. */
async function expectAccepted(header: string, caller: Caller): Promise<void> {
  expect(await authenticator.verify(createExchange(header))).toMatchObject(caller)
  expect(authenticator.recognize(createExchange(header))).toMatchObject(caller)
}

test('a credential is a key after Bearer, however that is spelled, and looked up once while it is remembered', async () => {
  const { key, hash } = await newKey({ name: 'till 1', permission: 'read-only' })
  for (const scheme of ['Bearer ', 'bearer   ', `BEARER${' '.repeat(1_000)}`]) {
    start()
    await expectAccepted(scheme + key, { keyName: 'till 1', permission: 'read-only', keyHash: hash })
  }
  expect(lookups).toEqual([hash, hash, hash])
  const unknown = `Bearer ${generateApiKey()}`
  for (let i = 0; i < 3; i++) expect(await outcome(unknown)).toBe('invalid_api_key')
  expect(lookups).toHaveLength(6)
})

test('a credential may be the key of the environment, unless the store knows it, or is unavailable', async () => {
  const storable = generateApiKey()
  for (const key of [environmentKey, storable]) {
    start(key)
    const keyHash = hashSecret(key)
    await expectAccepted(`Bearer ${key}`, { keyName: 'PETSTORE_API_KEY', permission: 'all', keyHash })
  }
  expect(lookups).toEqual([hashSecret(storable)])
  const readOnly = await newKey({ name: 'screen', permission: 'read-only' })
  start(readOnly.key)
  await expectAccepted(readOnly.header, { keyName: 'screen', permission: 'read-only', keyHash: readOnly.hash })
  const expired = await newKey({ expiresAt: new Date(0) })
  start(expired.key)
  expect(await outcome(expired.header)).toBe('invalid_api_key')
  start(storable)
  find = unavailable
  await expect(outcome(`Bearer ${storable}`)).rejects.toBeInstanceOf(StoreUnavailable)
})

test.each<[string, ...(string | undefined)[]]>([
  ['missing_api_key', undefined, '', 'Bearer', 'bearer', 'Basic dXNlcjpwYXNz', generateApiKey()],
  ['missing_api_key', `Bearer${environmentKey}`, `XBearer ${environmentKey}`],
  ['invalid_api_key', `Bearer ${environmentKey} x`, `Bearer ${environmentKey}?`, `Bearer pets_${'0'.repeat(36)}`],
  ['invalid_api_key', `Bearer \u00e9${environmentKey}`, `Bearer ${environmentKey}\u00a0`],
])('a credential is refused without a query: %s, %j', async (code, ...headers) => {
  for (const header of headers) expect([header, await outcome(header), lookups]).toEqual([header, code, []])
})

test('a credential is refused soon after it was revoked, even if the clock was set back', async () => {
  const { id, header } = await newKey()
  await outcome(header)
  await stores.keys.revoke(id, new Date())
  setSystemTime(new Date(Date.now() - 3_600_000))
  expect(await outcome(header, verifiedForMs / 2)).toBe('accepted')
  const challenge = (await refusal(header, verifiedForMs))?.headers?.['WWW-Authenticate']
  expect(challenge).toContain('error="invalid_token", error_description="The API key is revoked')
})

test('a credential is remembered from the moment when the store was asked, however late it answers', async () => {
  find = hash => stores.keys.find(hash).finally(() => clock.mockReturnValue(6_000))
  const { header } = await newKey()
  await outcome(header)
  clock.mockReturnValue(1_000)
  expect(authenticator.recognize(createExchange(header, verifiedForMs - 1))).toBeDefined()
  expect(authenticator.recognize(createExchange(header, verifiedForMs))).toBeUndefined()
})

test('a credential is refused from the moment it expires, even if it is remembered', async () => {
  const expiresAt = new Date(Date.now() + 3_600_000)
  const { header } = await newKey({ expiresAt })
  expect(await outcome(header)).toBe('accepted')
  setSystemTime(new Date(expiresAt.getTime() - 1))
  expect([await outcome(header), lookups.length]).toEqual(['accepted', 1])
  setSystemTime(expiresAt)
  expect(await outcome(header)).toBe('invalid_api_key')
})

test('a credential is refused without a query while too many others are looked up, unless it was verified before', async () => {
  const { header } = await newKey()
  await outcome(header)
  const held = Promise.withResolvers<void>()
  find = hash => held.promise.then(() => stores.keys.find(hash))
  const waiting = Array.from({ length: lookUpsMax }, () => outcome(`Bearer ${generateApiKey()}`))
  const refused = await refusal(`Bearer ${generateApiKey()}`)
  expect([refused?.code, refused?.headers]).toEqual(['rate_limited', { 'Retry-After': '1' }])
  // The environment's key is not looked up.
  expect(await outcome(`Bearer ${environmentKey}`)).toBe('accepted')
  const verifiedBefore = outcome(header, verifiedForMs)
  held.resolve()
  expect(await verifiedBefore).toBe('accepted')
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['invalid_api_key']))
  expect(await outcome((await newKey()).header)).toBe('accepted')
})

const hourMs = 60 * 60 * 1_000
test.each<[string, number, Permission, 'verified' | 'unknown' | 'revoked']>([
  ['accepted', 23.9, 'metrics', 'verified'],
  ['StoreUnavailable', 24, 'metrics', 'verified'],
  ['StoreUnavailable', 1, 'read-write', 'verified'],
  ['StoreUnavailable', 1, 'metrics', 'unknown'],
  ['StoreUnavailable', 1, 'metrics', 'revoked'],
])('while the store is unavailable, a scrape is %s %d h later with a key for %s that is %s', async (...row) => {
  const [expected, hours, permission, state] = row
  const { id, header } = await newKey({ permission, expiresAt: new Date(Date.now() + 48 * hourMs) })
  if (state !== 'unknown') expect(await outcome(header)).toBe('accepted')
  if (state === 'revoked') {
    await stores.keys.revoke(id, new Date())
    await outcome(header, verifiedForMs)
  }
  find = unavailable
  const scraping = authenticator.verifyScraper(createExchange(header, hours * hourMs))
  expect(await scraping.then(() => 'accepted').catch((error: Error) => error.name)).toBe(expected)
  // The key opens nothing else.
  await expect(outcome(header, hours * hourMs)).rejects.toBeInstanceOf(StoreUnavailable)
})

const refused = 'insufficient_permission'
test.each<[Caller['permission'], string, string, string, string]>([
  ['all', 'accepted', 'accepted', 'accepted', 'accepted'],
  ['manage', 'accepted', 'accepted', 'accepted', refused],
  ['read-write', 'accepted', 'accepted', refused, refused],
  ['read-only', 'accepted', 'read_only_key', refused, refused],
  ['metrics', refused, refused, refused, 'accepted'],
  ['none', refused, refused, refused, refused],
])('%s: a read is %s, a write is %s, a change is %s, the metrics are %s', async (permission, ...codes) => {
  const caller = { keyName: 'till', permission, keyHash: '' }
  for (const [index, access] of (['read', 'write', 'manage', 'metrics'] as const).entries()) {
    const refusal = await catchRefusal(() => requirePermission(caller, access))
    expect(refusal?.code ?? 'accepted').toBe(codes[index] as string)
    if (refusal) expect(refusal.headers?.['WWW-Authenticate']).toContain(', error="insufficient_scope", ')
  }
  expect(() => requirePermission(caller, 'public')).not.toThrow()
})
