import type { PetStore } from '../store.ts'
import type { Reply } from './response.ts'

const queryCharsMax = 200
/** An entry's objects, besides its text. */
const entryBytes = 512

/** Encoded pages by query string, until the store changes. Encoding a page costs as much as the rest of a request. */
export class PageCache {
  readonly #pets: PetStore
  readonly #bytesMax: number
  /** When full, keep entries at least this long; otherwise one full walk evicts everything. */
  readonly #fullMs: number
  readonly #pages = new Map<string, Reply>()
  #version: unknown
  #bytes = 0
  #clearedMs = 0

  constructor(pets: PetStore, bytesMax: number, fullMs = 60_000) {
    this.#pets = pets
    this.#bytesMax = bytesMax
    this.#fullMs = fullMs
  }

  /** The store's version for a later `set`: ask before reading the store. Undefined if pages cannot be cached. */
  version(): unknown {
    const version = this.#pets.version?.()
    if (version !== this.#version) this.#clear()
    this.#version = version
    return version
  }

  /** The page as of the last `version` call. */
  get(query: string): Reply | undefined {
    return this.#pages.get(query)
  }

  set(query: string, page: Reply, version: unknown): void {
    if (version === undefined || version !== this.#version) return
    if (typeof page.body !== 'string' || query.length > queryCharsMax) return
    const bytes = entryBytes + 2 * (page.body.length + query.length)
    if (this.#bytes + bytes > this.#bytesMax) {
      if (performance.now() - this.#clearedMs < this.#fullMs) return
      this.#clear()
    }
    this.#bytes += bytes
    this.#pages.set(query, page)
  }

  #clear(): void {
    this.#pages.clear()
    this.#bytes = 0
    this.#clearedMs = performance.now()
  }
}
