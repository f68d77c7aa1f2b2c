import type { Stores } from '../store-contract.ts'
import { withTimeout } from '../timeout.ts'
import { plainText, type Reply } from './response.ts'

/** A store that does not answer within this time is down. */
const checkMs = 2_000
/** The result of a check is used again for this time. */
const checkedForMs = 500

/** Checks whether the store can be read, once for all who ask at the same time: anyone may ask, without a key. */
export class Health {
  readonly #stores: Pick<Stores, 'pets' | 'keys' | 'activity'>
  #checking: Promise<boolean> | undefined
  #checkedMs = Number.NEGATIVE_INFINITY
  #isUp = false
  #hasBeenUp = false
  isDraining = false

  constructor(stores: Pick<Stores, 'pets' | 'keys' | 'activity'>) {
    this.#stores = stores
  }

  /** Whether animals and keys can be read, now or a moment ago. */
  async isStoreUp(): Promise<boolean> {
    if (performance.now() - this.#checkedMs < checkedForMs) return this.#isUp
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  /** For people and alerts: whether everything works, the store included. */
  async healthz(): Promise<Reply> {
    if (this.isDraining) return plainText(503, 'draining')
    return plainText((await this.isStoreUp()) ? 200 : 503, this.#storeState)
  }

  /**
   * For load balancers. A store that is down changes nothing, because all instances share it. Only an instance that has
   * never read the store waits for it, and is refused: it must not replace others.
   */
  async readyz(): Promise<Reply> {
    if (this.isDraining) return plainText(503, 'draining')
    const checking = this.isStoreUp()
    if (!this.#hasBeenUp && !(await checking)) return plainText(503, 'starting')
    return plainText(200, this.#storeState)
  }

  /** As of the last check. */
  get #storeState(): string {
    if (!this.#isUp) return 'store'
    return this.#stores.activity().isWritable ? 'ok' : 'read-only'
  }

  async #check(): Promise<boolean> {
    const { pets, keys } = this.#stores
    // Both: animals and keys may come from different servers.
    const reads = Promise.try(() => Promise.all([pets.list({ limit: 1 }), keys.find('')])).then(() => true)
    this.#isUp = await withTimeout(reads, checkMs, () => false).catch(() => false)
    this.#hasBeenUp ||= this.#isUp
    this.#checkedMs = performance.now()
    return this.#isUp
  }
}
