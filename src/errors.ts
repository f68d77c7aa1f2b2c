// What can go wrong with a store, and with the program.

/** What is wrong with a store: one name for each advice. */
export type StoreProblem = SharedProblem | SqliteProblem | PostgresProblem
type SharedProblem = 'locked' | 'disk-full' | 'temporary' | 'newer-schema' | 'not-empty' | 'ids-exhausted'
type SqliteProblem =
  | ('no-file' | 'wrong-file' | 'not-writable' | 'not-readable' | 'failing-disk')
  | ('damaged' | 'bad-backup' | 'foreign-trigger')
type PostgresProblem =
  | ('no-answer' | 'no-primary' | 'no-free-connection' | 'pooler' | 'isolation')
  | ('host-rules' | 'refused-user' | 'certificate-name' | 'untrusted-certificate' | 'missing-right')
  | ('no-tables' | 'no-schema' | 'wrong-database')

/** The store cannot be opened, copied or changed. The message says what happened; `problem` decides what to do. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly problem: StoreProblem

  constructor(problem: StoreProblem, message: string, options?: ErrorOptions) {
    super(message, options)
    this.problem = problem
  }
}

/** The database refuses connections or does not answer. A later attempt may succeed. */
export class StoreUnreachable extends StoreError {}

/** What happened, and what kind of problem it is, if the operator has to act. */
export interface StoreTrouble {
  readonly message: string
  readonly problem?: StoreProblem | undefined
  readonly cause?: unknown
}

/** The store cannot serve the request now, but may later: a full disk, a lock, a lost connection. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
  /** Set if the operator has to do something. */
  readonly problem: StoreProblem | undefined

  constructor(message: string, { problem, ...options }: ErrorOptions & { problem?: StoreProblem | undefined } = {}) {
    super(message, options)
    this.problem = problem
  }
}

/** The store's file is damaged and stays unavailable until a backup is restored. Logged once, by the store. */
export class StoreDamaged extends StoreUnavailable {
  override readonly problem = 'damaged'
}

/** No id is left for another animal. Retrying does not help. */
export class IdsExhausted extends Error {
  override readonly name = 'IdsExhausted'
}

/** It is unknown whether a change was committed: either the whole change is stored, or none of it. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'
}

/** The program cannot start or continue. The message is one line for the operator: the problem and what to do. */
export class SetupError extends Error {
  override readonly name = 'SetupError'
}

/** The code of a system or database error, such as ENOENT; empty if it has none. */
export function readCode(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : ''
}
