import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { type ApiKey, issueApiKey } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import { openStores } from '../store/open.ts'
import type { KeyStore, KeyUse, Stores } from '../store.ts'
import { createKeyUses } from './key-uses.ts'

let folder: ReturnType<typeof temporaryFolder>
let stores: Stores
let keys: KeyStore
/** What was written to the store, in the order in which it was. */
let written: (readonly KeyUse[])[]

beforeEach(async () => {
  folder = temporaryFolder()
  stores = await openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true })
  written = []
  keys = {
    ...stores.keys,
    recordUses(uses) {
      written.push(uses)
      return stores.keys.recordUses(uses)
    },
  }
})

afterEach(async () => {
  await stores.close()
  folder[Symbol.dispose]()
})

function newKey(): Promise<ApiKey> | ApiKey {
  return stores.keys.create(
    issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date() }).record,
  )
}

async function kept({ hash }: ApiKey): Promise<ApiKey> {
  const key = await stores.keys.find(hash)
  if (!key) throw new Error('The store has lost the key')
  return key
}

test('a use shows in the store when it is written, not before', async () => {
  const key = await newKey()
  const uses = createKeyUses(keys)
  const from = Date.now()
  uses.record(key.id, false)
  const to = Date.now()
  expect((await kept(key)).lastUsedAt).toBeUndefined()
  await uses.flush()
  const { lastUsedAt, deprecatedUses, deprecatedLastUsedAt } = await kept(key)
  expect(lastUsedAt?.getTime()).toBeWithin(from, to + 1)
  expect(deprecatedUses).toBe(0n)
  expect(deprecatedLastUsedAt).toBeUndefined()
})

test('calls of deprecated operations are counted, for each key on its own', async () => {
  const [first, second, idle] = [await newKey(), await newKey(), await newKey()]
  const uses = createKeyUses(keys)
  for (let i = 0; i < 3; i++) uses.record(first.id, true)
  uses.record(first.id, false)
  uses.record(second.id, true)
  await uses.flush()
  expect((await kept(first)).deprecatedUses).toBe(3n)
  expect((await kept(first)).deprecatedLastUsedAt).toBeDate()
  expect((await kept(second)).deprecatedUses).toBe(1n)
  expect(await kept(idle)).toEqual(idle)
})

test('many uses of one key are one write', async () => {
  const key = await newKey()
  const uses = createKeyUses(keys)
  for (let i = 0; i < 1_000; i++) uses.record(key.id, true)
  await uses.flush()
  expect(written.map(write => write.map(({ deprecatedUses }) => deprecatedUses))).toEqual([[1_000]])
})

test('what was written is not written again', async () => {
  const key = await newKey()
  const uses = createKeyUses(keys)
  await uses.flush()
  expect(written).toHaveLength(0)
  uses.record(key.id, true)
  await uses.flush()
  await uses.flush()
  expect(written).toHaveLength(1)
  uses.record(key.id, true)
  await uses.flush()
  expect((await kept(key)).deprecatedUses).toBe(2n)
})

test('a use while others are being written is written the next time, once', async () => {
  const key = await newKey()
  const uses = createKeyUses(keys)
  uses.record(key.id, true)
  uses.record(key.id, true)
  const writing = uses.flush()
  await Bun.sleep(0)
  uses.record(key.id, true)
  await writing
  expect((await kept(key)).deprecatedUses).toBe(2n)
  await uses.flush()
  await uses.flush()
  expect((await kept(key)).deprecatedUses).toBe(3n)
})

test.each<[string, () => Promise<void>]>([
  [
    'throws',
    () => {
      throw new StoreUnavailable('The disk is full')
    },
  ],
  ['rejects', () => Promise.reject(new StoreUnavailable('The connection is lost'))],
])('where the store %s, nothing is forgotten', async (_how, fail) => {
  const key = await newKey()
  let failing = true
  const uses = createKeyUses({
    ...keys,
    recordUses: written => (failing ? fail() : stores.keys.recordUses(written)),
  })
  uses.record(key.id, true)
  await expect(uses.flush()).rejects.toBeInstanceOf(StoreUnavailable)
  uses.record(key.id, true)
  await expect(uses.flush()).rejects.toBeInstanceOf(StoreUnavailable)
  expect((await kept(key)).deprecatedUses).toBe(0n)
  failing = false
  await uses.flush()
  expect((await kept(key)).deprecatedUses).toBe(2n)
})

test('a key that the store does not know harms none of the others', async () => {
  const key = await newKey()
  const uses = createKeyUses(keys)
  uses.record(key.id + 1n, true)
  uses.record(key.id, true)
  await uses.flush()
  expect((await kept(key)).deprecatedUses).toBe(1n)
})
