import { cannotRead } from './field.ts'
import { int64Max } from './int64.ts'
import type { NewPet, Pet } from './pet.ts'

/** An animal on its way into a store; its id matters only where ids are kept. */
export interface TransferredPet extends NewPet {
  readonly id?: bigint
}

/** `keep` the ids given, in a store that holds no animal; or give `new` ones, higher than all before, in order. */
export type TransferredIds = 'keep' | 'new'

/** Moves a whole catalogue out of a store and into one, in batches, so that memory stays bounded. */
export interface Transfer {
  /** About how many animals there are, for a progress bar: may be off, and is undefined where that is dear to tell. */
  estimate(): Promise<number | undefined>
  /** Every animal as it was at one moment, ascending by id, while others go on reading and writing. */
  read(): AsyncIterable<readonly Pet[]>
  /**
   * Adds all of them or none, and answers how many. What cannot be loaded is a SetupError: an animal in a store where ids
   * are to be kept, or ids that {@link keptIdProblem} objects to. Where the batches end with an error, nothing has changed and that
   * error is thrown on; where the store is lost in the moment of the commit, it is an OutcomeUnknown. `interrupted` may end it at any step before the last; its reason is thrown, and nothing has changed.
   */
  load(
    batches: AsyncIterable<readonly TransferredPet[]>,
    ids: TransferredIds,
    interrupted?: AbortSignal,
  ): Promise<bigint>
}

/** A load whose end nobody has heard: all of its animals are in, or none. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'
}

/** Animals in a batch, at most: names of 1,000 characters make it 5 MB of text or, in some scripts, 20. */
export const batchPetsMax = 5_000

/** Ids are given upwards from the highest: so many are left for later animals. */
const keptIdMax = int64Max - 1_000_000_000n

const keptIdForm = `a whole number from 1 to ${keptIdMax}`

/** What is wrong with an id that is to be kept, after the one before it (0 where it is the first). */
export function keptIdProblem(id: bigint | undefined, before: bigint): string | undefined {
  if (id === undefined) return `id is missing: expected ${keptIdForm}, since ids are kept`
  if (id < 1n || id > keptIdMax)
    return cannotRead('id', id, `${keptIdForm}, so that ids are left for later animals`)
  if (id <= before) return `Cannot keep id ${id} after id ${before}: expected ids that rise`
  return undefined
}
