import type { KeyStore, KeyUse } from '../store-contract.ts'
import type { Caller } from './exchange.ts'

/** The uses of one key since the start, and how many of them the store has. */
export interface KeyUsage {
  /** Absent for the key from the environment, which is not in the store. */
  readonly keyId?: bigint | undefined
  readonly keyName: string
  lastUsedAtMs: number
  deprecatedUses: number
  deprecatedLastUsedAtMs: number
  deprecatedOperation?: string
  storedLastUsedAtMs: number
  storedDeprecatedUses: number
}

/** Counts the uses of each key in memory, so that a request costs no write. `flush` stores them. */
export class UsageRecorder {
  readonly #keys: KeyStore
  /** By the key's hash. */
  readonly #usages = new Map<string, KeyUsage>()
  #flushing = Promise.resolve()

  constructor(keys: KeyStore) {
    this.#keys = keys
  }

  recordUse({ keyHash, keyName }: Caller, keyId: bigint | undefined): KeyUsage {
    let usage = this.#usages.get(keyHash)
    if (!usage) {
      const counts = { deprecatedUses: 0, deprecatedLastUsedAtMs: 0, storedLastUsedAtMs: 0, storedDeprecatedUses: 0 }
      usage = { keyId, keyName, lastUsedAtMs: 0, ...counts }
      this.#usages.set(keyHash, usage)
    }
    usage.lastUsedAtMs = Date.now()
    return usage
  }

  /** Counts a call of a deprecated operation, by a key whose use was recorded. */
  recordDeprecatedCall({ keyHash }: Caller, operation: string): void {
    const usage = this.#usages.get(keyHash)
    if (!usage) return
    usage.deprecatedUses++
    usage.deprecatedOperation = operation
    usage.deprecatedLastUsedAtMs = usage.lastUsedAtMs
  }

  deprecatedCallers(): readonly Readonly<KeyUsage>[] {
    return [...this.#usages.values()].filter(({ deprecatedUses }) => deprecatedUses > 0)
  }

  /** Stores the uses since the last flush. If that fails, the next flush stores them. */
  flush(): Promise<void> {
    // One at a time: two flushes at once would store the same calls twice.
    this.#flushing = this.#flushing.catch(() => {}).then(() => this.#store())
    return this.#flushing
  }

  async #store(): Promise<void> {
    const pending = [...this.#usages.values()].flatMap(usage =>
      usage.keyId === undefined || isStored(usage) ? [] : [{ usage, use: keyUseOf(usage.keyId, usage) }],
    )
    if (pending.length === 0) return
    await this.#keys.recordUses(pending.map(({ use }) => use))
    for (const { usage, use } of pending) {
      usage.storedLastUsedAtMs = use.lastUsedAt.getTime()
      usage.storedDeprecatedUses += use.deprecatedUses
    }
  }
}

function isStored(usage: KeyUsage): boolean {
  return usage.storedLastUsedAtMs === usage.lastUsedAtMs && usage.storedDeprecatedUses === usage.deprecatedUses
}

function keyUseOf(id: bigint, usage: KeyUsage): KeyUse {
  const deprecatedUses = usage.deprecatedUses - usage.storedDeprecatedUses
  const use = { id, lastUsedAt: new Date(usage.lastUsedAtMs), deprecatedUses }
  return deprecatedUses === 0 ? use : { ...use, deprecatedLastUsedAt: new Date(usage.deprecatedLastUsedAtMs) }
}
