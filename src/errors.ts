/** The store cannot serve the request now, but may later: a full disk, a lock, a lost connection. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** The store's file is damaged and stays unavailable until a backup is restored. Logged once, by the store. */
export class StoreDamaged extends StoreUnavailable {}

/** No id is left for another animal. Retrying does not help. */
export class IdsExhausted extends Error {
  override readonly name = 'IdsExhausted'
}

/** The program cannot start or continue. The message is one line for the operator: the problem and what to do. */
export class SetupError extends Error {
  override readonly name = 'SetupError'
}

/** The database refuses connections or does not answer. A later attempt may succeed. */
export class StoreUnreachable extends SetupError {}

/** The connection was lost during COMMIT: either every imported animal is stored, or none. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'
}
