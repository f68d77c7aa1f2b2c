import { whenReady } from '../awaitable.ts'
import type { Awaitable, PetStore } from '../store.ts'
import type { Answer } from './answer.ts'

/** Reading and encoding cost as much as the rest of a request; at the same version of the store the answer is still true. */
export interface AnswerCache {
  /** The answer that was given to the same question at this version, else the one that `read` gives. */
  answer(question: string, read: () => Awaitable<Answer>): Awaitable<Answer>
}

export interface AnswerCacheParts {
  readonly pets: PetStore
  readonly bytesMax: number
  /** So long at least it stays as it is when it is full; a reader of everything would else make it forget all the time. */
  readonly fullMs?: number
  /** Told of each answer whether it was kept. */
  served?(fromCache: boolean): void
}

const questionCharsMax = 200
/** What an answer takes besides its text: the objects around it. */
const answerBytes = 512

export function createAnswerCache(parts: AnswerCacheParts): AnswerCache {
  const { pets, bytesMax, fullMs = 60_000, served } = parts
  const answers = new Map<string, Answer>()
  let version: unknown
  let bytes = 0
  let sinceMs = 0

  function forgetAll(): void {
    answers.clear()
    bytes = 0
    sinceMs = performance.now()
  }

  function keep(question: string, answer: Answer): Answer {
    if (answer.status !== 200 || typeof answer.body !== 'string' || question.length > questionCharsMax)
      return answer
    const size = answerBytes + 2 * (answer.body.length + question.length)
    if (bytes + size > bytesMax) {
      if (performance.now() - sinceMs < fullMs) return answer
      forgetAll()
    }
    bytes += size
    answers.set(question, answer)
    return answer
  }

  return {
    answer(question, read) {
      const current = pets.version?.()
      if (current === undefined) return read()
      if (current !== version) {
        forgetAll()
        version = current
      }
      const kept = answers.get(question)
      served?.(kept !== undefined)
      // The version was asked before the store is read: an answer that is newer than it is only read once too often.
      return kept ?? whenReady(read(), answer => (current === version ? keep(question, answer) : answer))
    },
  }
}
