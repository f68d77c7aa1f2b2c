import { Database } from 'bun:sqlite'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './folder.ts'

export interface StoreFile {
  /** What `PRAGMA integrity_check` says: 'ok'. */
  readonly integrity: string
  readonly animals: number
}

/** Looks into a copy, so that the server finds the file, and its write-ahead log, as the last one left them. */
export function inspectStore(file: string): StoreFile {
  using folder = temporaryFolder()
  const copy = join(folder.path, 'copy.db')
  for (const suffix of ['', '-wal']) {
    if (existsSync(file + suffix)) copyFileSync(file + suffix, copy + suffix)
  }
  using database = new Database(copy, { readwrite: true, strict: true })
  const integrity = database.query('PRAGMA integrity_check').values().flat().join('\n')
  const [[animals] = []] = database.query('SELECT count(*) FROM pets').values()
  return { integrity, animals: Number(animals) }
}
