import type { ApiKey, NewApiKey } from './api-key.ts'
import type { StoreTrouble } from './errors.ts'
import type { Page, PageRequest } from './page.ts'
import type { NewPet, Pet, PetChanges, PetStatus } from './pet.ts'

/**
 * Stores the animals. Every method may throw or reject with StoreUnavailable. Nothing has changed then, unless a write
 * was sent and its answer came late or not at all; `createOnce` makes a retry safe. Reads see every earlier write of
 * this process, except on a replica. A write of another process is visible before its client can ask for it.
 */
export interface PetStore {
  /**
   * Ascending by id. Every page costs the same, however deep. May return the same object for equal requests, as long as
   * no write was committed since: never modify it.
   */
  list(request: PageRequest): Promise<Page>
  get(id: bigint): Promise<Pet | undefined>
  /** The animal with its id, higher than all before. It survives a crash. Throws IdsExhausted if no id is left. */
  create(pet: NewPet): Promise<Pet>
  /** Like `create`, but at most once for each idempotency key, which is stored in the same transaction. */
  createOnce(pet: NewPet, key: IdempotencyKey): Promise<Creation>
  /** Changes an animal. The change survives a crash. With `ifStatus`, only if the animal has this status now. */
  update(id: bigint, changes: PetChanges, ifStatus?: PetStatus): Promise<Change>
  /** Like `update`. The id is not assigned again. */
  remove(id: bigint, ifStatus?: PetStatus): Promise<Change>
  /** Deletes at most `max` idempotency keys that have expired, and returns how many it deleted. */
  deleteExpiredIdempotencyKeys(now: Date, max: number): Promise<number>
}

/** A client's name for one creation. */
export interface IdempotencyKey {
  /** The API key that it belongs to: two API keys may use the same name. */
  readonly scope: string
  readonly key: string
  readonly at: Date
}

export const idempotencyKeyMs = 24 * 60 * 60 * 1_000

export type Creation =
  /** `replayed`: the animal that an earlier request with this key created. */
  { readonly outcome: 'created' | 'replayed'; readonly pet: Pet } | { readonly outcome: 'conflict' }

export type Change =
  /** The animal as it is now, or was before its removal. */
  { readonly outcome: 'changed' | 'status-differs'; readonly pet: Pet } | { readonly outcome: 'no-such-pet' }

/** Stores API keys by their hashes. A key that another process creates or revokes is seen by the next call. */
export interface KeyStore {
  find(hash: string): Promise<ApiKey | undefined>
  /** Oldest first, with revoked and expired ones. */
  list(): Promise<readonly ApiKey[]>
  create(key: NewApiKey): Promise<ApiKey>
  /** Creates the key only if the store has never held one. Safe when several instances try at once. */
  createFirst(key: NewApiKey): Promise<ApiKey | undefined>
  /** False if there is no such key, or it is revoked already. */
  revoke(id: bigint, at: Date): Promise<boolean>
  /** Adds the counts and never moves a time backwards: several instances report on the same key. */
  recordUses(uses: readonly KeyUse[]): Promise<void>
}

export interface KeyUse {
  readonly id: bigint
  /** If there are deprecated uses, of the last of these, too. */
  readonly lastUsedAt: Date
  readonly deprecatedUses: number
}

/** What commands do with animals while servers run. Reads and imports have batches of bounded size. */
export interface Transfer {
  /** Roughly how many animals there are, for a progress bar. */
  estimate(): Promise<number>
  /** Every animal as of one moment, ascending by id, while others read and write. */
  read(): AsyncIterable<readonly Pet[]>
  /**
   * Adds all animals or none, and returns how many. Throws a StoreError if ids are to be kept in a store that has
   * animals; OutcomeUnknown if no answer to COMMIT arrives; an error of `batches` unchanged; the signal's reason if it
   * aborts before COMMIT.
   */
  load(batches: AsyncIterable<readonly ImportedPet[]>, ids: ImportIds, signal?: AbortSignal): Promise<bigint>
}

/** An animal to import. Its id is used only if ids are kept; then every animal has one, in ascending order. */
export interface ImportedPet extends NewPet {
  readonly id?: bigint
}

/** `keep` the ids, in a store without animals; or assign `new` ones, in order. */
export type ImportIds = 'keep' | 'new'

/** With names of 1,000 characters, a batch takes up to 20 MB. */
export const batchPetsMax = 5_000

export interface Stores {
  readonly pets: PetStore
  readonly keys: KeyStore
  readonly transfer: Transfer
  /** The file or the address, without a password. */
  readonly location: string
  /** Set if opening has just created the store: a file's absolute path, or the location. */
  readonly newStorePath?: string
  /** Opens the files or connections that writing needs, and checks the rights. */
  startWriting(): Promise<void>
  activity(): StoreActivity
  close(): Promise<void>
}

export interface StoreActivity {
  /** Writes that wait or are being committed. */
  readonly writesWaiting: number
  /** False if the last write failed less than 2 minutes ago, no connection for writing is open, or the file was replaced. */
  readonly isWritable: boolean
  /** By name. Absent if the engine has no connections. */
  readonly pools?: Readonly<Record<string, PoolActivity>>
}

export interface PoolActivity {
  readonly connectionsMax: number
  readonly connectionsBusy: number
  /** Statements that wait for a connection. */
  readonly waiting: number
}

/** A line for the log: `error` for a failure, `warn` for a recovery or a setting to correct. */
export type OnStoreEvent = (level: 'error' | 'warn', event: StoreTrouble) => void

export interface OpenOptions {
  /** Whether to create the store if there is none; otherwise that is a StoreError. */
  readonly create: boolean
  readonly onEvent?: OnStoreEvent | undefined
  /** Called if the store will never write again. The caller has to end the process, which is to be started again. */
  readonly onEnd?: ((cause: string) => void) | undefined
}
