import { SQLiteError } from 'bun:sqlite'
import { SetupError, StoreUnavailable } from '../../fault.ts'

// What an operator or time can mend. Extended codes (SQLITE_IOERR_WRITE) begin with these.
const passing = /^SQLITE_(BUSY|LOCKED|FULL|READONLY|IOERR|CANTOPEN|NOMEM|PROTOCOL)/

/** A driver's error, told by its code: one that passes becomes StoreUnavailable, any other stays what it is. */
export function runtimeErrorOf(error: unknown): unknown {
  if (error instanceof SQLiteError && passing.test(error.code ?? '')) {
    return new StoreUnavailable(`SQLite: ${error.code}`, { cause: error })
  }
  return error
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
