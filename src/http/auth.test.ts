import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/process.ts'
import { type ApiKey, generateApiKey, hashSecret, issueApiKey, type Permission } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import { openStores } from '../store/open.ts'
import type { KeyStore, KeyUse, Stores } from '../store.ts'
import { type Access, Authenticator, KeyUsage, permissionRefusal } from './auth.ts'
import { type Caller, idempotencyKey, prefersStrict, RequestContext } from './request.ts'
import type { Reply } from './response.ts'

const folder = temporaryFolder()
let stores: Stores
beforeAll(async () => {
  stores = await openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true })
})
afterAll(async () => {
  await stores.close()
  folder[Symbol.dispose]()
})
afterEach(() => {
  setSystemTime()
})

/** The store's keys, with a record of the calls. */
let keys: KeyStore
let lookups: string[]
let writes: (readonly KeyUse[])[]
beforeEach(() => {
  lookups = []
  writes = []
  keys = {
    ...stores.keys,
    find(hash) {
      lookups.push(hash)
      return stores.keys.find(hash)
    },
    recordUses(uses) {
      writes.push(uses)
      return stores.keys.recordUses(uses)
    },
  }
})

async function newKey(options: { name?: string; permission?: Permission; expiresAt?: Date } = {}) {
  const issued = issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date(), ...options })
  const { id } = await stores.keys.create(issued.record)
  return { id, key: issued.key, hash: issued.record.hash }
}

const contextOf = (authorization?: string) =>
  new RequestContext(
    new Request('http://a/v1/pets', { headers: authorization === undefined ? {} : { authorization } }),
    undefined,
  )
const codeOf = (reply: Reply | undefined) => (reply ? JSON.parse(String(reply.body)).code : 'accepted')

describe('a credential', () => {
  const environmentKey = 'from-the-environment!'
  const verifiedForMs = 60_000
  let authenticator: Authenticator
  const started = (options: { verifiedKeysMax?: number } = {}) =>
    new Authenticator({ keys, usage: new KeyUsage(keys), environmentKey, verifiedForMs, ...options })
  beforeEach(() => {
    authenticator = started()
  })

  const refusal = async (authorization: string | undefined, laterMs = 0) => {
    const context = contextOf(authorization)
    return authenticator.authenticate(Object.assign(context, { startedMs: context.startedMs + laterMs }))
  }
  const outcome = async (authorization: string | undefined, laterMs = 0) =>
    codeOf(await refusal(authorization, laterMs))

  test.each<[string, (key: string) => string]>([
    ['after Bearer', key => `Bearer ${key}`],
    ['after bearer and several spaces', key => `bearer   ${key}`],
    ['after BEARER', key => `BEARER ${key}`],
  ])('is a key %s', async (_where, header) => {
    const { key, hash } = await newKey({ name: 'till 1', permission: 'read-only' })
    const context = contextOf(header(key))
    expect(await authenticator.authenticate(context)).toBeUndefined()
    const caller: Caller = { keyName: 'till 1', permission: 'read-only', scope: hash }
    expect(context.caller).toEqual(caller)
    const again = contextOf(header(key))
    expect(authenticator.authenticate(again)).toBeUndefined()
    expect(again.caller).toEqual(caller)
  })

  test('may be the key from the environment, which may do everything and is named in the log', async () => {
    const context = contextOf(`Bearer ${environmentKey}`)
    expect(await authenticator.authenticate(context)).toBeUndefined()
    expect(context.caller).toEqual({
      keyName: 'PETSTORE_API_KEY',
      permission: 'all',
      scope: hashSecret(environmentKey),
    })
    // At once, not as a promise: it is remembered.
    expect(authenticator.authenticate(contextOf(`Bearer ${environmentKey}`))).toBeUndefined()
    expect(lookups).toEqual([])
  })

  test.each<[string | undefined, string]>([
    [undefined, 'missing_api_key'],
    ['', 'missing_api_key'],
    ['Bearer', 'missing_api_key'],
    ['Basic dXNlcjpwYXNz', 'missing_api_key'],
    [`Bearer${environmentKey}`, 'missing_api_key'],
    [`XBearer ${environmentKey}`, 'missing_api_key'],
    [`Bearer ${environmentKey} x`, 'invalid_api_key'],
    [`Bearer ${environmentKey}\u00a0`, 'invalid_api_key'],
    [`Bearer \u00e9${environmentKey}`, 'invalid_api_key'],
    [`Bearer ${environmentKey}?`, 'invalid_api_key'],
    ['Bearer pets_000000000000000000000000000000000000', 'invalid_api_key'],
  ])('%j is refused without a query: %s', async (authorization, code) => {
    expect([await outcome(authorization), lookups]).toEqual([code, []])
  })

  test('is refused with a challenge that says why', async () => {
    const challengeOf = async (authorization?: string) =>
      (await refusal(authorization))?.headers.get('www-authenticate')
    expect(await challengeOf()).toBe('Bearer realm="petstore"')
    expect(await challengeOf(`Bearer ${generateApiKey()}`)).toBe(
      'Bearer realm="petstore", error="invalid_token", error_description="Unknown API key: check it for typos"',
    )
    const { id, key } = await newKey()
    await stores.keys.revoke(id, new Date())
    expect(await challengeOf(`Bearer ${key}`)).toContain('"The API key is revoked: use another one"')
    expect(await challengeOf('Bearer a b')).toContain('"Malformed credential: expected one API key after Bearer"')
  })

  test('is looked up once while it is remembered, and each time if it is unknown', async () => {
    const { key } = await newKey()
    for (let i = 0; i < 3; i++) expect(await outcome(`Bearer ${key}`)).toBe('accepted')
    expect(lookups).toHaveLength(1)
    const unknown = generateApiKey()
    for (let i = 0; i < 3; i++) expect(await outcome(`Bearer ${unknown}`)).toBe('invalid_api_key')
    expect(lookups).toHaveLength(4)
  })

  test('is refused soon after it was revoked, even if the clock was set back', async () => {
    const { id, key } = await newKey()
    await outcome(`Bearer ${key}`)
    await stores.keys.revoke(id, new Date())
    setSystemTime(new Date(Date.now() - 3_600_000))
    expect(await outcome(`Bearer ${key}`, verifiedForMs / 2)).toBe('accepted')
    expect(await outcome(`Bearer ${key}`, verifiedForMs)).toBe('invalid_api_key')
  })

  test('is refused from the moment it expires, even if it is remembered', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000)
    const { key } = await newKey({ expiresAt })
    expect(await outcome(`Bearer ${key}`)).toBe('accepted')
    setSystemTime(new Date(expiresAt.getTime() - 1))
    expect([await outcome(`Bearer ${key}`), lookups.length]).toEqual(['accepted', 1])
    setSystemTime(expiresAt)
    expect(await outcome(`Bearer ${key}`)).toBe('invalid_api_key')
  })

  test('is forgotten first if it was verified longest ago, when as many as allowed are remembered', async () => {
    authenticator = started({ verifiedKeysMax: 2 })
    const headers: string[] = []
    for (let i = 0; i < 3; i++) headers.push(`Bearer ${(await newKey()).key}`)
    const [first, second, third] = headers
    for (const header of [first, second]) await outcome(header)
    await outcome(first, verifiedForMs + 100)
    expect(lookups).toHaveLength(3)
    await outcome(third)
    for (const header of [first, third]) await outcome(header)
    expect(lookups).toHaveLength(4)
    await outcome(second)
    expect(lookups).toHaveLength(5)
  })

  test('is not remembered in a header of more than 300 characters, which could fill the memory', async () => {
    const { key } = await newKey()
    const header = (chars: number) => `Bearer ${key.padStart(chars - 'Bearer '.length)}`
    for (let i = 0; i < 3; i++) expect(await outcome(header(300))).toBe('accepted')
    expect(lookups).toHaveLength(1)
    for (let i = 0; i < 3; i++) expect(await outcome(header(301))).toBe('accepted')
    expect(lookups).toHaveLength(4)
  })

  // The longest header that Bun accepts has 16 KB. In quadratic time one of them would take hundreds of milliseconds.
  test.each<[string, string]>([
    ['spaces', `Bearer x${' '.repeat(16_000)}y`],
    ['spaces at the end', `Bearer${' '.repeat(16_000)}`],
    ['quotes', '"'.repeat(16_000)],
    ['quotes and backslashes', '"\\'.repeat(8_000)],
    ['spaces after a preference', `handling=a${' '.repeat(16_000)}b`],
    ['commas', ','.repeat(16_000)],
  ])('or another header of many %s is read in linear time', async (_what, header) => {
    for (const read of [outcome, prefersStrict, idempotencyKey.read]) {
      let fastestMs = Number.POSITIVE_INFINITY
      for (let i = 0; i < 5; i++) {
        const startedMs = performance.now()
        await read(header)
        fastestMs = Math.min(fastestMs, performance.now() - startedMs)
      }
      expect(fastestMs).toBeLessThan(30)
    }
  })
})

describe('a permission', () => {
  test.each<[Caller['permission'], string, string, string]>([
    ['all', 'accepted', 'accepted', 'accepted'],
    ['read-write', 'accepted', 'accepted', 'insufficient_permission'],
    ['read-only', 'accepted', 'read_only_key', 'insufficient_permission'],
    ['metrics', 'insufficient_permission', 'insufficient_permission', 'accepted'],
    ['none', 'insufficient_permission', 'insufficient_permission', 'insufficient_permission'],
  ])('%s: a read is %s, a write is %s, the metrics are %s', (permission, ...codes) => {
    const codeFor = (access: Access) => codeOf(permissionRefusal({ permission, scope: '' }, access))
    expect([codeFor('read'), codeFor('write'), codeFor('metrics')]).toEqual(codes)
  })

  test.each<[Access, string]>([
    ['write', 'use a read-only or read-write key'],
    ['metrics', 'use a metrics key'],
  ])('that is missing for %s is named: %s', (access, advice) => {
    const refusal = permissionRefusal({ permission: 'none', scope: '' }, access)
    expect(refusal?.headers.get('www-authenticate')).toMatch(new RegExp(`"insufficient_scope", .*${advice}"$`))
  })
})

describe('the usage of keys', () => {
  let usage: KeyUsage
  beforeEach(() => {
    usage = new KeyUsage(keys)
  })
  const callerOf = ({ hash: scope, keyName = 'till' }: { hash: string; keyName?: string }) =>
    ({ keyName, permission: 'read-write', scope }) as const
  /** One request of a deprecated operation. */
  const use = (key: { id: bigint; hash: string }) => {
    usage.recordUse(callerOf(key), key.id)
    usage.recordDeprecatedCall(callerOf(key))
  }
  const stored = async ({ hash }: { hash: string }) => (await stores.keys.find(hash)) as ApiKey

  test('is stored at the next flush', async () => {
    const [first, second, unused] = [await newKey(), await newKey(), await newKey()]
    const usedAt = new Date('2026-06-01T12:00:00Z')
    setSystemTime(usedAt)
    usage.recordUse(callerOf(first), first.id)
    for (let i = 0; i < 1_000; i++) use(second)
    expect((await stored(first)).lastUsedAt).toBeUndefined()
    await usage.flush()
    expect(writes).toEqual([
      [
        { id: first.id, lastUsedAt: usedAt, deprecatedUses: 0 },
        { id: second.id, lastUsedAt: usedAt, deprecatedUses: 1_000, deprecatedLastUsedAt: usedAt },
      ],
    ])
    expect(await stored(second)).toMatchObject({ deprecatedUses: 1_000n, deprecatedLastUsedAt: usedAt })
    expect(await stored(unused)).toMatchObject({ deprecatedUses: 0n })
  })

  test('is stored once', async () => {
    const key = await newKey()
    await usage.flush()
    expect(writes).toHaveLength(0)
    setSystemTime(new Date('2026-06-01T12:00:00Z'))
    use(key)
    await Promise.all([usage.flush(), usage.flush(), usage.flush()])
    expect(writes).toHaveLength(1)
    use(key)
    await usage.flush()
    setSystemTime(new Date('2026-06-01T12:00:01Z'))
    usage.recordUse(callerOf(key), key.id)
    await usage.flush()
    expect(writes).toHaveLength(3)
    expect(await stored(key)).toMatchObject({ deprecatedUses: 2n, lastUsedAt: new Date() })
  })

  test('during a flush is stored by the next one', async () => {
    const key = await newKey()
    use(key)
    const flushing = usage.flush()
    await Bun.sleep(0)
    expect(writes).toHaveLength(1)
    use(key)
    await flushing
    expect((await stored(key)).deprecatedUses).toBe(1n)
    await usage.flush()
    expect((await stored(key)).deprecatedUses).toBe(2n)
  })

  test.each<[string, () => Promise<void>]>([
    [
      'throws',
      () => {
        throw new StoreUnavailable('The disk is full')
      },
    ],
    ['rejects', () => Promise.reject(new StoreUnavailable('The connection is lost'))],
  ])('is not lost if the store %s', async (_how, fail) => {
    const key = await newKey()
    let failing = true
    usage = new KeyUsage({ ...keys, recordUses: uses => (failing ? fail() : stores.keys.recordUses(uses)) })
    for (let i = 0; i < 2; i++) {
      use(key)
      await expect(usage.flush()).rejects.toBeInstanceOf(StoreUnavailable)
    }
    expect((await stored(key)).deprecatedUses).toBe(0n)
    failing = false
    await usage.flush()
    expect((await stored(key)).deprecatedUses).toBe(2n)
  })

  test('of an unknown key does no harm to the others', async () => {
    const key = await newKey()
    use({ id: key.id + 1_000n, hash: 'unknown' })
    use(key)
    usage.recordDeprecatedCall(callerOf({ hash: 'never recorded' }))
    await usage.flush()
    expect((await stored(key)).deprecatedUses).toBe(1n)
  })

  test('counts deprecated calls by key for the metrics, also of the key from the environment', async () => {
    const key = await newKey()
    const environment = callerOf({ hash: 'of the environment', keyName: 'PETSTORE_API_KEY' })
    const usedAt = new Date('2026-06-01T12:00:00Z')
    setSystemTime(usedAt)
    usage.recordUse(callerOf(key), key.id)
    usage.recordUse(environment, undefined)
    usage.recordDeprecatedCall(environment)
    expect(usage.deprecatedCallers()).toMatchObject([
      { keyName: 'PETSTORE_API_KEY', deprecatedCalls: 1, deprecatedLastUsedAtMs: usedAt.getTime() },
    ])
    await usage.flush()
    expect(writes.flat().map(({ id }) => id)).toStrictEqual([key.id])
  })

  test('includes the requests of a remembered key', async () => {
    const { key, id } = await newKey()
    const authenticator = new Authenticator({ keys, usage, verifiedForMs: 60_000 })
    await authenticator.authenticate(contextOf(`Bearer ${key}`))
    const usedAt = new Date(Date.now() + 60_000)
    setSystemTime(usedAt)
    await authenticator.authenticate(contextOf(`Bearer ${key}`))
    await usage.flush()
    expect(writes).toEqual([[{ id, lastUsedAt: usedAt, deprecatedUses: 0 }]])
  })
})
