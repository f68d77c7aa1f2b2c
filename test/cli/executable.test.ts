import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createPages } from '../../src/web/pages.ts'
import { projectFolder, readOutput, startServer, temporaryFolder } from '../support/process.ts'
import { addHostileFile, hasCodeRun, hostileNames } from './hostile-files.ts'

// test/deploy/containers.deploy.ts runs it on PostgreSQL.
test('the executable alone serves, with its pages, and its commands work', async () => {
  using built = temporaryFolder()
  using folder = temporaryFolder()
  const cwd = folder.path
  const executable = join(built.path, 'petstore')
  await readOutput(['node', 'scripts/build.mjs', executable], { cwd: projectFolder })

  // There is nothing else: no PATH, no node_modules.
  const env = { PATH: '', HOME: cwd, DATABASE_URL: 'sqlite:pets.db' }
  for (const name of hostileNames) addHostileFile(cwd, name)
  const petstore = (...args: string[]) => readOutput([executable, ...args], { cwd, env })
  expect(await petstore('--version')).toMatch(/^petstore \S+ \(commit ([0-9a-f]{7,}(-dirty)?|unknown), .*\)\n$/)
  expect(await petstore('help')).toContain(`Usage: ${executable} <command>\n`)

  await using server = await startServer({ command: [executable, 'serve', '--port', '0'], cwd, env })
  const { origin, port } = new URL(server.url)
  expect(await petstore('health', '-p', port)).toBe('ok\n')
  for (const [path, page] of createPages()) {
    const response = await fetch(origin + path)
    expect([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, page.type])
    expect([path, await response.bytes()]).toEqual([path, await page.read()])
  }

  const key = (await petstore('keys', 'create', '-n', 'till')).trim()
  expect(await petstore('pets', 'add', 'Rex', '-c', '7', '--url', server.url, '--api-key', key)).toContain('Rex')
  expect(await petstore('conform', server.url, '--key', key, '-y')).toContain(' passed')
  const exported = await petstore('export')
  await Bun.write(join(cwd, 'animals.ndjson'), exported)
  await petstore('import', 'animals.ndjson', '--keep-ids', '--database-url', 'sqlite:other.db')
  await petstore('backup', 'copy.db')
  for (const copy of ['other', 'copy']) {
    expect(await petstore('export', '--database-url', `sqlite:${copy}.db`)).toBe(exported)
  }
  expect((await server.stop('SIGTERM')).exitCode).toBe(0)
  expect(hasCodeRun(cwd)).toBe(false)
})
