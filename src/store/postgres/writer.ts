import { IdsExhausted, StoreUnavailable } from '../../errors.ts'
import { Histogram } from '../../histogram.ts'
import type { NewPet, Pet } from '../../pet.ts'
import type { Creation, IdempotencyKey } from '../../store.ts'
import { within } from './connection.ts'
import { isRefused } from './fault.ts'
import { createPets } from './pet-writes.ts'
import { createPetsOnce, type PetWrite } from './pet-writes-once.ts'
import { type Pool, workMsMax } from './pool.ts'

/** Adds animals; what comes while one group is being committed makes up the next. */
export interface PetWriter {
  create(pet: NewPet): Promise<Pet>
  createOnce(pet: NewPet, once: IdempotencyKey): Promise<Creation>
  /** Animals that wait or are being committed now. */
  readonly waiting: number
  /** How many animals went into one commit. */
  readonly commitSizes: Histogram
  /** Commits what is waiting. */
  close(): Promise<void>
}

/** Animals that wait or are being committed, at most. */
export const writesWaitingMax = 1_024

/** Animals in one commit, at most: so that no statement takes long. */
const commitMax = 512

const commitSizeBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

interface Waiting extends PetWrite {
  readonly sinceMs: number
  resolve(creation: Creation): void
  reject(error: unknown): void
}

export function createPetWriter(pool: Pool): PetWriter {
  const commitSizes = new Histogram(commitSizeBounds)
  let queue: Waiting[] = []
  let committing = 0
  let working: Promise<void> | undefined

  function write(pet: NewPet, once?: IdempotencyKey): Promise<Creation> {
    if (queue.length + committing >= writesWaitingMax) {
      return Promise.reject(new StoreUnavailable(`${writesWaitingMax} animals are waiting already`))
    }
    const creation = new Promise<Creation>((resolve, reject) => {
      queue.push({ pet, ...(once && { once }), sinceMs: performance.now(), resolve, reject })
      working ??= work()
    })
    // Behind a commit that hangs, too.
    const late = () => new StoreUnavailable(`PostgreSQL did not commit within ${workMsMax} ms`)
    return within(creation, workMsMax, late)
  }

  async function work(): Promise<void> {
    // What arrives at this turn of the event loop goes together.
    await new Promise(resolve => setImmediate(resolve))
    while (queue.length > 0) {
      const batch = queue.slice(0, commitMax)
      queue = queue.slice(commitMax)
      committing = batch.length
      await settle(batch)
      committing = 0
    }
    // In the same breath as the queue was found empty: what comes from now on starts this anew.
    working = undefined
  }

  async function settle(given: readonly Waiting[]): Promise<void> {
    // Whoever has waited too long was told so, and may have gone elsewhere.
    const batch = given.filter(({ sinceMs }) => performance.now() - sinceMs < workMsMax)
    if (batch.length === 0) return
    try {
      const creations = await pool.run(sql => commit(sql, batch))
      commitSizes.observe(batch.length)
      for (const [place, { resolve }] of batch.entries()) resolve(creations[place] as Creation)
    } catch (error) {
      // One that is refused, or ids for only some of them, is no reason to fail the others.
      if ((isRefused(error) || error instanceof IdsExhausted) && batch.length > 1)
        for (const single of batch) await settle([single])
      else for (const { reject } of batch) reject(error)
    }
  }

  return {
    async create(pet) {
      const creation = await write(pet)
      if (!('pet' in creation)) throw new Error(`an animal without a key was ${creation.outcome}`)
      return creation.pet
    },
    createOnce: write,
    get waiting() {
      return queue.length + committing
    },
    commitSizes,
    close: async () => working,
  }
}

/** One statement where no key is to be looked up; else a transaction. */
async function commit(sql: Bun.SQL, writes: readonly PetWrite[]): Promise<Creation[]> {
  if (writes.some(({ once }) => once)) return createPetsOnce(sql, writes)
  const pets = await createPets(
    sql,
    writes.map(({ pet }) => pet),
  )
  return pets.map(pet => ({ outcome: 'created', pet }))
}
