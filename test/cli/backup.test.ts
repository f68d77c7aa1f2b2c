import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { petstore, program, refusal, type Server, startServer, temporaryFolder, until } from '../support/process.ts'
import { spawnOnTerminal, spawnPetstore, storeKey } from './child.ts'
import { held } from './workplace.ts'

const key = 'a-key-from-outside-0123456789'
const env = { PETSTORE_API_KEY: key }
const add = (server: Server, name: string) =>
  server.fetch('/pets', key, { method: 'POST', body: JSON.stringify({ name, categoryId: 1 }) })

/** Every animal of the store, as a line. */
async function everything(cwd: string, ...args: string[]): Promise<string[]> {
  return (await petstore(['export', ...args], { cwd })).stdout.trimEnd().split('\n')
}

test('a backup of a busy store can be restored, and one of a stopped store does not change its file', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path, env })
  for (let i = 0; i < 200; i++) await add(server, `before ${i}`)
  const before = await everything(folder.path)
  let busy = true
  const writing = Array.from({ length: 4 }, async () => {
    while (busy) expect((await add(server, 'meanwhile')).status).toBe(201)
  })
  const made = await petstore(['backup', 'copy.db'], { cwd: folder.path })
  busy = false
  await Promise.all(writing)
  expect(made).toMatchObject({ exitCode: 0, stdout: '' })
  expect(made.stderr).toMatch(/Copied [\d,]+ animals to copy\.db \([\d,]+ bytes\)/)
  expect(statSync(join(folder.path, 'copy.db')).mode & 0o777).toBe(0o600)
  const after = await everything(folder.path)
  await server.stop('SIGTERM')
  const stopped = readFileSync(join(folder.path, 'data/petstore.db'))
  // The runtime would trim this name.
  expect(await petstore(['backup', ' later.db'], { cwd: folder.path })).toMatchObject({ exitCode: 0 })
  expect(readdirSync(folder.path).toSorted()).toEqual([' later.db', 'copy.db', 'data'])
  expect(readFileSync(join(folder.path, 'data/petstore.db')).equals(stopped)).toBe(true)

  const other = ['--database-url', 'sqlite:restored.db']
  expect(await petstore(['restore', '--yes', 'copy.db', ...other], { cwd: folder.path })).toMatchObject({ exitCode: 0 })
  const copied = await everything(folder.path, ...other)
  expect(copied.slice(0, before.length)).toEqual(before)
  expect(copied).toEqual(after.slice(0, copied.length))
})

test.each([
  ['1', 0],
  ['', 1],
])('on a terminal with NO_COLOR=%j, a line is overwritten only if that is wanted', async (NO_COLOR, overwritten) => {
  using folder = temporaryFolder()
  await storeKey(join(folder.path, 'data/petstore.db'))
  await using terminal = spawnOnTerminal([program, 'backup', 'copy.db'], { cwd: folder.path, env: { NO_COLOR } })
  expect(await terminal.exited()).toBe(0)
  expect(terminal.shown).toContain('Copied 0 animals')
  expect(terminal.shown.split('\u001b')).toHaveLength(overwritten + 1)
})

test.each<[string, string, (store: Database) => unknown]>([
  ["another program's", 'of another program', s => s.run('PRAGMA application_id = 1')],
  ['an incomplete', 'no such table: pets', s => s.run('DROP TABLE pets')],
  ['a damaged', 'damaged', s => writeFileSync(s.filename, readFileSync(s.filename).fill(0xff, 4_096))],
])('%s file cannot be copied, and nothing is left behind', async (_, problem, change) => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'data/petstore.db')
  await storeKey(file)
  using store = new Database(file)
  change(store)
  store.close()
  expect(await refusal(['backup', 'copy.db'], { cwd: folder.path })).toContain(problem)
  expect(readdirSync(folder.path)).toEqual(['data'])
})

test('an interrupted backup leaves nothing behind', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'data/petstore.db')
  await storeKey(file)
  {
    using store = new Database(file)
    store.run(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
      INSERT INTO pets (name, category_id) SELECT 'An animal with quite a long name, number ' || i, i FROM n`)
  }
  const sizeOf = (name: string) => statSync(join(folder.path, name), { throwIfNoEntry: false })?.size ?? 0
  await using backup = spawnPetstore(['backup', 'copy.db'], { cwd: folder.path, env: held })
  const isBegun = (name: string) => /^copy\.db\.partial-\w+$/.test(name) && sizeOf(name) > 0
  const partial = await until('the partial copy', () => readdirSync(folder.path).find(isBegun))
  // SQLite has this file only while it copies.
  appendFileSync(join(folder.path, `${partial}-journal`), '')
  backup.kill('SIGINT')
  expect(await backup.exited).toBe(1)
  expect(await backup.stderr.text()).toEndWith('petstore: Interrupted: copy.db was not created\n')
  expect(readdirSync(folder.path)).toEqual(['data'])
})
