import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { StoreError, type StoreProblem, StoreUnavailable } from '../../errors.ts'
import { sqliteStoreError, sqliteUnavailable, toFailure } from './errors.ts'

test.each<[StoreProblem, string, ...string[]]>([
  ['wrong-file', 'it is not an SQLite database', 'SQLITE_NOTADB'],
  ['damaged', 'the file is damaged', 'SQLITE_CORRUPT', 'SQLITE_CORRUPT_INDEX'],
  ['locked', 'another process has locked it', 'SQLITE_BUSY', 'SQLITE_LOCKED', 'SQLITE_BUSY_RECOVERY'],
  ['disk-full', 'the disk is full', 'SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE', 'ENOSPC', 'EDQUOT'],
  ['failing-disk', 'it cannot be read or written', 'SQLITE_IOERR_WRITE', 'EIO'],
  ['wrong-file', 'it is not a regular file', 'EISDIR'],
  ['not-writable', 'no permission to write there', 'SQLITE_READONLY', 'EACCES', 'EPERM'],
  ['not-writable', 'the file system is read-only', 'EROFS'],
  ['wrong-file', 'the file or its folder cannot be opened', 'SQLITE_CANTOPEN', 'ENOENT', 'EEXIST', 'ELOOP'],
  ['temporary', 'SQLite cannot do this now', 'SQLITE_NOMEM', 'SQLITE_PROTOCOL'],
])('a command reports the problem %s, "%s", for %s', (problem, happened, ...codes) => {
  for (const code of codes) {
    const cause = Object.assign(new Error('no'), { code })
    const error = sqliteStoreError(cause, 'Cannot open the store pets.db')
    expect(error).toBeInstanceOf(StoreError)
    const message = `Cannot open the store pets.db: ${happened} (${code})`
    expect(error).toMatchObject({ problem, message, cause })
    const other = Object.assign(new Error(), { code: `X${code}` })
    expect(sqliteStoreError(other, 'Cannot open the store pets.db')).toBe(other)
  }
})

test('an error of SQLite makes the store unavailable, with its code; any other is a bug, with its stack', async () => {
  using database = new Database(':memory:')
  database.run('PRAGMA query_only = ON')
  const cause = await Promise.try(() => database.run('CREATE TABLE a (b)')).catch(error => error)
  expect(sqliteUnavailable(cause)).toBeInstanceOf(StoreUnavailable)
  expect(sqliteUnavailable(cause)).toMatchObject({ message: 'SQLite: SQLITE_READONLY', problem: 'not-writable', cause })
  expect(toFailure(new Error('no'))).toEqual({ kind: 'bug', message: expect.stringMatching(/^Error: no\n +at /) })
})
