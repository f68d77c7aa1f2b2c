import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { verifiedForMs } from '../../src/http/auth.ts'
import { createKey, petstore, program, refusal, run, startServer, temporaryFolder, until } from '../support/process.ts'
import { listKeys, spawnOnTerminal, storeKey } from './child.ts'

const rex = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }
const revokeKey = (cwd: string, which: string) => petstore(['keys', 'revoke', which], { cwd })
const firstCharacters = (key: string) => key.slice(0, 'pets_'.length + 4)

test('keys create prints the key alone on stdout, and reports a new store on stderr', async () => {
  using folder = temporaryFolder()
  const create = () => petstore(['keys', 'create', '--name', 'till'], { cwd: folder.path })
  const first = await create()
  expect(first.exitCode).toBe(0)
  expect(first.stdout).toMatch(/^pets_[0-9A-Za-z]{36}\n$/)
  expect(first.stderr).toStartWith(`Created a new store at ${join(realpathSync(folder.path), 'data/petstore.db')}\n`)
  expect(first.stderr).toMatch(/\nCreated key "till" \(read-write, never expires\) in data\/petstore\.db\. .*\n$/)
  expect(first.stderr).not.toContain('pets_')

  const second = await create()
  expect(second.stdout).toMatch(/^pets_\w{36}\n$/)
  expect(second.stderr).not.toContain('new store')
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
  expect(verifiedForMs).toBeWithin(0, 5_000)
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
  const { exitCode, stderr } = await run(command, { cwd: folder.path })
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('stdout is closed') })
  expect(readdirSync(folder.path)).toEqual([])
})

/** All commands that open a store and create none. */
const readers = ['keys list', 'keys revoke till', 'export', 'backup copy.db']

test.each(readers)('%s creates no store, and makes none of an empty file', async line => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'pets.db')
  const refused = async () =>
    await refusal(line.split(' '), { cwd: folder.path, env: { DATABASE_URL: 'sqlite:pets.db' } })
  expect(await refused()).toContain(`${file}: it does not exist; is this the folder of the store? If not, `)
  expect(readdirSync(folder.path)).toEqual([])
  writeFileSync(file, '')
  expect(await refused()).toContain(`${file}: it has no tables; is this the folder of the store? If not, `)
  expect(readdirSync(folder.path)).toEqual(['pets.db'])
  expect(readFileSync(file, 'utf8')).toBe('')
})

test('keys revoke revokes one key, once; keys list shows all keys, by their first characters', async () => {
  using folder = temporaryFolder()
  const till = await createKey(folder.path, 'till')
  const screen = await createKey(folder.path, 'Schaufenster 🐈', '--permission', 'read-only', '--expires', '12h')
  const metrics = await createKey(folder.path, 'prometheus', '--permission', 'metrics')
  const owner = await createKey(folder.path, 'owner', '--permission', 'manage')
  expect(await revokeKey(folder.path, till)).toEqual({
    exitCode: 0,
    stdout: '',
    stderr: `Revoked key "till" (${firstCharacters(till)}…): servers refuse it within 5 seconds\n`,
  })
  const again = await refusal(['keys', 'revoke', 'till'], { cwd: folder.path })
  expect(again).toMatch(/^petstore: No valid key is called "till": \/.*\/bin\/petstore .*\n$/)

  const { exitCode, stdout, stderr } = await petstore(['keys', 'list'], { cwd: folder.path })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const minute = expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\dZ$/)
  const revoked = expect.stringMatching(/^revoked \d{4}-\d\d-\d\d \d\d:\d\dZ$/)
  const lines = stdout.trimEnd().split('\n')
  expect(lines.map(line => line.split(/ {2,}/))).toEqual([
    ['NAME', 'KEY', 'PERMISSION', 'CREATED', 'EXPIRES', 'LAST USED', 'DEPRECATED CALLS'],
    ['till', `${firstCharacters(till)}…`, 'read-write', minute, revoked, 'never', 'none'],
    ['Schaufenster 🐈', `${firstCharacters(screen)}…`, 'read-only', minute, minute, 'never', 'none'],
    ['prometheus', `${firstCharacters(metrics)}…`, 'metrics', minute, 'never', 'never', 'none'],
    ['owner', `${firstCharacters(owner)}…`, 'manage', minute, 'never', 'never', 'none'],
  ])
  const expiresAt = (await listKeys(folder.path))[1]?.['expiresAt'] ?? ''
  expect(Date.parse(expiresAt) - Date.now()).toBeWithin(11 * 3_600_000, 12 * 3_600_000 + 1)
})

test('hints name the program as it is typed, quoted if that is needed', async () => {
  using folder = temporaryFolder()
  // npm installs the program as a symbolic link.
  mkdirSync(join(folder.path, 'my bin'))
  symlinkSync(program, join(folder.path, 'my bin/petstore'))
  for (const [typed, shown] of [
    [program, program],
    ["'my bin/petstore'", "'my bin/petstore'"],
    ['PATH="my bin:$PATH"; petstore', 'petstore'],
  ]) {
    const { stderr } = await run(['sh', '-c', `${typed} bogus`], { cwd: folder.path })
    expect(stderr).toBe(`petstore: Unknown command bogus: ${shown} --help lists the commands\n`)
  }
})

test('output reaches a slow reader completely', async () => {
  using folder = temporaryFolder()
  await createKey(folder.path, 'till')
  // The pipe is full before the program writes.
  const late = `(head -c 65536 /dev/zero; "${program}" keys list --json) | (sleep 1; tr -d '\\0')`
  const { stdout } = await run(['sh', '-c', late], { cwd: folder.path })
  expect(JSON.parse(stdout)).toEqual(await listKeys(folder.path))
})

test('a name of a restored backup cannot control a terminal, nor forge a line', async () => {
  using folder = temporaryFolder()
  const name = 'till\u001b[31m\u009b31m\u202e\r\nforged'
  const key = await storeKey(join(folder.path, 'data/petstore.db'), 'read-write', { name })
  for (const line of ['keys list', 'keys list --json', 'serve --port 0', `keys revoke ${key}`, 'keys revoke \u009b']) {
    const command = [program, ...line.split(' ')]
    await using terminal = spawnOnTerminal(command, { cwd: folder.path })
    if (line.startsWith('serve')) {
      const [, url] = await until('its address', () => / serves (http\S+) /.exec(terminal.shown) ?? undefined)
      await fetch(`${url}/pets`, { headers: { authorization: `Bearer ${key}` } })
      await until('its line in the log', () => /listPets/.exec(terminal.shown) ?? undefined)
      terminal.type('\u0003')
    }
    await terminal.exited()
    expect(terminal.shown).toContain('\\u009b')
    // The log has colours of its own.
    for (const raw of ['till\u001b', '\u009b', '\u202e', '\nforged']) expect(terminal.shown).not.toContain(raw)
  }
})
