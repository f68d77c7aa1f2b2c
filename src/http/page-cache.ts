import type { PetStore } from '../store.ts'
import type { Reply } from './response.ts'

/** An entry's objects, besides its text. */
const entryBytes = 512

/** Encoded pages until the store changes. Reading and encoding a page costs more than the rest of a request. */
export class PageCache {
  readonly #pets: PetStore
  /** For each of the two maps. */
  readonly #halfBytesMax: number
  /** By the text of the query: another spelling of a page is another entry. */
  #recent = new Map<string, Reply>()
  /** The previous `#recent`. Dropped as a whole: deleting single pages costs more. */
  #older = new Map<string, Reply>()
  #recentBytes = 0
  #version: bigint | undefined

  constructor(pets: PetStore, bytesMax = 16 * 1024 ** 2) {
    this.#pets = pets
    this.#halfBytesMax = bytesMax / 2
  }

  /** The store's version for a later `set`: ask before reading the store. Undefined if pages cannot be cached. */
  version(): bigint | undefined {
    const version = this.#pets.version()
    if (version !== this.#version) {
      this.#startRecent()
      this.#older = new Map()
    }
    this.#version = version
    return version
  }

  /** The page as of the last `version` call. */
  get(query: string): Reply | undefined {
    return this.#recent.get(query) ?? this.#older.get(query)
  }

  /** Drops the older half if there is no room. */
  set(query: string, page: Reply, version: bigint | undefined): void {
    const bytes = entryBytes + 2 * (query.length + (page.body?.length ?? 0))
    if (version === undefined || version !== this.#version || bytes > this.#halfBytesMax || this.get(query)) return
    if (this.#recentBytes + bytes > this.#halfBytesMax) this.#startRecent()
    this.#recentBytes += bytes
    // A copy: the query is a part of the URL, and would keep all of it in memory.
    this.#recent.set(Buffer.from(query).toString(), page)
  }

  #startRecent(): void {
    this.#older = this.#recent
    this.#recent = new Map()
    this.#recentBytes = 0
  }
}
