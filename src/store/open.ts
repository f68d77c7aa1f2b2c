import type { OpenOptions, Stores } from '../store.ts'
import type { PostgresOptions } from './postgres/open.ts'
import { parsePostgresUrl, postgresUrlExpected } from './postgres/url.ts'
import type { Restore } from './sqlite/backup.ts'
import { openSqlite } from './sqlite/open.ts'

export type { Restore }

/** What a valid DATABASE_URL looks like if this one is not valid. Never shows a password. */
export function databaseUrlProblem(url: string): string | undefined {
  if (isPostgres(url)) return parsePostgresUrl(url) ? undefined : postgresUrlExpected
  if (/^[\w./~-]+$/.test(url)) return 'it looks like a path; put sqlite: in front of it, as in sqlite:data/petstore.db'
  if (!url.startsWith('sqlite:')) {
    return 'expected sqlite:FILE, such as sqlite:data/petstore.db, or postgres://USER:PASSWORD@HOST:PORT/DATABASE'
  }
  const file = sqliteFile(url)
  // Other programs read options after a question mark; SQLite would make them part of the file name.
  if (file !== '' && !/^(:memory:|file:|\/\/)|[?#\0]/.test(file)) return undefined
  return 'expected a file after sqlite:, such as sqlite:data/petstore.db or sqlite:/var/lib/petstore.db'
}

/** The same for a PETSTORE_READ_URL. */
export function replicaUrlProblem(url: string): string | undefined {
  if (!isPostgres(url)) return 'expected postgres://USER:PASSWORD@HOST:PORT/DATABASE'
  const several = (parsePostgresUrl(url)?.hosts.length ?? 0) > 1
  return several ? 'expected one host; put a load balancer in front of several replicas' : databaseUrlProblem(url)
}

/** Opens the store of a DATABASE_URL, and applies missing migrations. SQLite ignores the options of PostgreSQL. */
export async function openStores(url: string, options: OpenOptions & PostgresOptions): Promise<Stores> {
  const problem = databaseUrlProblem(url)
  if (problem) throw new Error(`Cannot open the store: ${problem}`)
  const address = isPostgres(url) && parsePostgresUrl(url, options.pooler)
  if (!address) return openSqlite(sqliteFile(url), options)
  // Loaded only when needed: a server on SQLite starts faster without it.
  return import('./postgres/open.ts').then(({ openPostgres }) => openPostgres(address, options))
}

/**
 * Copies an SQLite store as of one moment into an empty file while others read and write, checks the copy, and returns how
 * many animals it has. Applies no migration: a backup comes before an upgrade.
 */
export async function backUp(
  url: string,
  copy: string,
  onProgress: (fraction: number) => void,
  signal: AbortSignal,
): Promise<bigint> {
  const { backUpSqlite } = await import('./sqlite/backup.ts')
  return backUpSqlite(sqliteFile(url), copy, onProgress, signal)
}

/** Prepares to replace the catalogue of an SQLite store by that of a backup: `using restore = await openRestore(…)`. */
export async function openRestore(url: string, backup: string): Promise<Restore> {
  const { openSqliteRestore } = await import('./sqlite/backup.ts')
  return openSqliteRestore(sqliteFile(url), backup)
}

export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url)
}

/** `sqlite:pets.db` is relative to the working directory; `sqlite:/var/pets.db` and `sqlite:///var/pets.db` are absolute. */
function sqliteFile(url: string): string {
  return url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
}
