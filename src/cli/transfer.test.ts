import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/process.ts'
import { SetupError } from '../errors.ts'
import { createNewFile, newFileProblem } from './transfer.ts'

test('a file gets its name when it is complete, is else deleted, and only its owner can read it', async () => {
  using folder = temporaryFolder()
  const target = join(folder.path, 'copy.db')
  for (const isComplete of [false, true]) {
    {
      await using file = await createNewFile(target)
      writeFileSync(file.path, 'four')
      expect(existsSync(target)).toBe(false)
      if (isComplete) expect(await file.publish()).toBe(4)
    }
    expect(readdirSync(folder.path)).toEqual(isComplete ? ['copy.db'] : [])
  }
  expect(statSync(target).mode & 0o777).toBe(0o600)
})

test('a file that appears meanwhile is not overwritten', async () => {
  using folder = temporaryFolder()
  const target = join(folder.path, 'copy.db')
  await using file = await createNewFile(target)
  writeFileSync(target, 'mine')
  await expect(file.publish()).rejects.toThrow('EEXIST')
  expect(readFileSync(target, 'utf8')).toBe('mine')
})

test.each([
  ['an existing file', 'taken', 'the file exists; choose another name (EEXIST)'],
  ['a missing folder', 'nowhere/copy.db', 'its folder does not exist; create it (ENOENT)'],
  ['a folder that is a file', 'taken/copy.db', 'its folder does not exist; create it (ENOTDIR)'],
])('%s is refused, and nothing is left behind', async (_, target, problem) => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'taken'), 'mine')
  const attempt = async () => {
    try {
      await createNewFile(join(folder.path, target))
    } catch (error) {
      throw newFileProblem('Cannot export', error)
    }
  }
  await expect(attempt()).rejects.toThrow(new SetupError(`Cannot export: ${problem}`))
  expect(readdirSync(folder.path)).toEqual(['taken'])
})

test('other errors are not explained', () => {
  const error = new Error('a bug')
  expect(newFileProblem('Cannot export', error)).toBe(error)
})
