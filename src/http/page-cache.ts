import type { PetStore } from '../store.ts'
import type { Reply } from './response.ts'

const bytesMaxDefault = 16 * 1024 ** 2
/** An entry's objects, besides its text. */
const entryBytes = 512

/** Encoded pages until the store changes. Encoding a page costs as much as the rest of a request. */
export class PageCache {
  readonly #pets: PetStore
  readonly #bytesMax: number
  /** By canonical query, oldest first. Other spellings are looked up after they are parsed. */
  readonly #pages = new Map<string, Reply>()
  #version: unknown
  #bytes = 0

  constructor(pets: PetStore, bytesMax = bytesMaxDefault) {
    this.#pets = pets
    this.#bytesMax = bytesMax
  }

  /** The store's version for a later `set`: ask before reading the store. Undefined if pages cannot be cached. */
  version(): unknown {
    const version = this.#pets.version?.()
    if (version !== this.#version) {
      this.#pages.clear()
      this.#bytes = 0
    }
    this.#version = version
    return version
  }

  /** The page as of the last `version` call. */
  get(query: string): Reply | undefined {
    return this.#pages.get(query)
  }

  /** Evicts the oldest pages if there is no room. */
  set(query: string, page: Reply, version: unknown): void {
    const bytes = bytesOf(query, page)
    if (version === undefined || version !== this.#version || bytes > this.#bytesMax || this.#pages.has(query)) return
    for (const [oldest, evicted] of this.#pages) {
      if (this.#bytes + bytes <= this.#bytesMax) break
      this.#pages.delete(oldest)
      this.#bytes -= bytesOf(oldest, evicted)
    }
    this.#bytes += bytes
    this.#pages.set(query, page)
  }
}

function bytesOf(query: string, { body }: Reply): number {
  return entryBytes + 2 * (query.length + (body?.length ?? 0))
}
