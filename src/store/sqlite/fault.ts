import { SQLiteError } from 'bun:sqlite'
import { SetupError, StoreDamaged, StoreUnavailable } from '../../errors.ts'

// What an operator or time can mend. Extended codes (SQLITE_IOERR_WRITE) begin with these.
const passing = /^SQLITE_(BUSY|LOCKED|FULL|READONLY|IOERR|CANTOPEN|NOMEM|PROTOCOL)/

const damaged = /^SQLITE_(CORRUPT|NOTADB)/

/** A driver's error, by its code: one that passes or means damage becomes StoreUnavailable, any other stays what it is. */
export function runtimeErrorOf(error: unknown): unknown {
  const code = error instanceof SQLiteError ? (error.code ?? '') : ''
  if (damaged.test(code)) return new StoreDamaged(`SQLite: ${code}`, { cause: error })
  return passing.test(code) ? new StoreUnavailable(`SQLite: ${code}`, { cause: error }) : error
}

/**
 * Remembers that SQLite has reported the file as damaged. Later reads may be wrong and later writes may be lost, so there are
 * none until a restart.
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

  /** Runs a statement, unless the file is damaged; what it throws becomes one of our errors. */
  run<T>(statement: () => T): T {
    if (this.#damage) throw this.#damage
    try {
      return statement()
    } catch (error) {
      throw this.note(runtimeErrorOf(error))
    }
  }

  /** Takes note of an error if it means damage, and gives it back. */
  note(error: unknown): unknown {
    if (error instanceof StoreDamaged && !this.#damage) {
      this.#damage = error
      this.#onDamage(error)
    }
    return error
  }
}

/** Runs a statement; what it throws is told apart. */
export function guarded<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw runtimeErrorOf(error)
  }
}

/** What is wrong with the file at the start, as one line. */
export function setupErrorOf(error: unknown, file: string): unknown {
  if (error instanceof SetupError) return error
  const code = (error as { code?: string } | undefined)?.code ?? ''
  const why = mends.find(([codes]) => codes.test(code))?.[1]
  return why ? new SetupError(`Cannot open the store ${file}: ${why} (${code})`, { cause: error }) : error
}

const mends: readonly (readonly [RegExp, string])[] = [
  [/^SQLITE_NOTADB/, 'it is not an SQLite database; move it away, or name another file in DATABASE_URL'],
  [/^SQLITE_CORRUPT/, 'the file is damaged; restore a backup'],
  [
    /^(SQLITE_READONLY|EACCES|EPERM|EROFS)/,
    'no right to write there; change its owner or name another file in DATABASE_URL',
  ],
  [/^SQLITE_(BUSY|LOCKED)/, 'another process holds it locked; stop that process, or try again'],
  [/^(SQLITE_FULL|ENOSPC|EDQUOT)/, 'the disk is full'],
  [/^EISDIR/, 'it is no ordinary file; name one in DATABASE_URL'],
  [
    /^(SQLITE_CANTOPEN|SQLITE_IOERR|ENOENT|ENOTDIR|EEXIST)/,
    'its folder cannot be used; create it, or name another file in DATABASE_URL',
  ],
]
