import type { KeyStore } from '../api-key.ts'
import type { Awaitable } from '../awaitable.ts'
import type { PetStore } from '../pet.ts'
import type { StoreActivity } from '../store-activity.ts'

/** Everything that is kept, in one database. */
export interface Stores {
  readonly pets: PetStore
  readonly keys: KeyStore
  /** Where it is kept, for people: never a password. */
  readonly place: string
  /** What it is doing, for the metrics. */
  activity(): StoreActivity
  close(): Awaitable<void>
}

export interface Backup {
  readonly pets: bigint
  readonly bytes: number
}

export interface OpenOptions {
  /** Whether to make a store where there is none yet; else that is a SetupError. */
  readonly create: boolean
  /** Told, in a line for the log, of what the store mends by itself. */
  readonly onTrouble?: (message: string) => void
}
