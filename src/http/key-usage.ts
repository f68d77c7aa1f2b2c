import type { KeyStore, KeyUse } from '../store.ts'
import type { Caller } from './request.ts'

/** The uses of one key since the start, and how many of them the store has. */
export interface Usage {
  /** Absent for the key from the environment, which is not in the store. */
  readonly keyId?: bigint | undefined
  readonly keyName: string
  lastUsedAtMs: number
  deprecatedCalls: number
  deprecatedLastUsedAtMs: number
  deprecatedOperation?: string
  storedAtMs: number
  storedDeprecatedCalls: number
}

/** Counts the uses of each key in memory, so that a request costs no write. `flush` stores them. */
export class KeyUsage {
  readonly #keys: KeyStore
  /** By the key's hash. */
  readonly #usages = new Map<string, Usage>()
  #flushing = Promise.resolve()

  constructor(keys: KeyStore) {
    this.#keys = keys
  }

  recordUse({ scope, keyName }: Caller, keyId: bigint | undefined): Usage {
    let usage = this.#usages.get(scope)
    if (!usage) {
      const counts = { deprecatedCalls: 0, deprecatedLastUsedAtMs: 0, storedAtMs: 0, storedDeprecatedCalls: 0 }
      usage = { keyId, keyName, lastUsedAtMs: 0, ...counts }
      this.#usages.set(scope, usage)
    }
    usage.lastUsedAtMs = Date.now()
    return usage
  }

  /** Counts a call of a deprecated operation, by a key whose use was recorded. */
  recordDeprecatedCall({ scope }: Caller, operation: string): void {
    const usage = this.#usages.get(scope)
    if (!usage) return
    usage.deprecatedCalls++
    usage.deprecatedOperation = operation
    usage.deprecatedLastUsedAtMs = usage.lastUsedAtMs
  }

  deprecatedCallers(): readonly Readonly<Usage>[] {
    return [...this.#usages.values()].filter(({ deprecatedCalls }) => deprecatedCalls > 0)
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
      usage.storedAtMs = use.lastUsedAt.getTime()
      usage.storedDeprecatedCalls += use.deprecatedUses
    }
  }
}

function isStored(usage: Usage): boolean {
  return usage.storedAtMs === usage.lastUsedAtMs && usage.storedDeprecatedCalls === usage.deprecatedCalls
}

function keyUseOf(id: bigint, usage: Usage): KeyUse {
  const deprecatedUses = usage.deprecatedCalls - usage.storedDeprecatedCalls
  const use = { id, lastUsedAt: new Date(usage.lastUsedAtMs), deprecatedUses }
  return deprecatedUses === 0 ? use : { ...use, deprecatedLastUsedAt: new Date(usage.deprecatedLastUsedAtMs) }
}
