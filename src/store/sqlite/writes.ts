import type { Database } from 'bun:sqlite'
import { createKeyWrites } from './keys.ts'
import { createPetWrites } from './pets.ts'

/** Everything that changes the file: each a function that runs inside a transaction, in the writer's thread. */
export function createWrites(database: Database) {
  return { ...createPetWrites(database), ...createKeyWrites(database) }
}

export type Writes = ReturnType<typeof createWrites>
export type WriteName = keyof Writes

/** A write on its way to the thread: only what can be copied between threads. */
export interface Write<Name extends WriteName = WriteName> {
  readonly name: Name
  readonly args: Parameters<Writes[Name]>
}

/** What became of it. */
export type Written =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly unavailable: boolean; readonly message: string }
