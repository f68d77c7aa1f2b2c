import type { Requests, Scattered } from '../load/load.ts'

export type WorkName = 'list' | 'list-1' | 'list-512' | 'filtered' | 'deep' | 'get' | 'create' | 'mix'

export interface Work {
  readonly name: WorkName
  readonly title: string
  readonly connections: number
  /** Left out of a quick run. */
  readonly slow?: true
}

export const works: readonly Work[] = [
  { name: 'list', title: 'list of 20', connections: 64 },
  { name: 'list-1', title: 'list of 20', connections: 1, slow: true },
  { name: 'list-512', title: 'list of 20', connections: 512, slow: true },
  { name: 'filtered', title: 'list of 100 by status', connections: 64 },
  { name: 'deep', title: 'page a million deep', connections: 64, slow: true },
  { name: 'get', title: 'get one', connections: 64 },
  { name: 'create', title: 'durable create', connections: 64 },
  { name: 'mix', title: 'mix 90/8/2', connections: 64 },
]

export const everyWork: readonly WorkName[] = works.map(({ name }) => name)

/** `get one, 64 connections` */
export function showWork({ title, connections }: Work): string {
  return `${title}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`
}

/** How deep the deep page lies: a million animals where there are so many, else near the end. */
export function deepAfter(animals: number): number {
  return animals > 1_000_100 ? 1_000_000 : animals - 100
}

/** Ids of the most common length: the answers are as long as the one that the ceilings give. */
export function scattered(getPrefix: string, animals: number): Scattered {
  return { getPrefix, fromId: 10 ** Math.floor(Math.log10(animals - 1)), toId: animals - 1 }
}

/** Requests for a server with our paths; cursors are each server's own. */
export function ourRequests(cursorAfter: (id: number) => string) {
  return (work: WorkName, animals: number): Requests => {
    const path = '/v1/pets'
    const ids = scattered(`${path}/`, animals)
    switch (work) {
      case 'filtered':
        return { kind: 'read', path: `${path}?status=available&limit=100` }
      case 'deep':
        return { kind: 'read', path: `${path}?limit=20&cursor=${cursorAfter(deepAfter(animals))}` }
      case 'get':
        return { kind: 'get', ...ids }
      case 'create':
        return { kind: 'create', createPath: path }
      case 'mix':
        return { kind: 'mix', path, createPath: path, ...ids }
      default:
        return { kind: 'read', path }
    }
  }
}
