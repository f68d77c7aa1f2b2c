import { SQLiteError } from 'bun:sqlite'
import { codeOf, IdsExhausted, StoreDamaged, StoreError, type StoreProblem, StoreUnavailable } from '../../errors.ts'

// Extended codes such as SQLITE_IOERR_WRITE begin with these.
const damaged = /^SQLITE_(CORRUPT|NOTADB)/
const temporary = /^SQLITE_(BUSY|LOCKED|FULL|READONLY|IOERR|CANTOPEN|NOMEM|PROTOCOL)/

/** StoreDamaged or StoreUnavailable if the driver's code means that; otherwise the error itself. */
export function sqliteUnavailable(error: unknown): unknown {
  const code = error instanceof SQLiteError ? (error.code ?? '') : ''
  if (damaged.test(code)) return new StoreDamaged(`SQLite: ${code}`, { cause: error })
  if (!temporary.test(code)) return error
  const [, problem] = outages.find(([codes]) => codes.test(code)) ?? []
  return new StoreUnavailable(`SQLite: ${code}`, { problem, cause: error })
}

/** Outages in which the operator has to act. */
const outages: readonly (readonly [codes: RegExp, problem: StoreProblem])[] = [
  [/^SQLITE_FULL/, 'disk-full'],
  [/^SQLITE_READONLY/, 'read-only'],
  [/^SQLITE_IOERR/, 'unreadable'],
]

/**
 * Remembers that SQLite has reported damage. Reads may be wrong and writes may be lost after that, so both are refused
 * until the server restarts.
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
      throw this.note(sqliteUnavailable(error))
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
export type Failure = {
  readonly kind: keyof typeof errorClasses
  readonly message: string
  readonly problem?: StoreProblem | undefined
}

const errorClasses = { damaged: StoreDamaged, unavailable: StoreUnavailable, 'ids exhausted': IdsExhausted, bug: Error }

export function failureOf(cause: unknown): Failure {
  const error = sqliteUnavailable(cause)
  if (error instanceof StoreDamaged) return { kind: 'damaged', message: error.message }
  if (error instanceof StoreUnavailable) return { kind: 'unavailable', message: error.message, problem: error.problem }
  if (error instanceof IdsExhausted) return { kind: 'ids exhausted', message: error.message }
  return { kind: 'bug', message: error instanceof Error ? error.stack || error.message : String(error) }
}

export function errorOf({ kind, message, problem }: Failure): Error {
  return kind === 'unavailable' ? new StoreUnavailable(message, { problem }) : new errorClasses[kind](message)
}

/** What the code of an error means. */
export type Problems = readonly (readonly [codes: RegExp, problem: StoreProblem, happened: string])[]

const openProblems: Problems = [
  [/^SQLITE_NOTADB/, 'foreign-file', 'it is not an SQLite database'],
  [/^SQLITE_CORRUPT/, 'damaged', 'the file is damaged'],
  [/^SQLITE_(BUSY|LOCKED)/, 'locked', 'another process has locked it'],
  [/^(SQLITE_FULL|SQLITE_IOERR_SHMSIZE|ENOSPC|EDQUOT)/, 'disk-full', 'the disk is full'],
  [/^EISDIR/, 'not-a-file', 'it is not a regular file'],
  [/^EROFS/, 'read-only', 'the file system is read-only'],
  [/^(SQLITE_READONLY|EACCES|EPERM)/, 'no-permission', 'no permission to write there'],
  [/^(SQLITE_CANTOPEN|SQLITE_IOERR|ENOENT|ENOTDIR|EEXIST)/, 'no-folder', 'its folder cannot be used'],
]

/** A StoreError if one of the problems has the code of the error; otherwise the error itself. */
export function sqliteStoreError(error: unknown, what: string, problems = openProblems): unknown {
  const code = codeOf(error)
  const [, problem, happened] = problems.find(([codes]) => codes.test(code)) ?? []
  return problem ? new StoreError(problem, `${what}: ${happened} (${code})`, { cause: error }) : error
}
