import type { KeyStore } from '../api-key.ts'
import type { Awaitable } from '../awaitable.ts'
import type { PetStore } from '../pet.ts'
import type { StoreActivity } from '../store-activity.ts'
import type { Transfer } from '../transfer.ts'

/** Everything that is kept, in one database. */
export interface Stores {
  readonly pets: PetStore
  readonly keys: KeyStore
  readonly transfer: Transfer
  /** Where it is kept, for people: never a password. */
  readonly place: string
  /** Where opening it has just made a new store: a file's absolute path, or the place. */
  readonly createdAt?: string
  /** Opens the files that writing needs now, before a server's connections can use up the file descriptors. */
  startWriting(): Promise<void>
  /** What it is doing, for the metrics. */
  activity(): StoreActivity
  close(): Awaitable<void>
}

export interface Backup {
  readonly pets: bigint
  readonly bytes: number
}

/** Told, in a line for the log, of what the store mends by itself; and when it is `over`. */
export type OnTrouble = (message: string, over?: 'over') => void

export interface OpenOptions {
  /** Whether to make a store where there is none yet; else that is a SetupError. */
  readonly create: boolean
  readonly onTrouble?: OnTrouble
  /** PostgreSQL only: where animals are listed and fetched from, if not where they are written. */
  readonly readUrl?: string | undefined
  /** PostgreSQL only: connections for reading, at most. */
  readonly connectionsMax?: number | undefined
}
