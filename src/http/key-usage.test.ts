import { afterAll, afterEach, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/process.ts'
import { issueApiKey } from '../api-key.ts'
import { StoreUnavailable } from '../errors.ts'
import { openStores } from '../store/open.ts'
import type { KeyStore, KeyUse } from '../store-contract.ts'
import { UsageRecorder } from './key-usage.ts'

const folder = temporaryFolder()
const stores = await openStores(`sqlite:${join(folder.path, 'pets.db')}`, { create: true })
afterAll(async () => {
  await stores.close()
  folder[Symbol.dispose]()
})
afterEach(() => void setSystemTime())

let writes: (readonly KeyUse[])[]
/** The store's keys, with a record of the writes. */
const keys: KeyStore = {
  ...stores.keys,
  recordUses(uses) {
    writes.push(uses)
    return stores.keys.recordUses(uses)
  },
}

async function newKey() {
  const { record } = issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date() })
  return stores.keys.create(record)
}

describe('the usage of keys', () => {
  const usedAt = new Date('2026-06-01T12:00:00Z')
  let usage: UsageRecorder
  let till: Awaited<ReturnType<typeof newKey>>
  beforeEach(async () => {
    writes = []
    usage = new UsageRecorder(keys)
    till = await newKey()
    setSystemTime(usedAt)
  })
  const callerOf = (keyHash: string) => ({ keyName: 'till', permission: 'read-write', keyHash }) as const
  /** One request of a deprecated operation. */
  const use = () => {
    usage.recordUse(callerOf(till.hash), till.id)
    usage.recordDeprecatedCall(callerOf(till.hash), 'getPet')
  }
  const deprecatedUses = async () => (await stores.keys.find(till.hash))?.deprecatedUses

  test('is stored once, at the next flush, except for the key from the environment', async () => {
    const other = await newKey()
    usage.recordUse(callerOf(other.hash), other.id)
    usage.recordUse(callerOf('of the environment'), undefined)
    for (let i = 0; i < 1_000; i++) use()
    expect(writes).toEqual([])
    await Promise.all([usage.flush(), usage.flush(), usage.flush()])
    const later = new Date(usedAt.getTime() + 1_000)
    setSystemTime(later)
    usage.recordUse(callerOf(till.hash), till.id)
    await usage.flush()
    await usage.flush()
    expect(writes).toEqual([
      [
        { id: other.id, lastUsedAt: usedAt, deprecatedUses: 0 },
        { id: till.id, lastUsedAt: usedAt, deprecatedUses: 1_000, deprecatedLastUsedAt: usedAt },
      ],
      [{ id: till.id, lastUsedAt: later, deprecatedUses: 0 }],
    ])
    expect(await deprecatedUses()).toBe(1_000n)
  })

  test('during a flush is stored by the next one', async () => {
    use()
    const flushing = usage.flush()
    await Bun.sleep(0)
    expect(writes).toHaveLength(1)
    use()
    await flushing
    expect(await deprecatedUses()).toBe(1n)
    await usage.flush()
    expect(await deprecatedUses()).toBe(2n)
  })

  test('is not lost if the store fails', async () => {
    let failing = true
    const recordUses = (uses: readonly KeyUse[]) =>
      failing ? Promise.reject(new StoreUnavailable('The disk is full')) : stores.keys.recordUses(uses)
    usage = new UsageRecorder({ ...keys, recordUses })
    for (let i = 0; i < 2; i++) {
      use()
      await expect(usage.flush()).rejects.toBeInstanceOf(StoreUnavailable)
    }
    failing = false
    await usage.flush()
    expect(await deprecatedUses()).toBe(2n)
  })
})
