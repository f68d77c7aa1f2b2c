import { expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { openCrowd } from '../support/connections.ts'
import {
  loggedBy,
  petstore,
  program,
  projectFolder,
  refusal,
  run,
  startServer,
  temporaryFolder,
  until,
} from '../support/process.ts'
import { listKeys, pasteCurl, storeKey } from './child.ts'
import { addHostileFile, hasCodeRun, hostileNames } from './hostile-files.ts'

const outsideKey = 'a-key-from-outside-0123456789'
const rex = '{"name":"Rex","categoryId":7}'
const added = `{"id":1,${rex.slice(1)}\n`

test('the first start creates a private store and shows a key in curl lines; the second shows none', async () => {
  using folder = temporaryFolder()
  await using first = await startServer({ cwd: folder.path })
  expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/)
  const [, key = ''] = /^ {2}API key {4}(pets_[0-9A-Za-z]{36}) \(permission manage, .*\)$/m.exec(first.stdout) ?? []
  expect(await pasteCurl(first, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]\n' })
  expect(readdirSync(folder.path).sort()).toEqual(['data'])
  const mode = (path: string) => (statSync(join(folder.path, path)).mode & 0o777).toString(8)
  expect(mode('data')).toBe('700')
  const files = readdirSync(join(folder.path, 'data'))
  expect(files).toContain('petstore.db')
  for (const file of files) expect([file, mode(`data/${file}`)]).toEqual([file, '600'])
  expect(await pasteCurl(first, { cwd: folder.path }, 1)).toMatchObject({ exitCode: 0, stdout: added })
  expect(first.stdout).not.toMatch(/in the clear/)
  await first.stop('SIGTERM')

  await using second = await startServer({ cwd: folder.path })
  expect(second.stdout).not.toContain('pets_')
  expect(second.stdout).toContain(`  New key    ${program} keys create --name NAME\n`)
  expect(await (await second.fetch('/pets', key)).text()).toBe('[{"id":1,"name":"Rex","categoryId":7}]')
  expect((await second.fetch('/pets/1', key, { method: 'PATCH', body: '{}' })).status).toBe(200)
})

test.each(hostileNames)('a file %s in the working folder or above it sets nothing and runs nothing', async name => {
  using folder = temporaryFolder()
  const cwd = join(folder.path, 'below')
  for (const place of [folder.path, cwd]) addHostileFile(place, name)
  // Both write in a thread.
  for (const line of ['keys create --name till', 'backup copy.db']) {
    expect(await petstore(line.split(' '), { cwd })).toMatchObject({ exitCode: 0 })
  }
  expect(readdirSync(join(cwd, 'data'))).toEqual(['petstore.db'])
  expect([folder.path, cwd].filter(hasCodeRun)).toEqual([])
})

const addresses = Object.values(networkInterfaces()).flatMap(list => list ?? [])
const hasIpv6 = addresses.some(({ family }) => family === 'IPv6')
const isOnNetwork = addresses.some(({ internal, family }) => !internal && family === 'IPv4')

test.each(['0.0.0.0', ...(hasIpv6 ? ['::'] : [])])(
  'with HOST=%s, it prints addresses that reach it, and warns about keys without TLS',
  async HOST => {
    await using server = await startServer({ env: { HOST } })
    expect(new URL(server.url).hostname).toBe(HOST === '::' ? '[::1]' : '127.0.0.1')
    const urls = [...server.stdout.matchAll(/^ {2}(?:Catalogue|Network) +(http.+)$/gm)].map(([, url = '']) => url)
    expect(urls.length).toBeGreaterThan(isOnNetwork ? 1 : 0)
    for (const url of urls) expect((await fetch(`${url}livez`)).status).toBe(200)
    expect(server.stdout).toContain('in the clear')
    expect(await pasteCurl(server, { cwd: server.cwd })).toMatchObject({ exitCode: 0, stdout: '[]\n' })
  },
)

test('every setting of the interface reaches it, and with PETSTORE_API_KEY it creates no key', async () => {
  const publicUrl = 'https://pets.example.com/shop/v1'
  const stagingUrl = 'https://staging.example.com/v1'
  const origin = 'https://shop.example.com'
  const env = {
    PETSTORE_API_KEY: outsideKey,
    PETSTORE_PUBLIC_URL: publicUrl,
    PETSTORE_STAGING_URL: stagingUrl,
    PETSTORE_RATE_LIMIT: '7/h',
    PETSTORE_CORS_ORIGINS: origin,
    PETSTORE_TRUSTED_PROXIES: '127.0.0.1',
  }
  await using server = await startServer({ env })
  const headers = { authorization: `Bearer ${outsideKey}`, origin, 'x-forwarded-for': '203.0.113.7' }
  const response = await fetch(`${server.url}/pets`, { method: 'POST', body: rex, headers })
  expect(Object.fromEntries(response.headers)).toMatchObject({
    location: `${publicUrl}/pets/1`,
    'ratelimit-policy': '"default";q=7;w=3600',
    'access-control-allow-origin': origin,
  })
  const servers = [publicUrl, '/v1', stagingUrl].map(url => ({ url }))
  expect(await (await fetch(new URL('/openapi.json', server.url))).json()).toMatchObject({ servers })
  const line = await until('the creation in the log', () => /^.*"status":201.*$/m.exec(server.stderr)?.[0])
  expect(JSON.parse(line)).toMatchObject({ client: '203.0.113.7', key: 'PETSTORE_API_KEY' })
  const pasted = await pasteCurl(server, { cwd: server.cwd, env }, 1)
  expect(pasted).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('"id":2') })
  expect(await listKeys(server.cwd)).toEqual([])
  expect(server.stdout).toContain(publicUrl)
})

test('bin/petstore runs no program that lies beside its folder', async () => {
  using folder = temporaryFolder()
  const inside = (path: string) => join(folder.path, path)
  cpSync(join(projectFolder, 'bin'), inside('app/bin'), { recursive: true })
  mkdirSync(inside('@oven/bun-linux-x64/bin'), { recursive: true })
  writeFileSync(inside('@oven/bun-linux-x64/bin/bun'), '#!/bin/sh\necho planted\n', { mode: 0o755 })
  symlinkSync('app/bin/petstore', inside('petstore'))
  const started = (command: string) => run([inside(command), '--version'], { cwd: folder.path })
  for (const command of ['app/bin/petstore', 'petstore']) {
    const stderr = expect.stringContaining(`npm install --omit=dev --include=optional --prefix '${inside('app')}'`)
    expect(await started(command)).toEqual({ exitCode: 1, stdout: '', stderr })
  }

  // As npm and pnpm install it: with pnpm, the package's folder is a symbolic link.
  for (const name of ['app', '@oven']) cpSync(inside(name), inside(`node_modules/${name}`), { recursive: true })
  symlinkSync('node_modules/app', inside('linked'))
  for (const command of ['node_modules/app/bin/petstore', 'linked/bin/petstore']) {
    expect(await started(command)).toMatchObject({ exitCode: 0, stdout: 'planted\n' })
  }
})

// src/http/auth.test.ts shows that the store decides what the key may do.
test('for a stored key in PETSTORE_API_KEY, it prints no curl lines, and warns of its permission', async () => {
  using folder = temporaryFolder()
  const key = await storeKey(join(folder.path, 'data/petstore.db'), 'read-only', { isRevoked: true })
  await using server = await startServer({ cwd: folder.path, env: { PETSTORE_API_KEY: key } })
  expect(server.stdout).toContain('  New key  ')
  expect(server.stdout).not.toContain(' curl ')
  const [warning] = loggedBy(await server.stop('SIGTERM'))
  expect(warning).toMatch(/^warn .*"till" \(read-only, revoked\)/)
})

test('the line for a new key creates it in the store of the server, also with another DATABASE_URL', async () => {
  using folder = temporaryFolder()
  const file = "the owner's/first.db"
  await storeKey(join(folder.path, file))
  const env = { DATABASE_URL: 'sqlite:second.db' }
  const args = ['serve', '--port', '0', '--database-url', `sqlite:${file}`]
  await using server = await startServer({ cwd: folder.path, args, env })
  const [, line = ''] = /^ {2}New key {4}(.+)$/m.exec(server.stdout) ?? []
  const { stdout } = await run(['sh', '-c', line], { cwd: folder.path, env })
  const [key = ''] = /pets_[0-9A-Za-z]{36}/.exec(stdout) ?? []
  expect((await server.fetch('/pets', key)).status).toBe(200)
})

test('SIGINT stops it with exit code 0, and a second one changes nothing', async () => {
  await using server = await startServer()
  const greeting = server.stdout
  process.kill(server.pid, 'SIGINT')
  // Two signals at once would count as one.
  await server.says('Stopping', () => server.stderr.includes('Stopping') || undefined)
  const ended = await server.stop('SIGINT')
  expect(ended).toMatchObject({ exitCode: 0, stdout: greeting })
  expect(loggedBy(ended)).toEqual(['info Stopping'])
  // A clean stop moves the write-ahead log into the file.
  expect(readdirSync(join(server.cwd, 'data'))).toEqual(['petstore.db'])
})

test.each([
  ['has ended', 'exec true'],
  ['reads nothing', 'exec sleep 60 > /dev/null 2>&1'],
])('a reader of the log that %s blocks neither requests nor the stop', async (_, reader) => {
  const command = ['bash', '-c', `exec "${program}" serve --port 0 2> >(${reader})`]
  await using server = await startServer({ command, env: { PETSTORE_API_KEY: outsideKey } })
  // 1,300 requests are more than a pipe holds, in several writes to the log: a line is about 200 bytes.
  for (let round = 0; round < 26; round++) {
    const responses = await Promise.all(Array.from({ length: 50 }, () => server.fetch('/pets', outsideKey)))
    expect(responses.filter(({ status }) => status !== 200)).toEqual([])
  }
  expect((await server.stop('SIGTERM')).exitCode).toBe(0)
})

test.skipIf(process.platform !== 'linux')('of two instances that share a port, one can stop unnoticed', async () => {
  const env = { PETSTORE_API_KEY: outsideKey, PETSTORE_REUSE_PORT: 'true' }
  await using first = await startServer({ env })
  const { cwd, port } = first
  await using second = await startServer({ cwd, env, args: ['serve', '--port', `${port}`] })

  // With 64 connections the chance that one instance gets none of them is 2^-63.
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${outsideKey}\r\n`
  using posts = await openCrowd(port, 64, `${head}Content-Length: ${rex.length}\r\nExpect: 100-continue\r\n\r\n`)
  const allMatch = (pattern: RegExp) => posts.received.every(text => pattern.test(text)) || undefined
  await until('100 Continue', () => allMatch(/^HTTP\/1\.1 100/))
  const stopping = first.stop('SIGTERM')
  posts.send(rex)
  await until('the responses', () => allMatch(/HTTP\/1\.1 201[\s\S]*}$/))
  const { exitCode, stderr } = await stopping
  expect(exitCode).toBe(0)
  expect(stderr.match(/"operation":"createPet"/g)?.length).toBeWithin(1, 64)
  for (let i = 0; i < 20; i++) expect((await second.fetch('/pets', outsideKey)).status).toBe(200)
  expect(await (await second.fetch('/pets?limit=100', outsideKey)).json()).toHaveLength(64)
})

/** The lines on stderr of a server that cannot start. */
async function refusedLines(exitCode: 1 | 2, cwd: string, args: readonly string[] = [], env = {}): Promise<string[]> {
  const stderr = await refusal(['serve', ...args], { cwd, env: { PORT: '0', ...env } }, exitCode)
  return stderr.trimEnd().split('\n')
}

test('an unknown option and all invalid settings are reported at once, and no store is created', async () => {
  using folder = temporaryFolder()
  const env = {
    ...{ PORT: '65536', DATABASE_URL: 'mysql://somebody:secret@db/pets', PETSTORE_API_KEY: 'secret-15-chars' },
    PETSTORE_LOGLEVEL: 'warn',
  }
  const lines = await refusedLines(2, folder.path, ['--tls-cert', 'no.pem', '--hots', '0.0.0.0'], env)
  const names = ['PETSTORE_LOGLEVEL', '--hots', 'PORT', 'DATABASE_URL', 'PETSTORE_API_KEY', '--tls-cert']
  expect(lines).toEqual(names.map(name => expect.stringContaining(name)))
  expect(lines.join()).not.toContain('secret')
  expect(readdirSync(folder.path)).toEqual([])
})

test.each([
  ['a server', []],
  ['servers that share it', ['--reuse-port']],
])('a port that %s uses is refused, and the first server continues', async (_, flags) => {
  const env = { PETSTORE_API_KEY: outsideKey }
  await using server = await startServer({ env, args: ['serve', '--port', '0', ...flags] })
  const args = ['--port', `${server.port}`, '--database-url', 'sqlite:second.db']
  expect(await refusedLines(1, server.cwd, args)).toEqual([expect.stringContaining('(EADDRINUSE)')])
  expect((await server.fetch('/pets', outsideKey)).status).toBe(200)
})

// Modes do not stop root; the kernel's own tree does.
const readOnly = process.getuid?.() === 0 ? '/sys' : 'locked'

test.each([
  ['an address of another machine', '--host 192.0.2.1', '192.0.2.1:0'],
  ['a folder without write permission', `--database-url sqlite:${readOnly}/a.db`, 'a.db'],
  ['a folder that cannot be created', `--database-url sqlite:${readOnly}/b/c.db`, 'c.db'],
])('%s is refused in one line', async (_, args, place) => {
  using folder = temporaryFolder()
  mkdirSync(join(folder.path, 'locked'), { mode: 0o500 })
  expect(await refusedLines(1, folder.path, args.split(' '))).toEqual([expect.stringContaining(`${place}: `)])
})

test('if the greeting cannot be written, the server ends and revokes the first key', async () => {
  using folder = temporaryFolder()
  const command = ['sh', '-c', `"${program}" serve --port 0 > /dev/full`]
  const { exitCode, stderr } = await run(command, { cwd: folder.path })
  expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/^petstore: .*stdout.*\n$/)])
  expect(await listKeys(folder.path)).toMatchObject([{ name: 'first', revokedAt: expect.any(String) }])
})

test('npm run dev serves, and ends at Ctrl-C', async () => {
  using folder = temporaryFolder()
  const env = { PATH: `${join(projectFolder, 'node_modules/.bin')}:${process.env['PATH']}` }
  const command = ['sh', '-c', `${manifest.scripts.dev} --port 0 --database-url sqlite:${folder.path}/petstore.db`]
  await using dev = await startServer({ cwd: projectFolder, env, command })
  expect((await fetch(new URL('/livez', dev.url))).status).toBe(200)
  expect((await dev.stop('SIGINT')).exitCode).toBe(0)
})
