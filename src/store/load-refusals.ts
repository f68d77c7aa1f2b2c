import { SetupError } from '../errors.ts'
import { int64Max } from '../int64.ts'
import { keptIdProblem } from '../store.ts'

// Why animals are not loaded: in the same words, whatever database is behind it.

export function holdsAnimals(place: string): SetupError {
  return new SetupError(
    `Cannot keep the ids: the store ${place} holds animals already; let them have new ids, or name an empty store in DATABASE_URL`,
  )
}

export function lacksIds(place: string, count: number, last: bigint): SetupError {
  return new SetupError(
    `Cannot give ${count} new ids: the store ${place} has given id ${last} already, and ${int64Max} is the last; export it into an empty store, where ids begin at 1`,
  )
}

/** The id, where it can be kept after the one before it. */
export function keptId(id: bigint | undefined, before: bigint): bigint {
  const problem = keptIdProblem(id, before)
  if (problem !== undefined || id === undefined) throw new SetupError(`Cannot load the animals: ${problem}`)
  return id
}
