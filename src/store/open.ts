import type { OpenOptions, Stores } from '../store-contract.ts'
import type { PostgresOptions } from './postgres/open.ts'
import { parsePostgresUrl, postgresUrlProblem } from './postgres/url.ts'
import { openSqlite } from './sqlite/open.ts'

/** What the URL of a store looks like if this one is not valid. Never shows a password. */
export function databaseUrlProblem(url: string): string | undefined {
  if (isPostgres(url)) return postgresUrlProblem(url)
  if (/^[\w./~-]+$/.test(url)) return 'it looks like a path; put sqlite: in front of it, as in sqlite:data/petstore.db'
  if (!url.startsWith('sqlite:')) {
    return 'expected sqlite:FILE, such as sqlite:data/petstore.db, or postgres://USER:PASSWORD@HOST:PORT/DATABASE'
  }
  const file = sqliteFile(url)
  // The runtime would open another file: it trims the name.
  if (file !== file.trim()) return `the file name ${JSON.stringify(file)} begins or ends with white space: remove it`
  // Other programs read options after a question mark; SQLite would make them part of the file name.
  if (file !== '' && !/^(:memory:|file:|\/\/)|[?#\0]/.test(file)) return undefined
  return 'expected a file after sqlite:, such as sqlite:data/petstore.db or sqlite:/var/lib/petstore.db'
}

/** The same for a second address for reads. */
export function readUrlProblem(url: string): string | undefined {
  return isPostgres(url) ? postgresUrlProblem(url) : 'expected postgres://USER:PASSWORD@HOST:PORT/DATABASE'
}

/** Opens the store of a valid URL, and applies missing migrations. SQLite ignores the options of PostgreSQL. */
export async function openStores(url: string, options: OpenOptions & PostgresOptions): Promise<Stores> {
  if (!isPostgres(url)) return openSqlite(sqliteFile(url), options)
  // Loaded only when needed: a server on SQLite starts faster without it.
  const { openPostgres } = await import('./postgres/open.ts')
  return openPostgres(parsePostgresUrl(url, options.pooler), options)
}

export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url)
}

/** `sqlite:pets.db` is relative to the working folder; `sqlite:/a/pets.db` and `sqlite:///a/pets.db` are absolute. */
export function sqliteFile(url: string): string {
  return url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
}
