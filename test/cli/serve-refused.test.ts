import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createKey,
  listKeys,
  petstore,
  portOf,
  projectFolder,
  run,
  startServer,
  temporaryFolder,
  testMsMax,
} from '../support/process.ts'
import { program } from './child.ts'

setDefaultTimeout(testMsMax)

/** The lines on stderr of a server that cannot start. */
async function refusedLines(exitCode: 1 | 2, cwd: string, args: readonly string[] = [], env = {}): Promise<string[]> {
  const ended = await petstore(['serve', ...args], { cwd, env: { PORT: '0', ...env } })
  expect(ended).toMatchObject({ exitCode, stdout: '' })
  expect(ended.stderr).not.toMatch(/\n\s+at /)
  expect(ended.stderr).toEndWith('\n')
  return ended.stderr.trimEnd().split('\n')
}

test('all invalid settings are reported at once, each on its own line, and no store is created', async () => {
  using folder = temporaryFolder()
  const env = { PORT: '65536', DATABASE_URL: 'mysql://somebody:secret@db/pets', PETSTORE_API_KEY: 'secret-15-chars' }
  const lines = await refusedLines(2, folder.path, ['--tls-cert', 'no.pem'], env)
  expect(lines).toEqual([
    'petstore: PORT is "65536": expected an integer from 0 to 65535',
    expect.stringMatching(/^petstore: DATABASE_URL is invalid: expected /),
    expect.stringMatching(/^petstore: PETSTORE_API_KEY is invalid \(15 characters\): /),
    'petstore: --tls-cert is "no.pem": expected a file that exists',
    'petstore: --tls-cert and --tls-key: set both or neither',
  ])
  expect(lines.join()).not.toContain('secret')
  expect(readdirSync(folder.path)).toEqual([])
})

test.each([
  ['a server', []],
  ['servers that share it', ['--reuse-port']],
])('a port that %s uses is refused, and the first server continues', async (_, flags) => {
  using folder = temporaryFolder()
  const key = await createKey(folder.path, 'till')
  await using server = await startServer({ cwd: folder.path, args: ['serve', '--port', '0', ...flags] })
  const args = ['--port', `${portOf(server)}`, '--database-url', 'sqlite:second.db']
  const lines = await refusedLines(1, folder.path, args)
  expect(lines.at(-1)).toMatch(/^petstore: Cannot listen on 127\.0\.0\.1:\d+: /)
  expect((await server.fetch('/pets', key)).status).toBe(200)
})

// Modes do not stop root; the kernel's own tree does.
const readOnly = process.getuid?.() === 0 ? '/sys' : 'locked'

test.each<[string, string, RegExp]>([
  ['an address of another machine', '--host 192.0.2.1', /Cannot listen on 192\.0\.2\.1:0: /],
  ['a file that is not a database', '--database-url sqlite:diary.db', /diary\.db: .*SQLite/],
  ['a folder without write permission', `--database-url sqlite:${readOnly}/a.db`, /Cannot open the store .*a\.db: /],
  ['a folder that cannot be created', `--database-url sqlite:${readOnly}/b/c.db`, /Cannot open the store .*c\.db: /],
])('%s is refused in one line', async (_, args, problem) => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'diary.db'), 'Dear diary,\n')
  mkdirSync(join(folder.path, 'locked'), { mode: 0o500 })
  const lines = await refusedLines(1, folder.path, args.split(' '))
  expect(lines).toEqual([expect.stringMatching(problem)])
  expect(readFileSync(join(folder.path, 'diary.db'), 'utf8')).toBe('Dear diary,\n')
  expect(readdirSync(folder.path).filter(name => name.startsWith('diary'))).toEqual(['diary.db'])
})

test('a store that another program has locked is reported in one line', async () => {
  using folder = temporaryFolder()
  await createKey(folder.path, 'till')
  using other = new Database(join(folder.path, 'data/petstore.db'))
  other.run('BEGIN EXCLUSIVE')
  expect(await refusedLines(1, folder.path)).toHaveLength(1)
})

test('if the greeting cannot be written, the server ends and revokes the first key', async () => {
  using folder = temporaryFolder()
  const command = ['sh', '-c', `"${program}" serve --port 0 > /dev/full`]
  const { exitCode, stderr } = await run(command, { cwd: folder.path })
  expect(exitCode).toBe(1)
  expect(stderr).toContain('petstore: Cannot write the address to stdout')
  expect(stderr).not.toMatch(/\n\s+at /)
  expect(await listKeys(folder.path)).toMatchObject([{ name: 'first', revokedAt: expect.any(String) }])
})

test('an incomplete installation is refused, and the missing file is named', async () => {
  using folder = temporaryFolder()
  const inside = (path: string) => join(folder.path, path)
  for (const path of ['src', 'bin', 'package.json'])
    cpSync(join(projectFolder, path), inside(path), { recursive: true })
  symlinkSync(join(projectFolder, 'node_modules'), inside('node_modules'))
  rmSync(inside('src/web/docs/docs.js'))
  const { exitCode, stdout, stderr } = await run([inside('bin/petstore'), 'serve', '--port', '0'], { cwd: folder.path })
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toMatch(/^petstore: .*\/docs\/docs\.js.*\n$/)
})
