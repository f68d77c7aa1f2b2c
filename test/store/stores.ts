import type { NewPet } from '../../src/pet.ts'
import type { ImportedPet, Stores } from '../../src/store-contract.ts'

export const rex: NewPet = { name: 'Rex', categoryId: 1n }

/** What it rejects with or throws. */
export const failureOf = async (work: () => unknown): Promise<unknown> =>
  (async () => work())().then(
    () => 'no failure',
    error => error,
  )

export async function* batches(...all: (readonly ImportedPet[])[]) {
  yield* all
}

/** Closes the stores at the end of a test: `await using stores = closing(await openStores(…))`. */
export const closing = (stores: Stores) => ({ ...stores, [Symbol.asyncDispose]: async () => stores.close() })
