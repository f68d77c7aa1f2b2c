import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { projectFolder, run, temporaryFolder } from './support/process.ts'

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

test.each([
  ['light', ''],
  ['annotated, beside another one', 'git tag -f -a -m "petstore 1.2.3" v1.2.3 > /dev/null; git tag latest'],
])('a version can be released if everything agrees and the tag is %s', async (_, commands) => {
  const expected = { exitCode: 0, stdout: 'Version 1.2.3 can be released\n', stderr: '' }
  expect(await release({}, commands, '--check')).toMatchObject(expected)
})

const client = 'src/client/package.json'
const isCurrent = 'but package.json has version 1.2.3'
const undated = 'CHANGELOG.md has no heading "## 1.2.3 - YYYY-MM-DD" with the date of the release'
const untagged = "The tag v1.2.3 does not exist: create it with git tag -a v1.2.3 -m 'petstore 1.2.3'"

test.each<[string, problems: readonly string[], Files, commands?: string]>([
  [
    'nothing agrees',
    [
      `package-lock.json has version 1.2.2, ${isCurrent}`,
      `${client} has version 1.2.2, ${isCurrent}`,
      `Containerfile:1 names image.version=1.2.2, ${isCurrent}`,
      `deploy/pod.yaml:1 names petstore:1.2.2, ${isCurrent}`,
      `docs/install.md:1 names petstore-1.2.2, ${isCurrent}`,
      'SECURITY.md:1 says that something is not published yet',
      undated,
      'Files are not committed: CHANGELOG.md, new.txt',
      'Files that git ignores could be in the package: src/.env.local',
      untagged,
    ],
    {
      'package-lock.json': lock('1.2.2'),
      [client]: '{ "version": "1.2.2" }',
      Containerfile: 'LABEL image.version=1.2.2\n',
      'deploy/pod.yaml': 'image: example.com/petstore:1.2.2\n',
      'docs/install.md': 'npx ./petstore-1.2.2.tgz\n',
      'SECURITY.md': 'Nothing is published yet.\n',
      'CHANGELOG.md': changelog('## 1.2.3 - unreleased'),
      '.gitignore': '.env*\n',
      'src/.env.local': 'SECRET=1\n',
    },
    'git tag -d v1.2.3 > /dev/null; touch new.txt; echo >> CHANGELOG.md',
  ],
  [
    'the client is missing, and the tag is on another commit',
    [`${client} cannot be read: ENOENT.*`, 'The tag v1.2.3 is on commit \\w{7}, but HEAD is \\w{7}'],
    { [client]: '' },
    'git commit -q --allow-empty -m Second',
  ],
])('nothing is released, and every problem is reported: %s', async (_, problems, files, commands = '') => {
  const { exitCode, stdout, stderr } = await release(files, commands)
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  const [heading, ...found] = stderr.trimEnd().split('\n  ')
  expect(heading).toBe('petstore: Version 1.2.3 cannot be released:')
  expect(found).toEqual(problems.map(problem => expect.stringMatching(new RegExp(`^${problem}$`))))
})
