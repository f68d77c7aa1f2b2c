import type { OpenOptions, Stores } from '../store.ts'
import type { PostgresOptions } from './postgres/open.ts'
import { parsePostgresUrl, postgresUrlExpected } from './postgres/url.ts'
import { openSqlite } from './sqlite/open.ts'

/** What the URL of a store looks like if this one is not valid. Never shows a password. */
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

/** The same for the URL of a replica. */
export function replicaUrlProblem(url: string): string | undefined {
  if (!isPostgres(url)) return 'expected postgres://USER:PASSWORD@HOST:PORT/DATABASE'
  const several = (parsePostgresUrl(url)?.hosts.length ?? 0) > 1
  return several ? 'expected one host; put a load balancer in front of several replicas' : databaseUrlProblem(url)
}

/** Opens the store of a valid URL, and applies missing migrations. SQLite ignores the options of PostgreSQL. */
export async function openStores(url: string, options: OpenOptions & PostgresOptions): Promise<Stores> {
  if (!isPostgres(url)) return openSqlite(sqliteFile(url), options)
  const address = parsePostgresUrl(url, options.pooler)
  if (!address) throw new Error(postgresUrlExpected)
  // Loaded only when needed: a server on SQLite starts faster without it.
  const { openPostgres } = await import('./postgres/open.ts')
  return openPostgres(address, options)
}

export function isPostgres(url: string): boolean {
  return /^postgres(ql)?:/.test(url)
}

/** `sqlite:pets.db` is relative to the working folder; `sqlite:/a/pets.db` and `sqlite:///a/pets.db` are absolute. */
export function sqliteFile(url: string): string {
  return url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
}
