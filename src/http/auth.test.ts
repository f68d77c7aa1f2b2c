import { afterAll, afterEach, beforeEach, describe, expect, setSystemTime, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/process.ts'
import { generateApiKey, hashSecret, issueApiKey, type Permission } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import { openStores } from '../store/open.ts'
import type { KeyStore } from '../store-contract.ts'
import { Authenticator, lookUpsMax, requirePermission, verifiedForMs } from './auth.ts'
import { type Caller, Exchange } from './exchange.ts'
import { UsageRecorder } from './key-usage.ts'
import { idempotencyKey, prefersStrict } from './query.ts'
import { Refusal } from './response.ts'

const folder = temporaryFolder()
const stores = await openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true })
afterAll(async () => {
  await stores.close()
  folder[Symbol.dispose]()
})
afterEach(() => void setSystemTime())

/** The store's keys, with a record of the calls. */
const keys: KeyStore = {
  ...stores.keys,
  find(hash) {
    lookups.push(hash)
    return stores.keys.find(hash)
  },
}
let lookups: string[]
beforeEach(() => {
  lookups = []
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
const catchRefusal = async (step: () => unknown): Promise<Refusal | undefined> => {
  try {
    await step()
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

describe('a credential', () => {
  const environmentKey = 'from-the-environment!'
  let usage: UsageRecorder
  let authenticator: Authenticator
  const start = (options: { environmentKey?: string; keys?: KeyStore } = {}) => {
    usage = new UsageRecorder(keys)
    authenticator = new Authenticator(options.keys ?? keys, usage, options.environmentKey ?? environmentKey)
  }
  beforeEach(() => start())

  /** As the pipeline does. */
  const refusal = (authorization: string | undefined, laterMs = 0) => {
    const exchange = createExchange(authorization, laterMs)
    return catchRefusal(() => authenticator.recognize(exchange) ?? authenticator.verify(exchange))
  }
  const outcome = async (authorization: string | undefined, laterMs = 0) =>
    (await refusal(authorization, laterMs))?.code ?? 'accepted'
  const ofEnvironment = (key: string) =>
    ({ keyName: 'PETSTORE_API_KEY', permission: 'all', keyHash: hashSecret(key) }) as const

  /** Accepted twice as this caller: the second time without a look into the store, because it is remembered. */
  async function expectAccepted(header: string, caller: Caller): Promise<void> {
    expect(await authenticator.verify(createExchange(header))).toMatchObject(caller)
    expect(authenticator.recognize(createExchange(header))).toMatchObject(caller)
  }

  test('is a key after Bearer, however that is spelled, and looked up once while it is remembered', async () => {
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

  test('is judged by the store if the environment has a key that the store knows', async () => {
    const readOnly = await newKey({ name: 'screen', permission: 'read-only' })
    start({ environmentKey: readOnly.key })
    await expectAccepted(readOnly.header, { keyName: 'screen', permission: 'read-only', keyHash: readOnly.hash })
    const expired = await newKey({ expiresAt: new Date(0) })
    start({ environmentKey: expired.key })
    expect(await outcome(expired.header)).toBe('invalid_api_key')
  })

  test('may be the key from the environment: one in the form of a stored key only if the store does not know it', async () => {
    await expectAccepted(`Bearer ${environmentKey}`, ofEnvironment(environmentKey))
    expect(lookups).toEqual([])
    const storable = generateApiKey()
    start({ environmentKey: storable })
    await expectAccepted(`Bearer ${storable}`, ofEnvironment(storable))
    expect(lookups).toEqual([hashSecret(storable)])
    const find = () => Promise.reject(new StoreUnavailable('SQLite: SQLITE_IOERR'))
    start({ environmentKey: storable, keys: { ...keys, find } })
    await expect(outcome(`Bearer ${storable}`)).rejects.toBeInstanceOf(StoreUnavailable)
  })

  test.each<[string, ...(string | undefined)[]]>([
    ['missing_api_key', undefined, '', 'Bearer', 'bearer', 'Basic dXNlcjpwYXNz', generateApiKey()],
    ['missing_api_key', `Bearer${environmentKey}`, `XBearer ${environmentKey}`],
    ['invalid_api_key', `Bearer ${environmentKey} x`, `Bearer ${environmentKey}?`, `Bearer pets_${'0'.repeat(36)}`],
    ['invalid_api_key', `Bearer \u00e9${environmentKey}`, `Bearer ${environmentKey}\u00a0`],
  ])('is refused without a query: %s, %j', async (code, ...headers) => {
    for (const header of headers) expect([header, await outcome(header), lookups]).toEqual([header, code, []])
  })

  test('is refused soon after it was revoked, even if the clock was set back', async () => {
    const { id, header } = await newKey()
    await outcome(header)
    await stores.keys.revoke(id, new Date())
    setSystemTime(new Date(Date.now() - 3_600_000))
    expect(await outcome(header, verifiedForMs / 2)).toBe('accepted')
    const challenge = (await refusal(header, verifiedForMs))?.headers?.['WWW-Authenticate']
    expect(challenge).toEndWith('error="invalid_token", error_description="The API key is revoked: use another one"')
  })

  test('is remembered from the moment when the store was asked, however late it answers', async () => {
    using clock = spyOn(performance, 'now').mockReturnValue(1_000)
    const find: KeyStore['find'] = hash => keys.find(hash).finally(() => clock.mockReturnValue(6_000))
    start({ keys: { ...keys, find } })
    const { header } = await newKey()
    await outcome(header)
    clock.mockReturnValue(1_000)
    expect(authenticator.recognize(createExchange(header, verifiedForMs - 1))).toBeDefined()
    expect(authenticator.recognize(createExchange(header, verifiedForMs))).toBeUndefined()
  })

  test('is refused from the moment it expires, even if it is remembered', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000)
    const { header } = await newKey({ expiresAt })
    expect(await outcome(header)).toBe('accepted')
    setSystemTime(new Date(expiresAt.getTime() - 1))
    expect([await outcome(header), lookups.length]).toEqual(['accepted', 1])
    setSystemTime(expiresAt)
    expect(await outcome(header)).toBe('invalid_api_key')
  })

  test('is refused without a query while too many others are looked up, unless it was verified before', async () => {
    const { header } = await newKey()
    let answer = Promise.resolve()
    start({ keys: { ...keys, find: hash => answer.then(() => keys.find(hash)) } })
    await outcome(header)
    const held = Promise.withResolvers<void>()
    answer = held.promise
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

  describe('while the store is unavailable', () => {
    const dayMs = 24 * 60 * 60 * 1_000
    let find: KeyStore['find']
    beforeEach(() => {
      find = keys.find
      start({ keys: { ...keys, find: hash => find(hash) } })
    })
    /** Whether a scrape succeeds after the key was verified and the store went away. */
    const scrape = (header: string, laterMs: number) => {
      find = () => Promise.reject(new StoreUnavailable('no server is usable'))
      const scraping = authenticator.verifyScraper(createExchange(header, laterMs))
      return scraping.then(() => 'accepted').catch((error: Error) => error.name)
    }

    test('opens the metrics for 24 hours, and nothing else, if it is a metrics key that was verified', async () => {
      const { header } = await newKey({ permission: 'metrics' })
      await outcome(header)
      expect(await scrape(header, dayMs - 1_000)).toBe('accepted')
      expect(await scrape(header, dayMs + 1_000)).toBe('StoreUnavailable')
      await expect(outcome(header, verifiedForMs + 1_000)).rejects.toBeInstanceOf(StoreUnavailable)
    })

    test.each<[string, Permission, (key: Awaited<ReturnType<typeof newKey>>) => unknown]>([
      ['is for animals', 'read-write', ({ header }) => outcome(header)],
      ['was not verified', 'metrics', () => {}],
      [
        'is known to be revoked',
        'metrics',
        async ({ id, header }) => {
          await outcome(header)
          await stores.keys.revoke(id, new Date())
          await outcome(header, verifiedForMs + 1_000)
        },
      ],
    ])('does not open the metrics if it %s', async (_, permission, prepare) => {
      const key = await newKey({ permission, expiresAt: new Date(Date.now() + dayMs) })
      await prepare(key)
      expect(await scrape(key.header, verifiedForMs + 2_000)).toBe('StoreUnavailable')
    })
  })

  // In quadratic time this would take minutes, which is longer than a test may take.
  const chars = 300_000
  test.each([
    ['spaces', `Bearer x${' '.repeat(chars)}y`],
    ['quotes and backslashes', '"\\'.repeat(chars / 2)],
    ['spaces after a preference', `handling=a${' '.repeat(chars)}b`],
  ])('or another header of many %s is read in linear time', async (_what, header) => {
    expect(await outcome(header)).toEndWith('_api_key')
    expect([prefersStrict(header), idempotencyKey.read(header), lookups]).toEqual([false, undefined, []])
  })
})

describe('a permission', () => {
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
})
