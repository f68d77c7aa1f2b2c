import { SQLiteError } from 'bun:sqlite'
import { IdsExhausted, readCode, StoreDamaged, StoreError, type StoreProblem, StoreUnavailable } from '../../errors.ts'

/** What the code of an error means. */
export type Problems = readonly (readonly [codes: RegExp, problem: StoreProblem, happened: string])[]

/**
 * The first match counts. Codes without SQLITE_ are those of the system. Extended codes such as SQLITE_IOERR_WRITE
 * begin with these.
 */
const problems: Problems = [
  [/^SQLITE_NOTADB/, 'wrong-file', 'it is not an SQLite database'],
  [/^SQLITE_CORRUPT/, 'damaged', 'the file is damaged'],
  [/^SQLITE_(BUSY|LOCKED)/, 'locked', 'another process has locked it'],
  [/^(SQLITE_FULL|SQLITE_IOERR_SHMSIZE|ENOSPC|EDQUOT)/, 'disk-full', 'the disk is full'],
  [/^(SQLITE_IOERR|EIO)/, 'failing-disk', 'it cannot be read or written'],
  [/^EISDIR/, 'wrong-file', 'it is not a regular file'],
  [/^EROFS/, 'not-writable', 'the file system is read-only'],
  [/^(SQLITE_READONLY|EACCES|EPERM)/, 'not-writable', 'no permission to write there'],
  [
    /^(SQLITE_CANTOPEN|ENOENT|ENOTDIR|EEXIST|ELOOP|ENAMETOOLONG)/,
    'wrong-file',
    'the file or its folder cannot be opened',
  ],
  [/^SQLITE_(NOMEM|PROTOCOL)/, 'temporary', 'SQLite cannot do this now'],
]

/** Problems that end only when the operator acts. */
const lasting: readonly StoreProblem[] = ['disk-full', 'failing-disk', 'not-writable']

/** While the store is open: StoreDamaged or StoreUnavailable if the code means that; otherwise the error itself. */
export function sqliteUnavailable(error: unknown): unknown {
  const code = error instanceof SQLiteError ? readCode(error) : ''
  const [, problem] = problems.find(([codes]) => codes.test(code)) ?? []
  if (!problem) return error
  const message = `SQLite: ${code}`
  // A file that was a database and is none any more was overwritten.
  if (problem === 'damaged' || code === 'SQLITE_NOTADB') return new StoreDamaged(message, { cause: error })
  return new StoreUnavailable(message, { problem: lasting.find(each => each === problem), cause: error })
}

/**
 * For a command: a StoreError if the code is a known problem; otherwise the error itself. `own` is what some codes mean
 * in this place only.
 */
export function sqliteStoreError(error: unknown, what: string, own: Problems = []): unknown {
  const code = readCode(error)
  const [, problem, happened] = [...own, ...problems].find(([codes]) => codes.test(code)) ?? []
  return problem ? new StoreError(problem, `${what}: ${happened} (${code})`, { cause: error }) : error
}

/**
 * Remembers that SQLite has reported damage. Reads may be wrong and writes may be lost after that, so both are refused
 * until the server restarts.
 */
export class DamageGuard {
  damage: StoreDamaged | undefined
  readonly #onDamage: (damage: StoreDamaged) => void

  constructor(onDamage: (damage: StoreDamaged) => void = () => {}) {
    this.#onDamage = onDamage
  }

  /** Runs a statement unless the file is damaged. */
  run<T>(statement: () => T): T {
    if (this.damage) throw this.damage
    try {
      return statement()
    } catch (error) {
      throw this.note(sqliteUnavailable(error))
    }
  }

  /** Remembers the error if it means damage, and returns it. */
  note<T>(error: T): T {
    if (error instanceof StoreDamaged && !this.damage) {
      this.damage = error
      this.#onDamage(error)
    }
    return error
  }
}

/** An error in a form that can be copied between threads. */
export type Failure = {
  readonly kind: keyof typeof errorClasses
  readonly message: string
  readonly problem?: StoreProblem | undefined
}

const errorClasses = { damaged: StoreDamaged, unavailable: StoreUnavailable, 'ids exhausted': IdsExhausted, bug: Error }

export function toFailure(cause: unknown): Failure {
  const error = sqliteUnavailable(cause)
  if (error instanceof StoreDamaged) return { kind: 'damaged', message: error.message }
  if (error instanceof StoreUnavailable) return { kind: 'unavailable', message: error.message, problem: error.problem }
  if (error instanceof IdsExhausted) return { kind: 'ids exhausted', message: error.message }
  return { kind: 'bug', message: error instanceof Error ? error.stack || error.message : String(error) }
}

export function toError({ kind, message, problem }: Failure): Error {
  return kind === 'unavailable' ? new StoreUnavailable(message, { problem }) : new errorClasses[kind](message)
}
