import type { Database } from 'bun:sqlite'
import { createKeyWrites } from './key-writes.ts'
import { createPetWrites } from './pet-writes.ts'

/** Everything that changes the file: each a function that runs inside a transaction, in the writer's thread. */
export function createWrites(database: Database) {
  return { ...createPetWrites(database), ...createKeyWrites(database) }
}

export type Writes = ReturnType<typeof createWrites>
export type WriteName = keyof Writes

/** Of one statement that fails SQLite takes back by itself what it did: such a write needs no savepoint. */
export function isOneStatement(name: WriteName): boolean {
  return name === 'createPet'
}

/** A write on its way to the thread. Flat, because what is nested is copied between threads at several times the cost. */
export type Write = readonly [name: WriteName, ...args: readonly unknown[]]

/** What became of a batch: each write's value at its place, and what failed, by its place. */
export interface Written {
  readonly values: readonly unknown[]
  readonly failures?: ReadonlyMap<number, Failure>
}

export interface Failure {
  readonly kind: 'unavailable' | 'damaged' | 'ids exhausted' | 'bug'
  readonly message: string
}
