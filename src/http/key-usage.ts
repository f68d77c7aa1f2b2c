import type { KeyStore } from '../store-contract.ts'

/** The uses of a stored key in this process. */
export interface KeyUsage {
  lastUsedAtMs: number
  /** The last use that the store has. */
  storedAtMs: number
  /** Calls of deprecated operations that the store does not have yet. */
  deprecatedUses: number
}

/** Counts the uses of each key in memory, so that a request costs no write. `flush` stores them. */
export class UsageRecorder {
  readonly #keys: KeyStore
  readonly #usages = new Map<bigint, KeyUsage>()
  #flushing = Promise.resolve()

  constructor(keys: KeyStore) {
    this.#keys = keys
  }

  recordUse(keyId: bigint): KeyUsage {
    const usage = this.#usages.get(keyId) ?? { lastUsedAtMs: 0, storedAtMs: 0, deprecatedUses: 0 }
    usage.lastUsedAtMs = Date.now()
    this.#usages.set(keyId, usage)
    return usage
  }

  /** Stores the uses since the last flush. If that fails, the next flush stores them. */
  flush(): Promise<void> {
    // One at a time: two flushes at once would store the same calls twice.
    this.#flushing = this.#flushing.catch(() => {}).then(() => this.#store())
    return this.#flushing
  }

  async #store(): Promise<void> {
    const pending = [...this.#usages].flatMap(([id, usage]) => {
      const { lastUsedAtMs, storedAtMs, deprecatedUses } = usage
      if (lastUsedAtMs === storedAtMs && deprecatedUses === 0) return []
      return { usage, use: { id, lastUsedAt: new Date(lastUsedAtMs), deprecatedUses } }
    })
    if (pending.length === 0) return
    await this.#keys.recordUses(pending.map(({ use }) => use))
    for (const { usage, use } of pending) {
      usage.storedAtMs = use.lastUsedAt.getTime()
      usage.deprecatedUses -= use.deprecatedUses
    }
  }
}
