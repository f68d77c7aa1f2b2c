import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../support/folder.ts'
import { createKey, listKeys, revokeKey } from '../support/keys.ts'
import { petstore, startServer, testMsMax, until } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const rex = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }

test('keys create prints the key alone on stdout, and says on stderr where it is kept', async () => {
  using folder = temporaryFolder()
  const { exitCode, stdout, stderr } = await petstore(['keys', 'create', '--name', 'till'], {
    cwd: folder.path,
  })
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/^pets_[0-9A-Za-z]{36}\n$/)
  const file = join(realpathSync(folder.path), 'data/petstore.db')
  expect(stderr).toStartWith(`Created a new store at ${file}\n`)
  expect(stderr).toMatch(/\nKey "till" \(read-write\) .*data\/petstore\.db.*\n$/)
  const second = await petstore(['keys', 'create', '--name', 'screen'], { cwd: folder.path })
  expect(second.stderr).not.toContain('Created')
  expect(stderr).not.toContain('pets_')
})

test('a read-only key lists, but is answered 403 when it adds', async () => {
  using folder = temporaryFolder()
  const key = await createKey(folder.path, 'screen', '--read-only')
  await using server = await startServer({ cwd: folder.path })
  expect((await server.fetch('/pets', key)).status).toBe(200)
  const refused = await server.fetch('/pets', key, rex)
  expect(refused.status).toBe(403)
  expect(refused.headers.get('www-authenticate')).toMatch(
    /^Bearer realm="petstore", error="insufficient_scope"/,
  )
})

test('a metrics key reads /metrics and nothing else', async () => {
  using folder = temporaryFolder()
  const key = await createKey(folder.path, 'prometheus', '--permission', 'metrics')
  expect(await listKeys(folder.path)).toEqual([expect.objectContaining({ access: 'metrics' })])
  await using server = await startServer({ cwd: folder.path })
  const headers = { authorization: `Bearer ${key}` }
  expect((await fetch(new URL('/metrics', server.url), { headers })).status).toBe(200)
  expect((await server.fetch('/pets', key)).status).toBe(403)
  expect((await server.fetch('/pets', key, rex)).status).toBe(403)
})

test.each([
  [['--permission', 'all'], 'Cannot read --permission "all": expected one of read-write, read-only, metrics'],
  [
    ['--permission', 'metrics', '--read-only'],
    '--read-only contradicts --permission metrics: give one of them',
  ],
])('keys create %p is misuse, and makes no store', async (flags, problem) => {
  using folder = temporaryFolder()
  const ended = await petstore(['keys', 'create', '--name', 'till', ...flags], { cwd: folder.path })
  expect(ended).toMatchObject({ exitCode: 2, stdout: '', stderr: `petstore: ${problem}\n` })
  expect(readdirSync(folder.path)).toEqual([])
})

test.each([
  ['90d', 90 * 86_400_000],
  ['12h', 12 * 3_600_000],
])('a key made with --expires %s is listed with that end', async (span, lifetimeMs) => {
  using folder = temporaryFolder()
  const before = Date.now()
  await createKey(folder.path, 'guest', '--expires', span)
  const [key] = await listKeys(folder.path)
  const expiresAt = Date.parse(key?.expiresAt ?? '')
  expect(expiresAt).toBeWithin(before + lifetimeMs, Date.now() + lifetimeMs + 1)
})

test.each(['', '0d', '-1d', 'yesterday', '2020-01-01', '2030-02-31', '90'])(
  'keys create --expires=%s is misuse, and makes no store',
  async when => {
    using folder = temporaryFolder()
    const args = ['keys', 'create', '--name', 'till', `--expires=${when}`]
    const ended = await petstore(args, { cwd: folder.path })
    expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ended.stderr).toMatch(/^petstore: Cannot read --expires "[^\n]*": expected [^\n]*\n$/)
    expect(readdirSync(folder.path)).toEqual([])
  },
)

test.each([
  [[]],
  [['--name', '']],
  [['--name', ' ']],
  [['--name', 'a\nb']],
  [['--name', 'long '.repeat(21)]],
])('keys create %p has no usable name: misuse, and makes no store', async options => {
  using folder = temporaryFolder()
  const ended = await petstore(['keys', 'create', ...options], { cwd: folder.path })
  expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
  expect(ended.stderr).toMatch(/^.*--name.*\n$/)
  expect(readdirSync(folder.path)).toEqual([])
})

test('no file of the store holds a key, neither while the server runs nor afterwards', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path })
  const [first = ''] = /pets_\w{36}/.exec(server.stdout) ?? []
  const key = await createKey(folder.path, 'till')
  expect((await server.fetch('/pets', key)).status).toBe(200)

  const kept = () => {
    const data = join(folder.path, 'data')
    const names = readdirSync(data).sort()
    return names.map(name => ({ name, bytes: readFileSync(join(data, name)) }))
  }
  const running = kept()
  await server.stop('SIGTERM')
  const stopped = kept()
  expect(running.map(({ name }) => name)).toEqual(['petstore.db', 'petstore.db-shm', 'petstore.db-wal'])
  expect(stopped.map(({ name }) => name)).toEqual(['petstore.db'])
  for (const { bytes } of [...running, ...stopped]) {
    for (const secret of [first, key]) expect(bytes.includes(secret.slice('pets_'.length + 4))).toBe(false)
  }
})

test('a running server takes a new key at once, and refuses it within 5 seconds of its revocation', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path })
  const key = await createKey(folder.path, 'till')
  expect((await server.fetch('/pets', key)).status).toBe(200)
  expect((await revokeKey(folder.path, 'till')).exitCode).toBe(0)
  const asked = async () => {
    const response = await server.fetch('/pets', key)
    return response.status === 200 ? undefined : response
  }
  const refused = await until('the refusal of the revoked key', asked, 5_000)
  expect(refused.status).toBe(401)
  expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"')
})

test('last use and deprecated calls are listed after a clean stop', async () => {
  using folder = temporaryFolder()
  const key = await createKey(folder.path, 'till')
  await createKey(folder.path, 'spare')
  expect(await listKeys(folder.path)).toMatchObject([
    { lastUsedAt: null, deprecatedUses: 0 },
    { lastUsedAt: null },
  ])
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
