/** The store cannot do it now, and the same request may succeed later: a full disk, a lock, a lost connection. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** The store's file is damaged. It stays unavailable until a backup is restored; the log says so once. */
export class StoreDamaged extends StoreUnavailable {}

/** No id is left for another animal; waiting does not help. */
export class IdsExhausted extends Error {
  override readonly name = 'IdsExhausted'
}

/** The program cannot start or go on as it was told. The message is one line for a person: what, and how to mend it. */
export class SetupError extends Error {
  override readonly name = 'SetupError'
}

/** The database cannot be reached, or does not let us in yet: whoever is willing to wait may try again. */
export class NotReachable extends SetupError {}
