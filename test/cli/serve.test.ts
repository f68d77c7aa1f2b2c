import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import {
  loggedBy,
  pasteCurl,
  petstore,
  portOf,
  projectFolder,
  run,
  type Server,
  startServer,
  temporaryFolder,
  testMsMax,
  until,
} from '../support/process.ts'
import { program } from './child.ts'

setDefaultTimeout(testMsMax)

const outsideKey = 'a-key-from-outside-0123456789'
const rex = '{"name":"Rex","categoryId":7}'

test('the first start creates a private store and shows a key in a curl line to paste; the second shows none', async () => {
  using folder = temporaryFolder()
  await using first = await startServer({ cwd: folder.path })
  expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/)
  const [, key = ''] = /^The first API key, shown only this once: (pets_[0-9A-Za-z]{36})$/m.exec(first.stdout) ?? []
  expect(await pasteCurl(first, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
  const mode = (path: string) => (statSync(join(folder.path, path)).mode & 0o777).toString(8)
  expect(mode('data')).toBe('700')
  const files = readdirSync(join(folder.path, 'data'))
  expect(files).toContain('petstore.db')
  for (const file of files) expect([file, mode(`data/${file}`)]).toEqual([file, '600'])
  await first.fetch('/pets', key, { method: 'POST', body: rex })
  await first.stop('SIGTERM')

  await using second = await startServer({ cwd: folder.path })
  expect(second.stdout).not.toContain('pets_')
  expect(second.stdout).toContain('bin/petstore keys create --name NAME')
  expect(await (await second.fetch('/pets', key)).text()).toBe('[{"id":1,"name":"Rex","categoryId":7}]')
})

test('with PETSTORE_API_KEY, no key is created, and that key works but is never shown', async () => {
  using folder = temporaryFolder()
  const env = { PETSTORE_API_KEY: outsideKey }
  await using server = await startServer({ cwd: folder.path, env })
  expect(await pasteCurl(server, { cwd: folder.path, env })).toMatchObject({ exitCode: 0, stdout: '[]' })
  const { stdout, stderr } = await server.stop('SIGTERM')
  for (const key of [outsideKey, 'pets_']) expect(stdout + stderr).not.toContain(key)
  expect(await petstore(['keys', 'list', '--json'], { cwd: folder.path })).toMatchObject({ stdout: '[]\n' })
})

test.each<NodeJS.Signals[][]>([[['SIGINT', 'SIGINT']], [['SIGINT', 'SIGTERM']]])(
  '%p stops it with exit code 0 and no further output on stdout',
  async signals => {
    using folder = temporaryFolder()
    await using server = await startServer({ cwd: folder.path })
    const greeting = server.stdout
    const ended = await server.stop(...signals)
    expect(ended).toMatchObject({ exitCode: 0, stdout: greeting })
    expect(loggedBy(ended)).toEqual(['info Stopping'])
    // A clean stop moves the write-ahead log into the file.
    expect(readdirSync(join(folder.path, 'data'))).toEqual(['petstore.db'])
  },
)

test.each<[string, (server: Server) => Promise<{ exitCode: number }>]>([
  ['Ctrl-C, which arrives twice under npm,', server => server.stopAll('SIGINT')],
  ['SIGTERM to npm alone', server => server.stop('SIGTERM')],
])('npm start serves, and %s stops it with exit code 0', async (_, stop) => {
  using folder = temporaryFolder()
  const env = { PORT: '0', DATABASE_URL: `sqlite:${join(folder.path, 'pets.db')}` }
  await using server = await startServer({ command: ['npm', 'start'], cwd: projectFolder, env })
  expect(await pasteCurl(server, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
  expect((await stop(server)).exitCode).toBe(0)
  await expect(fetch(server.url)).rejects.toThrow()
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
  const command = ['bash', '-c', `exec "${program}" serve --port 0 2> >(${reader})`]
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
  await ask(server, 1)
  process.kill(server.pid, 'SIGTERM')
  await until('its end', () => !isAlive(server.pid) || undefined)
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
  const text = await until('the last word', () => {
    const read = existsSync(late) ? readFileSync(late, 'utf8') : ''
    return read.includes('Stopping') && read.endsWith('\n') && !isAlive(server.pid) ? read : undefined
  })
  const logged = text.trimEnd().split('\n').map(parseLine)
  const requests = logged.filter(({ message }) => message === 'request').length
  const lost = logged.reduce((sum, { lines = 0 }) => sum + lines, 0)
  expect(requests).toBeGreaterThan(1_000)
  expect(lost).toBeGreaterThan(1_000)
  expect(requests + lost).toBe(asked)
})

const parseLine = (line: string): { message: string; lines?: number } => JSON.parse(line)

async function ask(server: Server, times: number): Promise<void> {
  for (let asked = 0; asked < times; asked += 50) {
    const requests = Array.from({ length: Math.min(50, times) }, () => server.fetch('/pets', outsideKey))
    for (const answer of await Promise.all(requests)) expect([answer.status, await answer.text()]).toEqual([200, '[]'])
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** A POST that the server has accepted and whose body is missing. Returns how to send it and get the status. */
async function acceptedPost(port: number): Promise<() => Promise<string>> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.on('data', chunk => {
    received += chunk
  })
  const headers = `Authorization: Bearer ${outsideKey}\r\nContent-Length: ${rex.length}\r\nExpect: 100-continue\r\n`
  socket.write(`POST /v1/pets HTTP/1.1\r\nHost: x\r\n${headers}\r\n`)
  await until('100 Continue', () => received.startsWith('HTTP/1.1 100') || undefined)
  return () => {
    socket.write(rex)
    return until('the response', () => /HTTP\/1\.1 (20\d)[\s\S]*}$/.exec(received)?.[1])
  }
}

test.skipIf(process.platform !== 'linux')(
  'two instances share a port; one that stops answers every request that it has accepted',
  async () => {
    using folder = temporaryFolder()
    const env = { PETSTORE_API_KEY: outsideKey, PETSTORE_REUSE_PORT: 'true' }
    await using first = await startServer({ cwd: folder.path, env })
    const port = portOf(first)
    await using second = await startServer({ cwd: folder.path, env, args: ['serve', '--port', `${port}`] })

    // With 64 connections the chance that one instance gets none of them is 2^-63.
    const posts = await Promise.all(Array.from({ length: 64 }, () => acceptedPost(port)))
    const stopping = first.stop('SIGTERM')
    expect(new Set(await Promise.all(posts.map(finish => finish())))).toEqual(new Set(['201']))
    const stopped = await stopping
    expect(stopped.exitCode).toBe(0)
    for (let i = 0; i < 20; i++) expect((await second.fetch('/pets', outsideKey)).status).toBe(200)
    expect(await (await second.fetch('/pets?limit=100', outsideKey)).json()).toHaveLength(64)
    const servedBy = ({ stderr }: { stderr: string }) => stderr.split('"operation":"createPet"').length - 1
    const [byFirst, bySecond] = [servedBy(stopped), servedBy(await second.stop('SIGTERM'))]
    expect(Math.min(byFirst, bySecond)).toBeGreaterThan(0)
    expect(byFirst + bySecond).toBe(64)
  },
)
