import { expect } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { projectFolder, run, temporaryFolder } from './support/process.ts'
import { test } from './support/test.ts'

const script = join(projectFolder, 'scripts/release.mjs')
const lock = (version: string) => JSON.stringify({ version, packages: { '': { version: '1.2.3' } } })
const changelog = (headings: string) => `# Changelog\n\n${headings}\n\n### Added\n\n- A thing.\n`
const releasable = {
  'package.json': '{ "name": "petstore", "version": "1.2.3" }',
  'package-lock.json': lock('1.2.3'),
  'src/client/package.json': '{ "name": "petstore-client", "version": "1.2.3" }',
  'CHANGELOG.md': changelog('## 1.2.3 - 2026-11-16'),
}
type Files = Readonly<Record<string, string>>

const author = ['AUTHOR', 'COMMITTER'].flatMap(who => [
  [`GIT_${who}_NAME`, 'Ada'],
  [`GIT_${who}_EMAIL`, 'ada@example.com'],
])
const env = { ...Object.fromEntries(author), GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }

/** Runs the script in a repository that can be released as 1.2.3, except for these files and commands. */
async function release(files: Files, commands: string, ...args: readonly string[]) {
  using folder = temporaryFolder()
  const cwd = folder.path
  for (const [file, text] of Object.entries({ ...releasable, ...files })) {
    mkdirSync(dirname(join(cwd, file)), { recursive: true })
    if (text !== '') writeFileSync(join(cwd, file), text)
  }
  const lines = ['git init -q -b main', 'git add .', 'git commit -q -m First', 'git tag v1.2.3', commands]
  const made = await run(['bash', '-euc', lines.join('\n')], { cwd, env })
  expect(made).toMatchObject({ exitCode: 0, stderr: '' })
  return await run(['node', script, ...args], { cwd })
}

test.each<[string, Files, commands?: string]>([
  ['everything agrees', {}],
  ['the tag is annotated', {}, 'git tag -f -a -m "petstore 1.2.3" v1.2.3 > /dev/null'],
  ['another tag is on the same commit', {}, 'git tag latest'],
])('a version can be released if %s', async (_, files, commands = '') => {
  const expected = { exitCode: 0, stdout: 'Version 1.2.3 can be released\n', stderr: '' }
  expect(await release(files, commands, '--check')).toMatchObject(expected)
})

const client = 'src/client/package.json'
const isCurrent = 'but package.json has version 1.2.3'
const isOther = `has version 1.2.2, ${isCurrent}`
const undated = 'CHANGELOG.md has no heading "## 1.2.3 - YYYY-MM-DD" with the date of the release'
const ignored = { '.gitignore': '.env*\n', 'src/.env.local': 'SECRET=1\n' }

test.each<[problem: string, Files, commands?: string]>([
  [`package-lock.json ${isOther}`, { 'package-lock.json': lock('1.2.2') }],
  [`${client} ${isOther}`, { [client]: '{ "version": "1.2.2" }' }],
  [`${client} has no version, but .*`, { [client]: '{}' }],
  [`${client} cannot be read: ENOENT.*`, { [client]: '' }],
  [`docs/install.md:1 names petstore-1.2.2, ${isCurrent}`, { 'docs/install.md': 'npx ./petstore-1.2.2.tgz\n' }],
  ['Containerfile:1 names image.version=1.2.2, but .*', { Containerfile: 'LABEL image.version=1.2.2\n' }],
  ['deploy/pod.yaml:1 names petstore:1.2.2, but .*', { 'deploy/pod.yaml': 'image: example.com/petstore:1.2.2\n' }],
  ['SECURITY.md:1 says that something is not published yet', { 'SECURITY.md': 'Nothing is published yet.\n' }],
  [undated, { 'CHANGELOG.md': changelog('## 1.2.3 - unreleased') }],
  [undated, { 'CHANGELOG.md': changelog('## 1.2.2 - 2026-11-16') }],
  ['Files that git ignores could be in the package: src/.env.local', ignored],
  ['Files are not committed: new.txt', {}, 'touch new.txt'],
  ['Files are not committed: CHANGELOG.md', {}, 'echo >> CHANGELOG.md'],
  ['The tag v1.2.3 does not exist: create it with git tag -a v1.2.3 .*', {}, 'git tag -d v1.2.3 > /dev/null'],
  ['The tag v1.2.3 is on commit \\w{7}, but HEAD is \\w{7}', {}, 'git commit -q --allow-empty -m Second'],
])('no version is released if %s', async (problem, files, commands = '') => {
  const { exitCode, stdout, stderr } = await release(files, commands)
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  const [heading, ...problems] = stderr.trimEnd().split('\n  ')
  expect(heading).toBe('petstore: Version 1.2.3 cannot be released:')
  expect(problems).toEqual([expect.stringMatching(new RegExp(`^${problem}$`))])
})

test('all problems of a release are reported together', async () => {
  const files = {
    'package-lock.json': lock('1.2.2'),
    [client]: '',
    'CHANGELOG.md': changelog('## 1.2.3 - unreleased'),
  }
  const { stderr } = await release(files, 'git tag -d v1.2.3 > /dev/null; touch new.txt')
  expect(stderr.trimEnd().split('\n')).toHaveLength(6)
})
