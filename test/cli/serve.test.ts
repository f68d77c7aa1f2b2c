import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  loggedBy,
  pasteCurl,
  petstore,
  projectFolder,
  run,
  type Server,
  startServer,
  temporaryFolder,
  testMsMax,
  until,
} from '../support/process.ts'

setDefaultTimeout(testMsMax)

const outsideKey = 'a-key-from-outside-0123456789'

test('the first start creates a private store and shows a key in a curl line that works when pasted', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path })
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/)
  expect(server.stdout).toMatch(/^The first API key, shown only this once: pets_[0-9A-Za-z]{36}$/m)
  expect(await pasteCurl(server, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })

  const mode = (path: string) => (statSync(join(folder.path, path)).mode & 0o777).toString(8)
  expect(mode('data')).toBe('700')
  const files = readdirSync(join(folder.path, 'data')).map(name => `data/${name}`)
  expect(files).toContain('data/petstore.db')
  for (const file of files) expect([file, mode(file)]).toEqual([file, '600'])
})

test('a second start has the same animals and shows no key', async () => {
  using folder = temporaryFolder()
  await using first = await startServer({ cwd: folder.path })
  const [key = ''] = /pets_\w+/.exec(first.stdout) ?? []
  await first.fetch('/pets', key, { method: 'POST', body: '{"name":"Rex","categoryId":7}' })
  await first.stop('SIGTERM')

  await using second = await startServer({ cwd: folder.path })
  expect(second.stdout).not.toContain('pets_')
  expect(second.stdout).toContain('bin/petstore keys create --name NAME')
  const response = await second.fetch('/pets', key)
  expect(await response.text()).toBe('[{"id":1,"name":"Rex","categoryId":7}]')
})

test('with PETSTORE_API_KEY, no key is created, and that key works but is never shown', async () => {
  using folder = temporaryFolder()
  const env = { PETSTORE_API_KEY: outsideKey }
  await using server = await startServer({ cwd: folder.path, env })
  expect(await pasteCurl(server, { cwd: folder.path, env })).toMatchObject({ exitCode: 0, stdout: '[]' })
  expect((await server.fetch('/pets', outsideKey)).status).toBe(200)
  const { stdout, stderr } = await server.stop('SIGTERM')
  expect(stdout + stderr).not.toContain(outsideKey)
  expect(stdout + stderr).not.toContain('pets_')
  expect(await petstore(['keys', 'list', '--json'], { cwd: folder.path })).toMatchObject({ stdout: '[]\n' })
})

test.each([
  ['SIGTERM', ['SIGTERM']],
  ['SIGINT', ['SIGINT']],
  ['SIGINT twice', ['SIGINT', 'SIGINT']],
  ['SIGINT, then SIGTERM', ['SIGINT', 'SIGTERM']],
] as [string, NodeJS.Signals[]][])('%s stops it with exit code 0 and no output on stdout', async (_, signals) => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path })
  const greeting = server.stdout
  const ended = await server.stop(...signals)
  expect(ended).toMatchObject({ exitCode: 0, stdout: greeting })
  expect(loggedBy(ended)).toEqual(['info Stopping'])
  // A clean stop moves the write-ahead log into the file.
  expect(readdirSync(join(folder.path, 'data'))).toEqual(['petstore.db'])
})

test('npm start serves, and Ctrl-C, which arrives twice under npm, stops it with exit code 0', async () => {
  using folder = temporaryFolder()
  const env = { PORT: '0', DATABASE_URL: `sqlite:${join(folder.path, 'pets.db')}` }
  await using server = await startServer({ command: ['npm', 'start'], cwd: projectFolder, env })
  expect(await pasteCurl(server, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
  expect((await server.stopAll('SIGINT')).exitCode).toBe(0)
  await expect(fetch(server.url)).rejects.toThrow()
})

test('SIGTERM to npm alone stops the server, too', async () => {
  using folder = temporaryFolder()
  const env = { PORT: '0', DATABASE_URL: `sqlite:${join(folder.path, 'pets.db')}` }
  await using server = await startServer({ command: ['npm', 'start'], cwd: projectFolder, env })
  expect((await server.stop('SIGTERM')).exitCode).toBe(0)
  await expect(fetch(server.url)).rejects.toThrow()
})

test('a flag takes precedence over its variable', async () => {
  using folder = temporaryFolder()
  const env = { PORT: '1', HOST: '192.0.2.1', DATABASE_URL: 'sqlite:variable.db' }
  const args = ['serve', '--port', '0', '--host', '127.0.0.1', '--database-url', 'sqlite:flag.db']
  await using server = await startServer({ cwd: folder.path, env, args })
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d{4,5}\/v1$/)
  expect(existsSync(join(folder.path, 'flag.db'))).toBe(true)
  expect(existsSync(join(folder.path, 'variable.db'))).toBe(false)
})

test('--public-url makes Location absolute', async () => {
  using folder = temporaryFolder()
  const args = ['serve', '--port=0', '--public-url=https://pets.example.com/shop']
  const env = { PETSTORE_API_KEY: outsideKey, PETSTORE_PUBLIC_URL: 'https://other.example.com' }
  await using server = await startServer({ cwd: folder.path, args, env })
  const body = '{"name":"Rex","categoryId":7}'
  const created = await server.fetch('/pets', outsideKey, { method: 'POST', body })
  expect(created.headers.get('location')).toBe('https://pets.example.com/shop/v1/pets/1')
})

test('a .env file in the working folder is ignored', async () => {
  using folder = temporaryFolder()
  const ignored = 'PETSTORE_API_KEY=short\nHOST=192.0.2.1\nDATABASE_URL=sqlite:elsewhere.db\n'
  writeFileSync(join(folder.path, '.env'), ignored)
  await using server = await startServer({ cwd: folder.path })
  expect(server.url).toStartWith('http://127.0.0.1:')
  expect(readdirSync(folder.path).sort()).toEqual(['.env', 'data'])
})

/** Its log goes to another program. */
function startReadBy(reader: string, cwd: string) {
  const program = `"${join(projectFolder, 'bin/petstore')}" serve --port 0`
  const command = ['bash', '-c', `exec ${program} 2> >(${reader})`]
  return startServer({ command, cwd, env: { PETSTORE_API_KEY: outsideKey } })
}

test.each([
  ['has ended', 'exec true'],
  ['reads nothing', 'exec sleep 60 >&2'],
])('a reader of the log that %s blocks neither requests nor the stop', async (_, reader) => {
  using folder = temporaryFolder()
  await using server = await startReadBy(reader, folder.path)
  // More than a pipe holds: a line is about 200 bytes.
  await ask(server, 1_000)
  await Bun.sleep(200)
  expect((await server.fetch('/pets', outsideKey)).status).toBe(200)
  process.kill(server.pid, 'SIGTERM')
  await until('its end', () => (isAlive(server.pid) ? undefined : true))
})

test('a reader of the log that comes back sees how many lines were dropped', async () => {
  using folder = temporaryFolder()
  const [gate, late] = [join(folder.path, 'gate'), join(folder.path, 'late.log')]
  await run(['mkfifo', gate], { cwd: folder.path })
  await using server = await startReadBy(`read -r _ < ${gate}; exec cat > ${late}`, folder.path)
  const asked = 8_000
  await ask(server, asked)
  writeFileSync(gate, '\n')
  process.kill(server.pid, 'SIGTERM')
  const lines = await until('the last word', () => {
    const read = existsSync(late) ? readFileSync(late, 'utf8') : ''
    return read.includes('Stopping') && read.endsWith('\n') && !isAlive(server.pid) ? read : undefined
  })
  const logged = lines
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const requests = logged.filter(({ message }) => message === 'request').length
  const lost = logged.reduce((sum, { lines = 0 }) => sum + lines, 0)
  expect(requests).toBeGreaterThan(1_000)
  expect(lost).toBeGreaterThan(1_000)
  expect(requests + lost).toBe(asked)
})

async function ask(server: Server, times: number): Promise<void> {
  for (let asked = 0; asked < times; asked += 50) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => server.fetch('/pets', outsideKey)))
    await Promise.all(answers.map(answer => answer.arrayBuffer()))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
