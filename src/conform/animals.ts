import type { Pet, PetStatus } from '../pet.ts'
import { petIn, petsIn } from './expectation.ts'
import type { Probe } from './probe.ts'

export const statuses = ['available', 'pending', 'sold'] as const satisfies readonly PetStatus[]

/** More than a list shows where no limit is given. */
export const moreThanDefault = 21

/** A name that tells whoever finds the animal where it comes from. */
export function animalName(): string {
  return `conform ${crypto.randomUUID().slice(0, 8)}`
}

/**
 * An animal as JSON text. A field is given as it stands in the text, so that a check can send what no client would;
 * undefined leaves it out.
 */
export function animal(fields: Readonly<Record<string, string | undefined>> = {}): string {
  const all = { name: JSON.stringify(animalName()), categoryId: '1', ...fields }
  const written = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [`${JSON.stringify(name)}:${value}`],
  )
  return `{${written.join(',')}}`
}

export async function addAnimal(probe: Probe, fields?: Readonly<Record<string, string>>): Promise<Pet> {
  return petIn(await probe.post(animal(fields)), 201)
}

/** An animal of the catalogue; a new one where it is empty. */
export async function someAnimal(probe: Probe): Promise<Pet> {
  const [first] = petsIn(await probe.send('/pets?limit=1'))
  return first ?? (await addAnimal(probe))
}

/** Adds what the catalogue lacks of so many animals, 100 at most, with this status or with any. */
export async function atLeast(probe: Probe, count: number, status?: PetStatus): Promise<void> {
  const filter = status === undefined ? '' : `&status=${status}`
  const pets = petsIn(await probe.send(`/pets?limit=100${filter}`))
  for (let missing = count - pets.length; missing > 0; missing--) {
    await addAnimal(probe, status === undefined ? {} : { status: JSON.stringify(status) })
  }
}

/** An id that no animal has: near the end of the range, and another one each time. */
export function absentId(): bigint {
  return 2n ** 63n - 2n - BigInt(Math.floor(Math.random() * 1e12))
}

/** A credential that no server has given out. */
export function wrongCredential(): string {
  return `Bearer conform-wrong-key-${crypto.randomUUID()}`
}
