import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { SetupError, StoreUnavailable } from '../../errors.ts'
import { failureOf, sqliteSetupError, sqliteStoreError } from './errors.ts'

test.each([
  ['it is not an SQLite database', 'SQLITE_NOTADB'],
  ['the file is damaged', 'SQLITE_CORRUPT', 'SQLITE_CORRUPT_INDEX'],
  ['another process has locked it', 'SQLITE_BUSY', 'SQLITE_LOCKED', 'SQLITE_BUSY_RECOVERY'],
  ['the disk is full', 'SQLITE_FULL', 'ENOSPC', 'EDQUOT'],
  ['it is not a regular file', 'EISDIR'],
  ['no permission to write there', 'SQLITE_READONLY', 'EACCES', 'EPERM', 'EROFS'],
  ['its folder cannot be used', 'SQLITE_CANTOPEN', 'SQLITE_IOERR_WRITE', 'ENOENT', 'ENOTDIR', 'EEXIST'],
])('a store that cannot be opened is reported as "%s": %s', (problem, ...codes) => {
  for (const code of codes) {
    const cause = Object.assign(new Error('no'), { code })
    const error = sqliteSetupError(cause, 'pets.db') as Error
    expect(error).toBeInstanceOf(SetupError)
    expect(error.message).toStartWith(`Cannot open the store pets.db: ${problem}; `)
    expect(error.message).toEndWith(` (${code})`)
    expect(error.cause).toBe(cause)
    for (const other of [Object.assign(new Error(), { code: `X${code}` }), Object.assign(new SetupError(), { code })]) {
      expect(sqliteSetupError(other, 'pets.db')).toBe(other)
    }
  }
})

test('an error of SQLite makes the store unavailable, with its code; any other is a bug, with its stack', async () => {
  using database = new Database(':memory:')
  database.run('PRAGMA query_only = ON')
  const cause = await Promise.try(() => database.run('CREATE TABLE a (b)')).catch(error => error)
  expect(sqliteStoreError(cause)).toBeInstanceOf(StoreUnavailable)
  expect(sqliteStoreError(cause)).toMatchObject({ message: 'SQLite: SQLITE_READONLY', cause })
  expect(failureOf(new Error('no'))).toEqual({ kind: 'bug', message: expect.stringMatching(/^Error: no\n +at /) })
})
