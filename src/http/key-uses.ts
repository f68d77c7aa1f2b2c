import type { KeyStore, KeyUse } from '../store.ts'

/** Counts what is done with each key, so that a request costs no write; what was counted is written now and then. */
export interface KeyUses {
  record(keyId: bigint, deprecated: boolean): void
  /** Writes down what was counted since the last time. Where that fails, nothing is forgotten. */
  flush(): Promise<void>
}

interface Count {
  lastUsedAtMs: number
  deprecatedUses: number
  deprecatedLastUsedAtMs: number
}

export function createKeyUses(keys: KeyStore): KeyUses {
  const counts = new Map<bigint, Count>()
  let flushing = Promise.resolve()

  async function write(): Promise<void> {
    const taken = [...counts].map(([id, count]) => [id, { ...count }] as const)
    if (taken.length === 0) return
    await keys.recordUses(taken.map(([id, count]) => keyUseOf(id, count)))
    forget(taken)
  }

  function forget(written: readonly (readonly [bigint, Count])[]): void {
    for (const [id, { lastUsedAtMs, deprecatedUses }] of written) {
      const count = counts.get(id)
      if (!count) continue
      count.deprecatedUses -= deprecatedUses
      if (count.deprecatedUses === 0 && count.lastUsedAtMs === lastUsedAtMs) counts.delete(id)
    }
  }

  return {
    record(keyId, deprecated) {
      let count = counts.get(keyId)
      if (!count) {
        count = { lastUsedAtMs: 0, deprecatedUses: 0, deprecatedLastUsedAtMs: 0 }
        counts.set(keyId, count)
      }
      count.lastUsedAtMs = Date.now()
      if (!deprecated) return
      count.deprecatedUses++
      count.deprecatedLastUsedAtMs = count.lastUsedAtMs
    },
    flush() {
      // One after another: what one flush is writing must not be taken by the next as well.
      flushing = flushing.catch(() => {}).then(write)
      return flushing
    },
  }
}

function keyUseOf(id: bigint, { lastUsedAtMs, deprecatedUses, deprecatedLastUsedAtMs }: Count): KeyUse {
  const use = { id, lastUsedAt: new Date(lastUsedAtMs), deprecatedUses }
  return deprecatedUses === 0 ? use : { ...use, deprecatedLastUsedAt: new Date(deprecatedLastUsedAtMs) }
}
