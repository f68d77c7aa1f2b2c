import { type Awaitable, whenReady } from '../awaitable.ts'
import type { PetStore } from '../pet.ts'
import type { Answer } from './answer.ts'
import type { Metrics } from './metrics.ts'

/** Encoding a page costs as much as the rest of its request; at the same version of the store it is still true. */
export interface PageCache {
  /** The answer that the same query got at this version, else the one that `read` gives. */
  answer(query: string, read: () => Awaitable<Answer>): Awaitable<Answer>
}

const bytesMax = 16 * 1024 ** 2
const queryCharsMax = 200

export function createPageCache(pets: PetStore, metrics: Metrics): PageCache {
  const pages = new Map<string, Answer>()
  let version: unknown
  let bytes = 0

  function forgetAll(): void {
    pages.clear()
    bytes = 0
  }

  function keep(query: string, answer: Answer): Answer {
    if (answer.status !== 200 || typeof answer.body !== 'string' || query.length > queryCharsMax)
      return answer
    bytes += 2 * (answer.body.length + query.length)
    if (bytes > bytesMax) forgetAll()
    else pages.set(query, answer)
    return answer
  }

  return {
    answer(query, read) {
      const current = pets.version?.()
      if (current === undefined) return read()
      if (current !== version) {
        forgetAll()
        version = current
      }
      const kept = pages.get(query)
      metrics.pageServed(kept !== undefined)
      // The version was asked before the page is read: a page that is newer than it is only read once too often.
      return kept ?? whenReady(read(), answer => keep(query, answer))
    },
  }
}
