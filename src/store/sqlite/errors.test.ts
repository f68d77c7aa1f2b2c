import { expect, test } from 'bun:test'
import { SetupError } from '../../errors.ts'
import { setupErrorOf } from './errors.ts'

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
    const error = setupErrorOf(Object.assign(new Error('no'), { code }), 'pets.db')
    expect(error).toBeInstanceOf(SetupError)
    expect((error as Error).message).toStartWith(`Cannot open the store pets.db: ${problem}; `)
    expect((error as Error).message).toEndWith(` (${code})`)
  }
})

test('an error that is no problem of the file stays as it is', () => {
  const known = new SetupError('known')
  const other = Object.assign(new Error('a bug'), { code: 'XSQLITE_FULL' })
  for (const error of [known, other, undefined]) expect(setupErrorOf(error, 'pets.db')).toBe(error)
})
