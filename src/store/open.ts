import { SetupError } from '../errors.ts'
import type { Awaitable, OpenOptions, Stores } from '../store.ts'
import { type PostgresAddress, parsePostgresUrl, postgresUrlForm } from './postgres/url.ts'
import { openSqlite } from './sqlite/open.ts'

/** What is wrong with a DATABASE_URL, before anything is opened; undefined where nothing is. Shows no password. */
export function databaseUrlProblem(url: string): string | undefined {
  if (isPostgres(url)) return parsePostgresUrl(url) ? undefined : postgresUrlForm
  if (!url.startsWith('sqlite:')) {
    return 'expected sqlite:FILE, such as sqlite:data/petstore.db, or postgres://USER:PASSWORD@HOST:PORT/DATABASE'
  }
  const file = sqliteFile(url)
  // Other programs take options after a question mark; here they would become part of the file's name.
  if (file !== '' && !/^(:memory:|file:|\/\/)|[?#\0]/.test(file)) return undefined
  return 'expected a file after sqlite:, such as sqlite:data/petstore.db or sqlite:/var/lib/petstore.db'
}

/** Opens the store that a DATABASE_URL names, and brings it up to this version's schema. */
export function openStores(url: string, options: OpenOptions): Awaitable<Stores> {
  const problem = databaseUrlProblem(url)
  if (problem) throw new SetupError(`Cannot open the store: ${problem}`)
  const address = isPostgres(url) && parsePostgresUrl(url)
  return address ? loadAndOpenPostgres(address, options) : openSqlite(sqliteFile(url), options)
}

/** Loaded only where it is needed: a server on a file starts without it. */
async function loadAndOpenPostgres(address: PostgresAddress, options: OpenOptions): Promise<Stores> {
  const { openPostgres } = await import('./postgres/open.ts')
  return openPostgres(address, options)
}

/** Why a store cannot be copied into a file; undefined where it can. */
export function backUpProblem(url: string): string | undefined {
  if (!isPostgres(url)) return databaseUrlProblem(url)
  return 'Cannot back up PostgreSQL: expected a store in a file; use pg_dump, or bin/petstore export for the animals alone'
}

/**
 * Copies the store as of one moment into an empty file, checks the copy, and returns how many animals it has. Others may
 * read and write meanwhile. The store itself is not migrated: a backup comes before an upgrade.
 */
export async function backUp(
  url: string,
  copy: string,
  onProgress: (fraction: number) => void,
  interrupted: AbortSignal,
): Promise<bigint> {
  const problem = backUpProblem(url)
  if (problem) throw new SetupError(problem)
  // As with PostgreSQL: a server starts without it.
  const { backUpSqlite } = await import('./sqlite/backup.ts')
  return backUpSqlite(sqliteFile(url), copy, onProgress, interrupted)
}

export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url)
}

/** `sqlite:data/pets.db` is relative to the working folder; `sqlite:/var/pets.db` and `sqlite:///var/pets.db` are not. */
function sqliteFile(url: string): string {
  return url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
}
