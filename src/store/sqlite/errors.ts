import { SQLiteError } from 'bun:sqlite'
import { damageAdvice, explained, IdsExhausted, type Problems, StoreDamaged, StoreUnavailable } from '../../errors.ts'

// Extended codes such as SQLITE_IOERR_WRITE begin with these.
const damaged = /^SQLITE_(CORRUPT|NOTADB)/
const temporary = /^SQLITE_(BUSY|LOCKED|FULL|READONLY|IOERR|CANTOPEN|NOMEM|PROTOCOL)/

/** StoreDamaged or StoreUnavailable if the driver's code means that; otherwise the error itself. */
export function sqliteStoreError(error: unknown): unknown {
  const code = error instanceof SQLiteError ? (error.code ?? '') : ''
  if (damaged.test(code)) return new StoreDamaged(`SQLite: ${code}`, { cause: error })
  return temporary.test(code) ? new StoreUnavailable(`SQLite: ${code}`, { cause: error }) : error
}

/**
 * Remembers that SQLite has reported damage. Reads may be wrong and writes may be lost after that, so both are refused until
 * the server restarts.
 */
export class DamageGuard {
  readonly #onDamage: (damage: StoreDamaged) => void
  #damage: StoreDamaged | undefined

  constructor(onDamage: (damage: StoreDamaged) => void = () => {}) {
    this.#onDamage = onDamage
  }

  get damage(): StoreDamaged | undefined {
    return this.#damage
  }

  /** Runs a statement unless the file is damaged. */
  run<T>(statement: () => T): T {
    if (this.damage) throw this.damage
    try {
      return statement()
    } catch (error) {
      throw this.note(sqliteStoreError(error))
    }
  }

  /** Remembers the error if it means damage, and returns it. */
  note<T>(error: T): T {
    if (error instanceof StoreDamaged && !this.#damage) {
      this.#damage = error
      this.#onDamage(error)
    }
    return error
  }
}

/** An error in a form that can be copied between threads. */
export type Failure = { readonly kind: keyof typeof errorClasses; readonly message: string }

const errorClasses = { damaged: StoreDamaged, unavailable: StoreUnavailable, 'ids exhausted': IdsExhausted, bug: Error }

export function failureOf(cause: unknown): Failure {
  const error = sqliteStoreError(cause)
  if (error instanceof StoreDamaged) return { kind: 'damaged', message: error.message }
  if (error instanceof StoreUnavailable) return { kind: 'unavailable', message: error.message }
  if (error instanceof IdsExhausted) return { kind: 'ids exhausted', message: error.message }
  return { kind: 'bug', message: error instanceof Error ? error.stack || error.message : String(error) }
}

export function errorOf({ kind, message }: Failure): Error {
  return new errorClasses[kind](message)
}

/** One line for the operator if the code is a known problem of the file; otherwise the error itself. */
export function sqliteSetupError(error: unknown, file: string, what = 'Cannot open the store'): unknown {
  return explained(`${what} ${file}`, error, setupProblems)
}

const setupProblems: Problems = [
  [/^SQLITE_NOTADB/, 'it is not an SQLite database; move it away, or set DATABASE_URL to another file'],
  [/^SQLITE_CORRUPT/, `the file is damaged; ${damageAdvice}`],
  [/^SQLITE_(BUSY|LOCKED)/, 'another process has locked it; stop that process, or try again'],
  [/^(SQLITE_FULL|SQLITE_IOERR_SHMSIZE|ENOSPC|EDQUOT)/, 'the disk is full; free some space'],
  [/^EISDIR/, 'it is not a regular file; set DATABASE_URL to a file'],
  [
    /^(SQLITE_READONLY|EACCES|EPERM|EROFS)/,
    'no permission to write there; change its owner, or set DATABASE_URL to another file',
  ],
  [
    /^(SQLITE_CANTOPEN|SQLITE_IOERR|ENOENT|ENOTDIR|EEXIST)/,
    'its folder cannot be used; create it, or set DATABASE_URL to another file',
  ],
]
