import { afterEach, beforeEach, expect, setSystemTime, test } from 'bun:test'
import { StoreUnavailable } from '../errors.ts'
import type { KeyStore, KeyUse } from '../store-contract.ts'
import { UsageRecorder } from './key-usage.ts'

const usedAt = new Date('2026-06-01T12:00:00Z')
const [till, screen] = [1n, 2n]
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

const useDeprecated = () => {
  usage.recordUse(till).deprecatedUses++
}
const deprecatedUses = () => stored.flat().map(({ deprecatedUses }) => deprecatedUses)

test('the uses of keys are stored once, at the next flush', async () => {
  usage.recordUse(screen)
  for (let i = 0; i < 3; i++) useDeprecated()
  expect(stored).toEqual([])
  await Promise.all([usage.flush(), usage.flush(), usage.flush()])
  const later = new Date('2026-06-01T12:00:01Z')
  setSystemTime(later)
  usage.recordUse(till)
  for (let i = 0; i < 2; i++) await usage.flush()
  const ofScreen = { id: screen, lastUsedAt: usedAt, deprecatedUses: 0 }
  const ofTill = { id: till, lastUsedAt: usedAt, deprecatedUses: 3 }
  expect(stored).toEqual([[ofScreen, ofTill], [{ id: till, lastUsedAt: later, deprecatedUses: 0 }]])
})

test('a use during a flush is stored by the next one', async () => {
  const [storing, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  answer = () => {
    storing.resolve()
    return stopped.promise
  }
  useDeprecated()
  const flushing = usage.flush()
  await storing.promise
  useDeprecated()
  stopped.resolve()
  await flushing
  await usage.flush()
  expect(deprecatedUses()).toEqual([1, 1])
})

test('a use is not lost if the store fails', async () => {
  answer = () => Promise.reject(new StoreUnavailable('The disk is full'))
  useDeprecated()
  await expect(usage.flush()).rejects.toBeInstanceOf(StoreUnavailable)
  answer = async () => {}
  await usage.flush()
  expect(deprecatedUses()).toEqual([1])
})
