import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { temporaryFolder } from '../support/folder.ts'
import { createKey, listKeys, revokeKey } from '../support/keys.ts'
import { petstore, testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const firstCharacters = (key: string) => key.slice(0, 'pets_'.length + 4)

/** The names of the keys that are still in force. */
async function inForce(cwd: string): Promise<string[]> {
  return (await listKeys(cwd)).filter(key => key.revokedAt === null).map(key => key.name)
}

test.each([
  ['its name', () => 'till'],
  ['its first characters', firstCharacters],
  ['the whole key', (key: string) => key],
])('keys revoke by %s ends that key alone, and does not repeat it', async (_, which) => {
  using folder = temporaryFolder()
  const key = await createKey(folder.path, 'till')
  await createKey(folder.path, 'spare')
  const ended = await revokeKey(folder.path, which(key))
  expect(ended).toMatchObject({ exitCode: 0, stdout: '' })
  expect(ended.stderr).toStartWith(`Key "till" (${firstCharacters(key)}…) is revoked`)
  expect(ended.stderr).not.toContain(key)
  expect(await inForce(folder.path)).toEqual(['spare'])
})

test('a name that two keys have revokes neither, and the candidates are named', async () => {
  using folder = temporaryFolder()
  const keys = [await createKey(folder.path, 'till'), await createKey(folder.path, 'till')]
  const ended = await revokeKey(folder.path, 'till')
  expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
  expect(ended.stderr).toMatch(/^petstore: 2 keys are called "till": .*\n$/)
  for (const key of keys) {
    expect(ended.stderr).toContain(firstCharacters(key))
    expect(ended.stderr).not.toContain(key)
  }
  expect(await inForce(folder.path)).toEqual(['till', 'till'])

  await revokeKey(folder.path, firstCharacters(keys[0] ?? ''))
  expect((await revokeKey(folder.path, 'till')).exitCode).toBe(0)
  expect(await inForce(folder.path)).toEqual([])
})

test('a key that is unknown, or was revoked before, is exit code 1 in one line', async () => {
  using folder = temporaryFolder()
  await createKey(folder.path, 'till')
  await revokeKey(folder.path, 'till')
  for (const which of ['nobody', 'till', 'pets_0000', '']) {
    const ended = await revokeKey(folder.path, which)
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^petstore: No key in force is called ".*\n$/)
  }
})

test.each([
  ['list', ['list']],
  ['list --json', ['list', '--json']],
  ['revoke till', ['revoke', 'till']],
])('keys %s without a store says so, and makes none', async (_, args) => {
  using folder = temporaryFolder()
  const ended = await petstore(['keys', ...args], { cwd: folder.path })
  expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
  expect(ended.stderr).toMatch(/^petstore: There is no store at data\/petstore\.db: .*\n$/)
  expect(readdirSync(folder.path)).toEqual([])
})

test('keys list shows a table with a header, every key by its first characters, none of them whole', async () => {
  using folder = temporaryFolder()
  const till = await createKey(folder.path, 'till')
  const screen = await createKey(folder.path, 'Schaufenster 🐈', '--read-only', '--expires', '90d')
  await revokeKey(folder.path, 'till')
  const { exitCode, stdout, stderr } = await petstore(['keys', 'list'], { cwd: folder.path })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const minute = expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\dZ$/)
  const revoked = expect.stringMatching(/^revoked \d{4}-\d\d-\d\d \d\d:\d\dZ$/)
  const cells = stdout
    .trimEnd()
    .split('\n')
    .map(line => line.split(/ {2,}/))
  expect(cells).toEqual([
    ['NAME', 'KEY', 'ACCESS', 'CREATED', 'EXPIRES', 'LAST USED', 'DEPRECATED CALLS'],
    ['till', `${firstCharacters(till)}…`, 'read-write', minute, revoked, 'never', 'none'],
    ['Schaufenster 🐈', `${firstCharacters(screen)}…`, 'read-only', minute, minute, 'never', 'none'],
  ])
  expect(stdout).not.toContain(till)
  expect(stdout).not.toContain(screen)
})

test('keys list of a store without keys prints nothing on stdout, and says how to make one', async () => {
  using folder = temporaryFolder()
  const args = ['--database-url', 'sqlite:pets.db']
  await Bun.write(`${folder.path}/pets.db`, '')
  const listed = await petstore(['keys', 'list', ...args], { cwd: folder.path })
  expect(listed).toMatchObject({ exitCode: 0, stdout: '' })
  expect(listed.stderr).toContain('keys create --name')
  expect((await petstore(['keys', 'list', '--json', ...args], { cwd: folder.path })).stdout).toBe('[]\n')
})
