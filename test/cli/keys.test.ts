import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createKey,
  listKeys,
  petstore,
  projectFolder,
  revokeKey,
  run,
  startServer,
  temporaryFolder,
  testMsMax,
  until,
} from '../support/process.ts'

setDefaultTimeout(testMsMax)

const rex = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }
const firstCharacters = (key: string) => key.slice(0, 'pets_'.length + 4)

async function validKeys(cwd: string): Promise<string[]> {
  return (await listKeys(cwd)).filter(key => key.revokedAt === null).map(key => key.name)
}

test('keys create prints the key alone on stdout; a new store is reported on stderr', async () => {
  using folder = temporaryFolder()
  const create = (name: string) => petstore(['keys', 'create', '--name', name], { cwd: folder.path })
  const { exitCode, stdout, stderr } = await create('till')
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/^pets_[0-9A-Za-z]{36}\n$/)
  expect(stderr).toStartWith(`Created a new store at ${join(realpathSync(folder.path), 'data/petstore.db')}\n`)
  expect(stderr).toMatch(/\nCreated key "till" \(read-write\) in data\/petstore\.db\. .*\n$/)
  expect(stderr).not.toContain('pets_')
  expect((await create('screen')).stderr).not.toContain('new store')
})

test('invalid options of keys create create no store', async () => {
  using folder = temporaryFolder()
  const args = ['keys', 'create', '--name', 'till', '--expires=90', '--permission', 'all']
  const { exitCode, stdout, stderr } = await petstore(args, { cwd: folder.path })
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toMatch(/^petstore: --expires is "90": .*\npetstore: --permission is "all": .*\n$/)
  expect(readdirSync(folder.path)).toEqual([])
})

test('a read-only key cannot add; a metrics key reads only /metrics', async () => {
  using folder = temporaryFolder()
  const reader = await createKey(folder.path, 'screen', '--read-only', '--expires', '12h')
  const metrics = await createKey(folder.path, 'prometheus', '--permission', 'metrics')
  const [screen, prometheus] = await listKeys(folder.path)
  expect([screen?.access, prometheus?.access]).toEqual(['read-only', 'metrics'])
  expect(Date.parse(screen?.expiresAt ?? '') - Date.now()).toBeWithin(11 * 3_600_000, 12 * 3_600_000 + 1)
  await using server = await startServer({ cwd: folder.path })
  const statusOf = async (key: string, init?: typeof rex) => (await server.fetch('/pets', key, init)).status
  expect([await statusOf(reader), await statusOf(reader, rex), await statusOf(metrics)]).toEqual([200, 403, 403])
  const headers = { authorization: `Bearer ${metrics}` }
  expect((await fetch(new URL('/metrics', server.url), { headers })).status).toBe(200)
})

test('the files of the store contain no key, while the server runs and afterwards', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path })
  const [first = ''] = /pets_\w{36}/.exec(server.stdout) ?? []
  const key = await createKey(folder.path, 'till')
  expect((await server.fetch('/pets', key)).status).toBe(200)

  const files = () => {
    const data = join(folder.path, 'data')
    const names = readdirSync(data).sort()
    return names.map(name => ({ name, bytes: readFileSync(join(data, name)) }))
  }
  const running = files()
  await server.stop('SIGTERM')
  const stopped = files()
  expect(running.map(({ name }) => name)).toEqual(['petstore.db', 'petstore.db-shm', 'petstore.db-wal'])
  expect(stopped.map(({ name }) => name)).toEqual(['petstore.db'])
  for (const { bytes } of [...running, ...stopped]) {
    for (const secret of [first, key]) expect(bytes.includes(secret.slice('pets_'.length + 4))).toBe(false)
  }
})

test('a running server accepts a new key at once, and refuses it within 5 seconds of its revocation', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path })
  const key = await createKey(folder.path, 'till')
  expect((await server.fetch('/pets', key)).status).toBe(200)
  expect((await revokeKey(folder.path, 'till')).exitCode).toBe(0)
  const status = async () => (await server.fetch('/pets', key)).status
  await until('the refusal of the revoked key', async () => ((await status()) === 401 ? true : undefined), 5_000)
})

test('keys list shows last uses and deprecated calls after a clean stop', async () => {
  using folder = temporaryFolder()
  const key = await createKey(folder.path, 'till')
  await createKey(folder.path, 'spare')
  await using server = await startServer({ cwd: folder.path })
  await server.fetch('/pets', key, rex)
  for (const id of ['1', '1', '2']) await server.fetch(`/pets/${id}`, key)
  await server.stop('SIGTERM')
  const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  expect(await listKeys(folder.path)).toMatchObject([
    { name: 'till', lastUsedAt: instant, deprecatedUses: 3, deprecatedLastUsedAt: instant },
    { name: 'spare', lastUsedAt: null, deprecatedUses: 0, deprecatedLastUsedAt: null },
  ])
})

test.each([
  ['its name', () => 'till'],
  ['its first characters', firstCharacters],
  ['the whole key', (key: string) => key],
])('keys revoke by %s revokes only that key, and does not print it', async (_, given) => {
  using folder = temporaryFolder()
  const key = await createKey(folder.path, 'till')
  await createKey(folder.path, 'spare')
  const ended = await revokeKey(folder.path, given(key))
  expect(ended).toMatchObject({ exitCode: 0, stdout: '' })
  expect(ended.stderr).toStartWith(`Revoked key "till" (${firstCharacters(key)}…)`)
  expect(ended.stderr).not.toContain(key)
  expect(await validKeys(folder.path)).toEqual(['spare'])
})

test('a name that two keys share revokes neither, and the message lists both', async () => {
  using folder = temporaryFolder()
  const keys = [await createKey(folder.path, 'till'), await createKey(folder.path, 'till')]
  const ended = await revokeKey(folder.path, 'till')
  expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
  expect(ended.stderr).toMatch(/^petstore: 2 keys are called "till": .*\n$/)
  for (const key of keys) {
    expect(ended.stderr).toContain(firstCharacters(key))
    expect(ended.stderr).not.toContain(key)
  }
  expect(await validKeys(folder.path)).toEqual(['till', 'till'])
  await revokeKey(folder.path, firstCharacters(keys[0] ?? ''))
  expect((await revokeKey(folder.path, 'till')).exitCode).toBe(0)
})

test('a key that is unknown or already revoked cannot be revoked', async () => {
  using folder = temporaryFolder()
  await createKey(folder.path, 'till')
  await revokeKey(folder.path, 'till')
  for (const given of ['nobody', 'till', 'pets_0000']) {
    const ended = await revokeKey(folder.path, given)
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^petstore: No valid key is called ".*\n$/)
  }
})

test.each([[['list']], [['list', '--json']], [['revoke', 'till']]])('keys %p creates no store', async args => {
  using folder = temporaryFolder()
  const ended = await petstore(['keys', ...args], { cwd: folder.path })
  expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
  expect(ended.stderr).toMatch(/^petstore: There is no store at data\/petstore\.db: .*\n$/)
  expect(readdirSync(folder.path)).toEqual([])
})

test('keys list prints a table, with the first characters of each key', async () => {
  using folder = temporaryFolder()
  const till = await createKey(folder.path, 'till')
  const screen = await createKey(folder.path, 'Schaufenster 🐈', '--read-only', '--expires', '90d')
  await revokeKey(folder.path, 'till')
  const { exitCode, stdout, stderr } = await petstore(['keys', 'list'], { cwd: folder.path })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const minute = expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\dZ$/)
  const revoked = expect.stringMatching(/^revoked \d{4}-\d\d-\d\d \d\d:\d\dZ$/)
  const lines = stdout.trimEnd().split('\n')
  expect(lines.map(line => line.split(/ {2,}/))).toEqual([
    ['NAME', 'KEY', 'ACCESS', 'CREATED', 'EXPIRES', 'LAST USED', 'DEPRECATED CALLS'],
    ['till', `${firstCharacters(till)}…`, 'read-write', minute, revoked, 'never', 'none'],
    ['Schaufenster 🐈', `${firstCharacters(screen)}…`, 'read-only', minute, minute, 'never', 'none'],
  ])
})

test('keys list of a store without keys prints nothing on stdout, and says how to create one', async () => {
  using folder = temporaryFolder()
  const args = ['--database-url', 'sqlite:pets.db']
  writeFileSync(join(folder.path, 'pets.db'), '')
  const listed = await petstore(['keys', 'list', ...args], { cwd: folder.path })
  expect(listed).toMatchObject({ exitCode: 0, stdout: '' })
  expect(listed.stderr).toContain('with bin/petstore keys create --name NAME')
  // npm installs the program as a symbolic link.
  const installed = join(folder.path, 'petstore')
  symlinkSync(join(projectFolder, 'bin/petstore'), installed)
  const { stderr } = await run([installed, 'keys', 'list', ...args], { cwd: folder.path })
  expect(stderr).toContain('with petstore keys create --name NAME')
  expect((await petstore(['keys', 'list', '--json', ...args], { cwd: folder.path })).stdout).toBe('[]\n')
})

test('output reaches a slow reader completely, and a closed pipe is no error', async () => {
  using folder = temporaryFolder()
  const program = join(projectFolder, 'bin/petstore')
  await createKey(folder.path, 'till')
  for (const args of ['serve --help', 'keys list --json']) {
    const shell = (command: string) => run(['sh', '-c', command], { cwd: folder.path })
    // The pipe is full before the program writes.
    const late = `(head -c 65536 /dev/zero; "${program}" ${args}) | (sleep 1; tr -d '\\0')`
    expect((await shell(late)).stdout).toBe((await petstore(args.split(' '), { cwd: folder.path })).stdout)
    expect((await shell(`"${program}" ${args} | true`)).stderr).toBe('')
  }
})
