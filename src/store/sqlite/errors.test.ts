import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { StoreError, type StoreProblem, StoreUnavailable } from '../../errors.ts'
import { failureOf, sqliteStoreError, sqliteUnavailable } from './errors.ts'

test.each<[StoreProblem, string, ...string[]]>([
  ['foreign-file', 'it is not an SQLite database', 'SQLITE_NOTADB'],
  ['damaged', 'the file is damaged', 'SQLITE_CORRUPT', 'SQLITE_CORRUPT_INDEX'],
  ['locked', 'another process has locked it', 'SQLITE_BUSY', 'SQLITE_LOCKED', 'SQLITE_BUSY_RECOVERY'],
  ['disk-full', 'the disk is full', 'SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE', 'ENOSPC', 'EDQUOT'],
  ['not-a-file', 'it is not a regular file', 'EISDIR'],
  ['no-permission', 'no permission to write there', 'SQLITE_READONLY', 'EACCES', 'EPERM'],
  ['read-only', 'the file system is read-only', 'EROFS'],
  ['no-folder', 'its folder cannot be used', 'SQLITE_CANTOPEN', 'SQLITE_IOERR_WRITE', 'ENOENT', 'ENOTDIR', 'EEXIST'],
])('a store that cannot be opened has the problem %s, "%s", for %s', (problem, happened, ...codes) => {
  for (const code of codes) {
    const cause = Object.assign(new Error('no'), { code })
    const error = sqliteStoreError(cause, 'Cannot open the store pets.db')
    expect(error).toBeInstanceOf(StoreError)
    const message = `Cannot open the store pets.db: ${happened} (${code})`
    expect(error).toMatchObject({ problem, message, cause })
    for (const other of [Object.assign(new Error(), { code: `X${code}` }), new StoreError('no-file', code)]) {
      expect(sqliteStoreError(other, 'Cannot open the store pets.db')).toBe(other)
    }
  }
})

test('an error of SQLite makes the store unavailable, with its code; any other is a bug, with its stack', async () => {
  using database = new Database(':memory:')
  database.run('PRAGMA query_only = ON')
  const cause = await Promise.try(() => database.run('CREATE TABLE a (b)')).catch(error => error)
  expect(sqliteUnavailable(cause)).toBeInstanceOf(StoreUnavailable)
  expect(sqliteUnavailable(cause)).toMatchObject({ message: 'SQLite: SQLITE_READONLY', problem: 'read-only', cause })
  expect(failureOf(new Error('no'))).toEqual({ kind: 'bug', message: expect.stringMatching(/^Error: no\n +at /) })
})
