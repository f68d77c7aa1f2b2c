import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { createPages } from '../../src/web/pages.ts'
import { describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { loggedBy, projectFolder, run, startServer, temporaryFolder } from '../support/process.ts'
import { addHostileFile, hasCodeRun, hostileNames } from './hostile-files.ts'

const folder = temporaryFolder()
const executable = join(folder.path, 'petstore')

beforeAll(async () => {
  const built = await run(['node', 'scripts/build.mjs', executable], { cwd: projectFolder })
  expect(built).toMatchObject({ exitCode: 0, stderr: '' })
})
afterAll(() => folder[Symbol.dispose]())

/** Runs the executable where there is nothing else: no PATH, no node_modules. Expects success and returns its stdout. */
async function petstore(cwd: string, databaseUrl: string, ...args: string[]): Promise<string> {
  const env = { PATH: '', HOME: cwd, DATABASE_URL: databaseUrl }
  const { exitCode, stdout, stderr } = await run([executable, ...args], { cwd, env })
  expect({ args, exitCode, stderr: exitCode === 0 ? '' : stderr }).toEqual({ args, exitCode: 0, stderr: '' })
  return stdout
}

test('the executable prints its version, commit and platform, and its help names it as it was called', async () => {
  using empty = temporaryFolder()
  const version = await petstore(empty.path, '', '--version')
  expect(version).toMatch(/^petstore \S+ \(commit ([0-9a-f]{7,}(-dirty)?|unknown), \w+ \w+, Bun [\d.]+\)\n$/)
  expect(version).toStartWith(`petstore ${manifest.version} `)
  expect(await petstore(empty.path, '', 'help')).toContain(`Usage: ${executable} <command>\n`)
})

test.skipIf(process.platform !== 'linux')('a key that nobody saw, with stdout closed, is revoked', async () => {
  using empty = temporaryFolder()
  const command = `'${executable}' keys create -n till >&-; '${executable}' version >&-; '${executable}' keys list`
  const { stdout, stderr } = await run(['sh', '-c', command], { cwd: empty.path })
  expect(stderr).toContain('petstore: Cannot write the key to stdout: the key was revoked again\n')
  expect(stderr).toContain('petstore: stdout is closed: open it, for example with >/dev/null\n')
  expect(stdout).toMatch(/^till .* revoked /m)
})

/** Runs the commands that use a store. `otherUrl` is an empty store to import into. */
async function useStore(cwd: string, databaseUrl: string, otherUrl: string): Promise<void> {
  const command = [executable, 'serve', '--port', '0']
  for (const name of hostileNames) addHostileFile(cwd, name)
  await using server = await startServer({ command, cwd, env: { PATH: '', HOME: cwd, DATABASE_URL: databaseUrl } })
  const { origin, port } = new URL(server.url)
  expect(await petstore(cwd, databaseUrl, 'health', '-p', port)).toBe('ok\n')

  for (const [path, page] of createPages()) {
    const response = await fetch(origin + path)
    expect([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, page.type])
    expect([path, await response.bytes()]).toEqual([path, await page.read()])
  }
  expect(await (await fetch(`${origin}/openapi.json`)).json()).toMatchObject({ openapi: '3.1.0' })

  const key = (await petstore(cwd, databaseUrl, 'keys', 'create', '-n', 'till')).trim()
  expect(await petstore(cwd, databaseUrl, 'keys', 'list')).toContain('till')
  const reach = ['--url', server.url, '--api-key', key]
  await petstore(cwd, databaseUrl, 'pets', 'add', 'Rex', '-c', '7', '-s', 'sold', ...reach)
  expect(await petstore(cwd, databaseUrl, 'pets', 'list', ...reach)).toContain('sold    7         Rex')
  expect(await petstore(cwd, databaseUrl, 'conform', server.url, '--key', key, '-y')).toContain(' passed')

  const exported = await petstore(cwd, databaseUrl, 'export')
  await petstore(cwd, databaseUrl, 'export', 'animals.ndjson')
  await petstore(cwd, otherUrl, 'import', 'animals.ndjson', '--keep-ids')
  expect(await petstore(cwd, otherUrl, 'export')).toBe(exported)
  if (databaseUrl.startsWith('sqlite:')) {
    await petstore(cwd, databaseUrl, 'backup', 'copy.db')
    expect(await petstore(cwd, 'sqlite:copy.db', 'export')).toBe(exported)
  }
  const ended = await server.stop('SIGTERM')
  expect([ended.exitCode, loggedBy(ended)]).toEqual([0, ['info Stopping']])
  expect(hasCodeRun(cwd)).toBe(false)
}

test('the executable alone serves, with its pages, and its commands work on SQLite', async () => {
  using empty = temporaryFolder()
  await useStore(empty.path, 'sqlite:pets.db', 'sqlite:other.db')
})

describeWithPostgres('on PostgreSQL', () => {
  test('the executable alone serves, with its pages, and its commands work', async () => {
    using empty = temporaryFolder()
    await using store = await sharedDatabase()
    await using other = await sharedDatabase()
    await useStore(empty.path, store.url, other.url)
  })
})
