import { expect, test } from 'bun:test'
import type * as Domain from '../pet.ts'
import { petStatus } from '../pet.ts'
import type { NewPet, Pet, PetStatus } from './pet.ts'

/** True only where each can stand for the other; anything else does not compile. */
type Same<A, B> = [A, B] extends [B, A] ? true : never

test("the client's animals are the service's animals", () => {
  const same: [Same<Pet, Domain.Pet>, Same<PetStatus, Domain.PetStatus>] = [true, true]
  const sendable = (pet: Domain.NewPet): NewPet => pet
  expect(same).toEqual([true, true])
  expect(sendable({ name: 'Rex', categoryId: 7n })).toEqual({ name: 'Rex', categoryId: 7n })
  expect(petStatus.schema['enum']).toEqual(['available', 'pending', 'sold'] satisfies PetStatus[])
})
