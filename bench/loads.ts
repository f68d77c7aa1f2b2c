import type { PetStatus } from '../src/pet.ts'

/** The title of each load in tables. */
export const loads = {
  mix: 'Mix',
  list: 'First page',
  pages: 'Random pages',
  get: 'Get random ones',
  create: 'Durable create',
} as const

export type Load = keyof typeof loads
export const allLoads = Object.keys(loads) as readonly Load[]

export const petsPath = '/v1/pets'
const statuses: readonly PetStatus[] = ['available', 'pending', 'sold']

/** The animal with this id, in a catalogue of any size. */
export function animalAt(id: number) {
  return { id, name: `Animal ${id}`, categoryId: id % 50, status: statuses[id % 3] }
}

export type CursorWriter = (after: number, status: PetStatus | undefined) => string

/** Paths of GET requests, and POST for creations: the same for every server, except for the form of cursors. */
export function requestsOf(load: Load, animals: number, cursor: CursorWriter): readonly string[] {
  let draws = 0
  const random = (below: number) => Bun.hash.crc32(String(draws++)) % below
  // Ids of the most common length, so that all responses have about the same length.
  const idMin = 10 ** Math.floor(Math.log10(animals / 2))
  const get = () => `${petsPath}/${idMin + random(Math.min(idMin * 10, animals) - idMin)}`
  // In the first half of the catalogue, where every page is full. Half of the pages are of one status.
  const page = () => {
    const limit = [10, 20, 50, 100][random(4)]
    const status = random(2) === 0 ? statuses[random(3)] : undefined
    const filter = status ? `&status=${status}` : ''
    return `${petsPath}?limit=${limit}${filter}&cursor=${cursor(random(animals / 2), status)}`
  }
  const mixed = (turn: number) => {
    if (turn % 50 === 0) return 'POST'
    if (turn % 50 <= 4) return get()
    return turn % 2 === 0 ? petsPath : page()
  }
  const next = { mix: mixed, list: () => petsPath, pages: page, get, create: () => 'POST' }[load]
  return Array.from({ length: 10_000 }, (_, turn) => next(turn))
}
