import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/folder.ts'
import { petstore, projectFolder, run, startServer, testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

interface Attempt {
  readonly cwd: string
  readonly args?: readonly string[]
  readonly env?: Record<string, string>
}

/** Starts what cannot start, and gives its lines on stderr: whole sentences, never a stack trace. */
async function refusedLines(exitCode: 1 | 2, { cwd, args = [], env = {} }: Attempt): Promise<string[]> {
  const ended = await petstore(['serve', ...args], { cwd, env: { PORT: '0', ...env } })
  expect(ended).toMatchObject({ exitCode, stdout: '' })
  expect(ended.stderr).not.toMatch(/\n\s+at /)
  expect(ended.stderr).toEndWith('\n')
  return ended.stderr.trimEnd().split('\n')
}

const tooShort = 'fifteen-chars-x'

test('a PETSTORE_API_KEY of 15 characters is refused, and not shown', async () => {
  using folder = temporaryFolder()
  const lines = await refusedLines(2, { cwd: folder.path, env: { PETSTORE_API_KEY: tooShort } })
  expect(lines).toEqual([expect.stringMatching(/^petstore: Cannot use PETSTORE_API_KEY .*at least 16/)])
  expect(lines.join()).not.toContain(tooShort)
  expect(readdirSync(folder.path)).toEqual([])
})

test('all mistakes in the settings are told at once, each on its own line, and nothing is made', async () => {
  using folder = temporaryFolder()
  const env = {
    PORT: '65536',
    HOST: 'not a host',
    DATABASE_URL: 'mysql://somebody:secret@db/pets',
    PETSTORE_API_KEY: tooShort,
    PETSTORE_PUBLIC_URL: 'ftp://pets.example.com',
  }
  const lines = await refusedLines(2, { cwd: folder.path, env, args: ['--staging-url', 'pets'] })
  expect(lines).toEqual([
    expect.stringContaining('Cannot read PORT "65536"'),
    expect.stringContaining('Cannot read HOST "not a host"'),
    expect.stringContaining('Cannot read DATABASE_URL'),
    expect.stringContaining('Cannot use PETSTORE_API_KEY'),
    expect.stringContaining('Cannot read PETSTORE_PUBLIC_URL "ftp://pets.example.com"'),
    expect.stringContaining('Cannot read --staging-url "pets"'),
  ])
  expect(lines.join()).not.toContain('secret')
  expect(readdirSync(folder.path)).toEqual([])
})

test.each(['', 'abc', '-1', '80.5', '0x50'])('--port=%s is misuse', async port => {
  using folder = temporaryFolder()
  const lines = await refusedLines(2, { cwd: folder.path, args: [`--port=${port}`] })
  expect(lines).toEqual([`petstore: Cannot read --port "${port}": expected a whole number from 0 to 65535`])
})

test('an address that is not of this machine is named', async () => {
  using folder = temporaryFolder()
  const lines = await refusedLines(1, { cwd: folder.path, args: ['--host', '192.0.2.1'] })
  expect(lines).toEqual([expect.stringMatching(/^petstore: Cannot listen on 192\.0\.2\.1:0: /)])
})

test.each([
  ['a text', 'Dear diary,\n'],
  ['random bytes', crypto.getRandomValues(new Uint8Array(8192))],
])('a file with %s is no database, and stays byte for byte as it was', async (_, bytes) => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'diary.db')
  writeFileSync(file, bytes)
  const lines = await refusedLines(1, { cwd: folder.path, args: ['--database-url', 'sqlite:diary.db'] })
  expect(lines).toEqual([expect.stringContaining('diary.db: it is not an SQLite database')])
  expect(readFileSync(file).equals(Buffer.from(bytes))).toBe(true)
  expect(readdirSync(folder.path)).toEqual(['diary.db'])
})

test('a database of another program is refused, and stays byte for byte as it was', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'books.db')
  using database = new Database(file)
  database.run('CREATE TABLE books (title TEXT)')
  database.close()
  const before = readFileSync(file)
  const lines = await refusedLines(1, { cwd: folder.path, args: ['--database-url', 'sqlite:books.db'] })
  expect(lines).toEqual([expect.stringContaining('books.db: it is a database of another program')])
  expect(readFileSync(file).equals(before)).toBe(true)
  expect(readdirSync(folder.path)).toEqual(['books.db'])
})

test('a store of a newer version is refused: the program is told to be the older one', async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  await petstore(['keys', 'create', '--name', 'till', '--database-url', 'sqlite:pets.db'], { cwd })
  using database = new Database(join(cwd, 'pets.db'))
  database.run('PRAGMA user_version = 99')
  database.close()
  const lines = await refusedLines(1, { cwd, args: ['--database-url', 'sqlite:pets.db'] })
  expect(lines).toEqual([expect.stringMatching(/pets\.db has schema version 99, .* upgrade the program$/)])
})

test('a folder that nobody may write to is refused', async () => {
  using folder = temporaryFolder()
  const locked = join(folder.path, 'locked')
  mkdirSync(locked)
  chmodSync(locked, 0o500)
  // Modes do not stop root; the kernel's own tree does.
  const place = process.getuid?.() === 0 ? '/sys' : locked
  for (const file of [join(place, 'petstore.db'), join(place, 'new', 'petstore.db')]) {
    const lines = await refusedLines(1, { cwd: folder.path, args: ['--database-url', `sqlite:${file}`] })
    expect(lines).toEqual([
      expect.stringContaining(`Cannot open the store ${file}: no permission to write there`),
    ])
  }
})

test('a folder in the place of the file is refused', async () => {
  using folder = temporaryFolder()
  mkdirSync(join(folder.path, 'pets.db'))
  const lines = await refusedLines(1, { cwd: folder.path, args: ['--database-url', 'sqlite:pets.db'] })
  expect(lines).toEqual([expect.stringContaining('Cannot open the store pets.db: ')])
})

test('where the greeting cannot be written it ends, and the key that nobody saw is revoked', async () => {
  using folder = temporaryFolder()
  const command = `"${join(projectFolder, 'bin/petstore')}" serve --port 0 > /dev/full`
  const { exitCode, stderr } = await run(['sh', '-c', command], { cwd: folder.path })
  expect(exitCode).toBe(1)
  expect(stderr).toContain('petstore: Cannot write to stdout')
  expect(stderr).not.toMatch(/\n\s+at /)
  const { stdout } = await petstore(['keys', 'list', '--json'], { cwd: folder.path })
  expect(JSON.parse(stdout)).toEqual([
    expect.objectContaining({ name: 'first', revokedAt: expect.any(String) }),
  ])
})

test('where the store is locked by another program it ends, in one line', async () => {
  using folder = temporaryFolder()
  await (
    await startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: 'a-key-from-outside-0123456789' } })
  ).stop('SIGTERM')
  using other = new Database(join(folder.path, 'data/petstore.db'))
  other.run('BEGIN EXCLUSIVE')
  const { exitCode, stderr } = await petstore(['serve', '--port', '0'], { cwd: folder.path })
  expect(exitCode).toBe(1)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
})

test('where a page is missing it names the file, and serves nothing', async () => {
  using folder = temporaryFolder()
  for (const name of ['src', 'bin', 'package.json'])
    cpSync(join(projectFolder, name), join(folder.path, name), { recursive: true })
  symlinkSync(join(projectFolder, 'node_modules'), join(folder.path, 'node_modules'))
  rmSync(join(folder.path, 'src/web/docs/docs.js'))
  const program = join(folder.path, 'bin/petstore')
  const { exitCode, stdout, stderr } = await run([program, 'serve', '--port', '0'], { cwd: folder.path })
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toMatch(/^petstore: The installation is not complete: .*\/docs\/docs\.js is missing; .*\n$/)
})
