import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { verifiedForMs } from '../../src/http/auth.ts'
import { createKey, petstore, program, refusal, run, startServer, temporaryFolder, until } from '../support/process.ts'
import { listKeys, spawnOnTerminal, storeKey } from './child.ts'

const rex = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }
const revokeKey = (cwd: string, which: string) => petstore(['keys', 'revoke', which], { cwd })

test('keys create prints the key alone on stdout, and reports a new store on stderr', async () => {
  using folder = temporaryFolder()
  const create = () => petstore(['keys', 'create', '--name', 'till'], { cwd: folder.path })
  const newStore = `new store at ${join(realpathSync(folder.path), 'data/petstore.db')}\n`
  const [first, second] = [await create(), await create()]
  for (const { exitCode, stdout, stderr } of [first, second]) {
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^pets_[0-9A-Za-z]{36}\n$/)])
    expect(stderr).toContain('"till" (read-write, never expires) in data/petstore.db')
    expect(stderr).not.toContain('pets_')
  }
  expect([first, second].map(({ stderr }) => stderr.includes(newStore))).toEqual([true, false])
})

test('a server accepts a new key at once, refuses it within 5 seconds of its revocation, and records its use', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path })
  const key = await createKey(folder.path, 'till')
  await createKey(folder.path, 'spare')
  const status = async () => (await server.fetch('/pets', key)).status
  expect((await server.fetch('/pets', key, rex)).status).toBe(201)
  for (const id of ['1', '1', '2']) await server.fetch(`/pets/${id}`, key)
  expect((await revokeKey(folder.path, 'till')).exitCode).toBe(0)
  // Keys are remembered no longer than this: src/http/auth.test.ts moves the clock.
  expect(verifiedForMs).toBeLessThan(5_000)
  await until('the refusal of the revoked key', async () => (await status()) === 401 || undefined)
  await server.stop('SIGTERM')
  const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  expect(await listKeys(folder.path)).toMatchObject([
    { name: 'first' },
    { name: 'till', lastUsedAt: instant, deprecatedUses: 3, deprecatedLastUsedAt: instant },
    { name: 'spare', lastUsedAt: null, deprecatedUses: 0, deprecatedLastUsedAt: null },
  ])
})

test('with a closed stdout no key is created', async () => {
  using folder = temporaryFolder()
  const command = ['sh', '-c', `${program} keys create --name lost >&-`]
  expect((await run(command, { cwd: folder.path })).exitCode).toBe(1)
  expect(readdirSync(folder.path)).toEqual([])
})

/** All commands that open a store and create none. */
const readers = ['keys list', 'keys revoke till', 'export', 'backup copy.db']

test.each(readers)('%s creates no store, and makes none of an empty file', async line => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  const surroundings = { cwd: folder.path, env: { DATABASE_URL: 'sqlite:pets.db' } }
  expect(await refusal(line.split(' '), surroundings)).toContain(`${file}: it does not exist`)
  expect(readdirSync(folder.path)).toEqual([])
  writeFileSync(file, '')
  expect(await refusal(line.split(' '), surroundings)).toContain(`${file}: it has no tables`)
  expect([readdirSync(folder.path), readFileSync(file, 'utf8')]).toEqual([['pets.db'], ''])
})

test('keys revoke revokes one key, once; keys list shows all keys, by their first characters', async () => {
  using folder = temporaryFolder()
  const till = await createKey(folder.path, 'till')
  const screen = await createKey(folder.path, 'Schaufenster 🐈', '--permission', 'read-only', '--expires', '12h')
  const owner = await createKey(folder.path, 'owner', '--permission', 'manage')
  expect(await revokeKey(folder.path, till)).toMatchObject({ exitCode: 0, stdout: '' })
  expect(await refusal(['keys', 'revoke', 'till'], { cwd: folder.path })).toContain('"till"')

  const { exitCode, stdout, stderr } = await petstore(['keys', 'list'], { cwd: folder.path })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const minute = expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\dZ$/)
  const revoked = expect.stringMatching(/^revoked \d{4}-\d\d-\d\d \d\d:\d\dZ$/)
  const shown = (key: string) => `${key.slice(0, 'pets_'.length + 4)}…`
  const [, ...lines] = stdout.trimEnd().split('\n')
  expect(lines.map(line => line.split(/ {2,}/))).toEqual([
    ['till', shown(till), 'read-write', minute, revoked, 'never', 'none'],
    ['Schaufenster 🐈', shown(screen), 'read-only', minute, minute, 'never', 'none'],
    ['owner', shown(owner), 'manage', minute, 'never', 'never', 'none'],
  ])
})

test('a name of a restored backup cannot control a terminal, nor forge a line', async () => {
  using folder = temporaryFolder()
  const name = 'till\u001b[31m\u009b31m\u202e\r\nforged'
  const key = await storeKey(join(folder.path, 'data/petstore.db'), 'read-write', { name })
  for (const line of ['keys list', 'keys list --json', `keys revoke ${key}`]) {
    await using terminal = spawnOnTerminal([program, ...line.split(' ')], { cwd: folder.path })
    await terminal.exited()
    expect(terminal.shown).toContain('\\u009b')
    for (const raw of ['\u001b[31m', '\u009b', '\u202e', '\nforged']) expect(terminal.shown).not.toContain(raw)
  }
})
