import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import {
  createKey,
  petstore,
  projectFolder,
  type Server,
  startServer,
  temporaryFolder,
  testMsMax,
  until,
} from '../support/process.ts'

setDefaultTimeout(testMsMax)

const key = 'a-key-from-outside-0123456789'
const env = { PETSTORE_API_KEY: key }
const add = (server: Server, name: string) =>
  server.fetch('/pets', key, { method: 'POST', body: JSON.stringify({ name, categoryId: 1 }) })

async function everything(server: Server): Promise<string[]> {
  const animals: string[] = []
  for (let path: string | undefined = '/pets?limit=100'; path; ) {
    const response = await server.fetch(path, key)
    animals.push(...(await response.text()).slice(1, -1).split(/(?<=\}),/))
    path = /<\/v1([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  }
  return animals.filter(Boolean)
}

test('a backup of a busy store can be restored', async () => {
  using folder = temporaryFolder()
  await using server = await startServer({ cwd: folder.path, env })
  for (let i = 0; i < 200; i++) await add(server, `before ${i}`)
  const before = await everything(server)
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
  expect(readdirSync(folder.path).toSorted()).toEqual(['copy.db', 'data'])
  const after = await everything(server)
  await server.stop('SIGTERM')

  const restored = join(folder.path, 'restored')
  mkdirSync(join(restored, 'data'), { recursive: true })
  copyFileSync(join(folder.path, 'copy.db'), join(restored, 'data/petstore.db'))
  await using again = await startServer({ cwd: restored, env })
  const copied = await everything(again)
  expect(copied.slice(0, before.length)).toEqual(before)
  expect(copied).toEqual(after.slice(0, copied.length))
  expect((await add(again, 'new')).status).toBe(201)
})

/** A stopped server's store, data/petstore.db. */
const createStore = (cwd: string) => createKey(cwd, 'till')

test('a stopped store with an older schema is copied and not changed', async () => {
  using folder = temporaryFolder()
  await createStore(folder.path)
  const file = join(folder.path, 'data/petstore.db')
  {
    using older = new Database(file)
    older.run('DROP TABLE creation_keys')
    older.run('PRAGMA user_version = 1')
  }
  const before = readFileSync(file)
  expect(await petstore(['backup', 'copy.db'], { cwd: folder.path })).toMatchObject({ exitCode: 0 })
  expect(readFileSync(file).equals(before)).toBe(true)
  using copy = new Database(join(folder.path, 'copy.db'), { readonly: true })
  expect(copy.query('PRAGMA user_version').values()).toEqual([[1]])
})

test('an existing file is not overwritten', async () => {
  using folder = temporaryFolder()
  await createStore(folder.path)
  writeFileSync(join(folder.path, 'taken.db'), 'mine')
  const { exitCode, stderr } = await petstore(['backup', 'taken.db'], { cwd: folder.path })
  expect({ exitCode, stderr: stderr.split('\n').at(-2) }).toEqual({
    exitCode: 1,
    stderr: 'petstore: Cannot back up to taken.db: the file exists; choose another name (EEXIST)',
  })
  expect(readFileSync(join(folder.path, 'taken.db'), 'utf8')).toBe('mine')
  expect(readdirSync(folder.path).toSorted()).toEqual(['data', 'taken.db'])
})

test.each<[string, (file: string) => void]>([
  ['does not exist', () => {}],
  ['is not a database', file => writeFileSync(file, 'no database '.repeat(1000))],
  [
    'belongs to another program',
    file => {
      using theirs = new Database(file)
      theirs.run('CREATE TABLE invoices (id INTEGER PRIMARY KEY)')
    },
  ],
])('a store that %s cannot be copied', async (_, make) => {
  using folder = temporaryFolder()
  make(join(folder.path, 'pets.db'))
  const args = ['backup', 'copy.db', '--database-url', 'sqlite:pets.db']
  const { exitCode, stderr } = await petstore(args, { cwd: folder.path })
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/^petstore: .*(no store|not a store|SQLITE_NOTADB).*\n$/m)
  expect(existsSync(join(folder.path, 'copy.db'))).toBe(false)
})

test('an interrupted backup leaves nothing behind', async () => {
  using folder = temporaryFolder()
  await createStore(folder.path)
  const store = new Database(join(folder.path, 'data/petstore.db'))
  store.run(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
    INSERT INTO pets (name, category_id) SELECT 'An animal with quite a long name, number ' || i, i FROM n`)
  store.close()
  const partial = () => readdirSync(folder.path).find(name => name.startsWith('copy.db.partial')) || undefined
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // On a busy machine a backup can end before we see that it has begun.
    for (let exitCode = 0; exitCode === 0; rmSync(join(folder.path, 'copy.db'), { force: true })) {
      const backup = Bun.spawn([join(projectFolder, 'bin/petstore'), 'backup', 'copy.db'], {
        cwd: folder.path,
        env: { PATH: process.env['PATH'] ?? '' },
        stderr: 'pipe',
      })
      await until('the partial copy', () => backup.exitCode ?? partial())
      backup.kill(signal)
      exitCode = await backup.exited
      if (exitCode !== 0) {
        expect([exitCode, await backup.stderr.text()]).toEqual([1, expect.stringContaining('Interrupted')])
        expect(readdirSync(folder.path)).toEqual(['data'])
      }
    }
  }
})
