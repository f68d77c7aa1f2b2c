import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/process.ts'
import { SetupError } from '../errors.ts'
import { writeNewFile } from './new-file.ts'

test('a file gets its name when it is complete, is else deleted, and only its owner can read it', async () => {
  using folder = temporaryFolder()
  const target = join(folder.path, 'copy.db')
  for (const isComplete of [false, true]) {
    const writing = writeNewFile(target, 'Cannot export', async path => {
      writeFileSync(path, 'four')
      expect(existsSync(target)).toBe(false)
      if (!isComplete) throw new Error('a bug')
      return 'written'
    })
    if (isComplete) expect(await writing).toEqual({ result: 'written', bytes: 4 })
    else await expect(writing).rejects.toThrow(new Error('a bug'))
    expect(readdirSync(folder.path)).toEqual(isComplete ? ['copy.db'] : [])
  }
  expect(statSync(target).mode & 0o777).toBe(0o600)
})

test('a file that appears meanwhile is not overwritten', async () => {
  using folder = temporaryFolder()
  const target = join(folder.path, 'copy.db')
  const writing = writeNewFile(target, 'Cannot export', async () => writeFileSync(target, 'mine'))
  await expect(writing).rejects.toThrow(new SetupError('Cannot export: the file exists; choose another name'))
  expect(readFileSync(target, 'utf8')).toBe('mine')
  expect(readdirSync(folder.path)).toEqual(['copy.db'])
})

test.each([
  ['an existing file', 'taken', 'the file exists; choose another name'],
  ['a missing folder', 'nowhere/copy.db', 'its folder does not exist (ENOENT); create it'],
])('%s is refused, and nothing is left behind', async (_, target, problem) => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'taken'), 'mine')
  const writing = writeNewFile(join(folder.path, target), 'Cannot export', async () => {})
  await expect(writing).rejects.toThrow(new SetupError(`Cannot export: ${problem}`))
  expect(readdirSync(folder.path)).toEqual(['taken'])
})
