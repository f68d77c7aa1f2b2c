import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { petstore, projectFolder, run, startServer, temporaryFolder, testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

interface Attempt {
  readonly cwd: string
  readonly args?: readonly string[]
  readonly env?: Record<string, string>
}

/** The lines on stderr of a server that cannot start. */
async function refusedLines(exitCode: 1 | 2, { cwd, args = [], env = {} }: Attempt): Promise<string[]> {
  const ended = await petstore(['serve', ...args], { cwd, env: { PORT: '0', ...env } })
  expect(ended).toMatchObject({ exitCode, stdout: '' })
  expect(ended.stderr).not.toMatch(/\n\s+at /)
  expect(ended.stderr).toEndWith('\n')
  return ended.stderr.trimEnd().split('\n')
}

test('all invalid settings are reported at once, each on its own line, and no store is created', async () => {
  using folder = temporaryFolder()
  const env = {
    PORT: '65536',
    DATABASE_URL: 'mysql://somebody:secret@db/pets',
    PETSTORE_API_KEY: 'secret-15-chars',
    PETSTORE_REUSE_PORT: 'yes',
  }
  const lines = await refusedLines(2, {
    cwd: folder.path,
    env,
    args: ['--staging-url', 'pets', '--tls-cert', 'no.pem'],
  })
  expect(lines).toEqual([
    'petstore: PORT is "65536": expected an integer from 0 to 65535',
    'petstore: PETSTORE_REUSE_PORT is "yes": expected true or false',
    expect.stringMatching(/^petstore: DATABASE_URL is invalid: expected /),
    expect.stringMatching(/^petstore: PETSTORE_API_KEY is invalid \(15 characters\): /),
    expect.stringMatching(/^petstore: --staging-url is "pets": /),
    'petstore: --tls-cert is "no.pem": expected a file that exists',
    'petstore: --tls-cert and --tls-key: set both or neither',
  ])
  expect(lines.join()).not.toContain('secret')
  expect(readdirSync(folder.path)).toEqual([])
})

test('an address of another machine is refused', async () => {
  using folder = temporaryFolder()
  const lines = await refusedLines(1, { cwd: folder.path, args: ['--host', '192.0.2.1'] })
  expect(lines).toEqual([expect.stringMatching(/^petstore: Cannot listen on 192\.0\.2\.1:0: /)])
})

test.each<[string, (file: string) => void]>([
  ['a text file', file => writeFileSync(file, 'Dear diary,\n')],
  [
    'a database of another program',
    file => {
      using database = new Database(file)
      database.run('CREATE TABLE books (title TEXT)')
    },
  ],
])('%s is refused and not changed', async (_, write) => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'other.db')
  write(file)
  const before = readFileSync(file)
  const lines = await refusedLines(1, { cwd: folder.path, args: ['--database-url', 'sqlite:other.db'] })
  expect(lines).toEqual([expect.stringMatching(/^petstore: .*other\.db: .*(SQLite|program)/)])
  expect(readFileSync(file).equals(before)).toBe(true)
  expect(readdirSync(folder.path)).toEqual(['other.db'])
})

test('a folder without write permission is refused', async () => {
  using folder = temporaryFolder()
  const locked = join(folder.path, 'locked')
  mkdirSync(locked)
  chmodSync(locked, 0o500)
  // Modes do not stop root; the kernel's own tree does.
  const place = process.getuid?.() === 0 ? '/sys' : locked
  for (const file of [join(place, 'petstore.db'), join(place, 'new', 'petstore.db')]) {
    const lines = await refusedLines(1, { cwd: folder.path, args: ['--database-url', `sqlite:${file}`] })
    expect(lines).toEqual([expect.stringContaining(`Cannot open the store ${file}: `)])
  }
})

test('if the greeting cannot be written, the server ends and revokes the first key', async () => {
  using folder = temporaryFolder()
  const command = `"${join(projectFolder, 'bin/petstore')}" serve --port 0 > /dev/full`
  const { exitCode, stderr } = await run(['sh', '-c', command], { cwd: folder.path })
  expect(exitCode).toBe(1)
  expect(stderr).toContain('petstore: Cannot write the address to stdout')
  expect(stderr).not.toMatch(/\n\s+at /)
  const { stdout } = await petstore(['keys', 'list', '--json'], { cwd: folder.path })
  expect(JSON.parse(stdout)).toEqual([expect.objectContaining({ name: 'first', revokedAt: expect.any(String) })])
})

test('a store that another program has locked is reported in one line', async () => {
  using folder = temporaryFolder()
  await (await startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: 'a-key-from-outside-0123456789' } })).stop(
    'SIGTERM',
  )
  using other = new Database(join(folder.path, 'data/petstore.db'))
  other.run('BEGIN EXCLUSIVE')
  const { exitCode, stderr } = await petstore(['serve', '--port', '0'], { cwd: folder.path })
  expect(exitCode).toBe(1)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
})

test('an incomplete installation is refused, and the missing file is named', async () => {
  using folder = temporaryFolder()
  for (const name of ['src', 'bin', 'package.json'])
    cpSync(join(projectFolder, name), join(folder.path, name), { recursive: true })
  symlinkSync(join(projectFolder, 'node_modules'), join(folder.path, 'node_modules'))
  rmSync(join(folder.path, 'src/web/docs/docs.js'))
  const program = join(folder.path, 'bin/petstore')
  const { exitCode, stdout, stderr } = await run([program, 'serve', '--port', '0'], { cwd: folder.path })
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toMatch(/^petstore: .*\/docs\/docs\.js.*\n$/)
})
