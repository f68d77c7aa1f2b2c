import { afterEach, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { StoreUnavailable } from '../errors.ts'
import type { KeyStore, KeyUse } from '../store-contract.ts'
import { UsageRecorder } from './key-usage.ts'

describe('the usage of keys', () => {
  const usedAt = new Date('2026-06-01T12:00:00Z')
  /** What was stored, and how the store answers. */
  let stored: (readonly KeyUse[])[]
  let answer: () => Promise<void>
  let usage: UsageRecorder
  beforeEach(() => {
    stored = []
    answer = async () => {}
    const recordUses: KeyStore['recordUses'] = async uses => {
      await answer()
      stored.push(uses)
    }
    usage = new UsageRecorder({ recordUses } as KeyStore)
    setSystemTime(usedAt)
  })
  afterEach(() => void setSystemTime())

  const [till, screen] = [1n, 2n]
  /** Requests of a deprecated operation. */
  const useDeprecated = (requests: number) => {
    usage.recordUse(till).deprecatedUses += requests
  }
  const countDeprecated = () => stored.flat().reduce((sum, { deprecatedUses }) => sum + deprecatedUses, 0)

  test('is stored once, at the next flush', async () => {
    usage.recordUse(screen)
    useDeprecated(1_000)
    expect(stored).toEqual([])
    await Promise.all([usage.flush(), usage.flush(), usage.flush()])
    const later = new Date('2026-06-01T12:00:01Z')
    setSystemTime(later)
    usage.recordUse(till)
    await usage.flush()
    await usage.flush()
    expect(stored).toEqual([
      [
        { id: screen, lastUsedAt: usedAt, deprecatedUses: 0 },
        { id: till, lastUsedAt: usedAt, deprecatedUses: 1_000 },
      ],
      [{ id: till, lastUsedAt: later, deprecatedUses: 0 }],
    ])
  })

  test('during a flush is stored by the next one', async () => {
    const storing = Promise.withResolvers<void>()
    answer = () => storing.promise
    useDeprecated(1)
    const flushing = usage.flush()
    await Bun.sleep(0)
    useDeprecated(1)
    storing.resolve()
    await flushing
    expect(countDeprecated()).toBe(1)
    await usage.flush()
    expect(countDeprecated()).toBe(2)
  })

  test('is not lost if the store fails', async () => {
    answer = () => Promise.reject(new StoreUnavailable('The disk is full'))
    for (let i = 0; i < 2; i++) {
      useDeprecated(1)
      await expect(usage.flush()).rejects.toBeInstanceOf(StoreUnavailable)
    }
    answer = async () => {}
    await usage.flush()
    expect(countDeprecated()).toBe(2)
  })
})
