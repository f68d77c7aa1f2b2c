import type { Awaitable } from '../store.ts'
import type { Answer } from './answer.ts'
import type { Caller } from './authenticate.ts'
import type { Query } from './query.ts'

/** A request that has passed the credential, the route and the method. */
export interface Call {
  readonly request: Request
  readonly caller: Caller
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  /** `Prefer: handling=strict`: what we do not know is an error, not ignored. */
  readonly strict: boolean
}

export type OperationId = 'listPets' | 'createPet' | 'getPet'

/** One operation of the interface. */
export interface Operation {
  readonly id: OperationId
  /** The names of the query parameters that it knows. */
  readonly parameters: readonly string[]
  /** A read-only key may not call it. */
  readonly writes?: true
  /** Calls are counted for each key, so that its removal can be planned. */
  readonly deprecated?: true
  handle(call: Call): Awaitable<Answer>
}
