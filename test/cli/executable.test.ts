import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createPages } from '../../src/web/pages.ts'
import { loggedBy, projectFolder, run, startServer, temporaryFolder } from '../support/process.ts'
import { addHostileFile, hasCodeRun, hostileNames } from './hostile-files.ts'

// test/deploy/containers.deploy.ts runs it on PostgreSQL.
test('the executable alone serves, with its pages, and its commands work', async () => {
  using built = temporaryFolder()
  using folder = temporaryFolder()
  const cwd = folder.path
  const executable = join(built.path, 'petstore')
  const building = await run(['node', 'scripts/build.mjs', executable], { cwd: projectFolder })
  expect(building).toMatchObject({ exitCode: 0, stderr: '' })

  // There is nothing else: no PATH, no node_modules.
  const env = { PATH: '', HOME: cwd, DATABASE_URL: 'sqlite:pets.db' }
  for (const name of hostileNames) addHostileFile(cwd, name)
  /** Expects success and returns its stdout. */
  async function petstore(...args: string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await run([executable, ...args], { cwd, env })
    expect({ args, exitCode, stderr: exitCode === 0 ? '' : stderr }).toEqual({ args, exitCode: 0, stderr: '' })
    return stdout
  }
  const version = await petstore('--version')
  expect(version).toMatch(/^petstore \S+ \(commit ([0-9a-f]{7,}(-dirty)?|unknown), \w+ \w+, Bun [\d.]+\)\n$/)
  expect(await petstore('help')).toContain(`Usage: ${executable} <command>\n`)

  await using server = await startServer({ command: [executable, 'serve', '--port', '0'], cwd, env })
  const { origin, port } = new URL(server.url)
  expect(await petstore('health', '-p', port)).toBe('ok\n')
  for (const [path, page] of createPages()) {
    const response = await fetch(origin + path)
    expect([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, page.type])
    expect([path, await response.bytes()]).toEqual([path, await page.read()])
  }
  expect(await (await fetch(`${origin}/openapi.json`)).json()).toMatchObject({ openapi: '3.1.0' })

  const key = (await petstore('keys', 'create', '-n', 'till')).trim()
  expect(await petstore('pets', 'add', 'Rex', '-c', '7', '--url', server.url, '--api-key', key)).toContain('Rex')
  expect(await petstore('conform', server.url, '--key', key, '-y')).toContain(' passed')
  const exported = await petstore('export')
  await petstore('export', 'animals.ndjson')
  await petstore('import', 'animals.ndjson', '--keep-ids', '--database-url', 'sqlite:other.db')
  await petstore('backup', 'copy.db')
  for (const copy of ['other', 'copy']) {
    expect(await petstore('export', '--database-url', `sqlite:${copy}.db`)).toBe(exported)
  }
  const ended = await server.stop('SIGTERM')
  expect([ended.exitCode, loggedBy(ended)]).toEqual([0, ['info Stopping']])
  expect(hasCodeRun(cwd)).toBe(false)
})
