import { Database } from 'bun:sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueApiKey } from '../../src/api-key.ts'
import type { Write } from '../../src/store/sqlite/writer.ts'
import { Committer } from '../../src/store/sqlite/writer-thread.ts'
import { loggedBy, petstore, type Server, startServer, temporaryFolder, testMsMax } from '../support/process.ts'
import { animalLines } from '../support/workplace.ts'

setDefaultTimeout(testMsMax)

const key = 'a-key-for-damaged-files-0123456789'
const env = { PETSTORE_API_KEY: key }
const rex = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }
const animals = 5_000

/** A store with many animals, and a backup from when it had few. Each test works on a copy. */
let prepared: ReturnType<typeof temporaryFolder>
let folder: ReturnType<typeof temporaryFolder>
let file: string
let backup: string

beforeAll(async () => {
  prepared = temporaryFolder()
  const run = async (...args: string[]) =>
    expect(await petstore(args, { cwd: prepared.path })).toMatchObject({ exitCode: 0 })
  writeFileSync(join(prepared.path, 'few.ndjson'), animalLines(10))
  writeFileSync(join(prepared.path, 'many.ndjson'), animalLines(animals))
  await run('import', 'few.ndjson')
  await run('backup', 'backup.db')
  await run('import', 'many.ndjson')
})

afterAll(() => prepared[Symbol.dispose]())

beforeEach(() => {
  folder = temporaryFolder()
  cpSync(prepared.path, folder.path, { recursive: true })
  file = join(folder.path, 'data/petstore.db')
  backup = join(folder.path, 'backup.db')
})

afterEach(() => folder[Symbol.dispose]())

const statusesOf = async (server: Server) =>
  Promise.all([
    server.fetch(`/pets/${animals}`, key),
    server.fetch('/pets?limit=100', key),
    server.fetch('/pets', key, rex),
    fetch(new URL('/readyz', server.url)),
  ]).then(responses => responses.map(({ status }) => status))

/** The pages with the animals become zeros; the file's header and its schema stay. */
function zeroAnimals(): void {
  const bytes = readFileSync(file)
  writeFileSync(file, bytes.fill(0, 16 * 4096))
}

function zeroTable(name: string): void {
  const rootPage = () => {
    using database = new Database(file)
    const row = database.query<{ rootpage: number }, [string]>('SELECT rootpage FROM sqlite_schema WHERE name = ?')
    return row.get(name)?.rootpage ?? 0
  }
  const page = rootPage()
  writeFileSync(file, readFileSync(file).fill(0, (page - 1) * 4096, page * 4096))
}

/** Every response but the first one, in which the damage is found, comes from a store that knows of it. */
async function expectUnavailable(server: Server): Promise<void> {
  for (let i = 0; i < 3; i++) expect(await statusesOf(server)).toEqual([503, 503, 503, 503])
  const stopped = await server.stop('SIGTERM')
  const damage = `error The store ${file} is damaged (SQLite: SQLITE_CORRUPT): stop the server and restore a backup`
  expect(loggedBy(stopped)).toEqual([damage, 'info Stopping'])
}

test('a backup that is copied over the file of a running server: 503 for all, and a restore by the book helps', async () => {
  await using server = await startServer({ cwd: folder.path, env })
  expect((await server.fetch('/pets', key)).status).toBe(200)
  copyFileSync(backup, file)
  expect((await server.fetch(`/pets/${animals}`, key)).status).toBe(503)
  await expectUnavailable(server)
  expect(readFileSync(file).equals(readFileSync(backup))).toBe(true)

  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  copyFileSync(backup, file)
  await using restored = await startServer({ cwd: folder.path, env })
  expect(await statusesOf(restored)).toEqual([404, 200, 201, 200])
})

test('a stop does not move the write-ahead log into a damaged file', async () => {
  await using server = await startServer({ cwd: folder.path, env })
  expect((await server.fetch('/pets', key, rex)).status).toBe(201)
  zeroAnimals()
  const before = readFileSync(file)
  expect((await server.fetch('/pets/2500', key)).status).toBe(503)
  await expectUnavailable(server)
  expect(readFileSync(file).equals(before)).toBe(true)
})

test('damage that a creation finds makes the store unavailable, and the creation is not acknowledged', async () => {
  await using server = await startServer({ cwd: folder.path, env })
  zeroAnimals()
  expect((await server.fetch('/pets', key, rex)).status).toBe(503)
  await expectUnavailable(server)
})

test.each<[string, Write]>([
  [
    'creation_keys',
    ['createPetOnce', { name: 'Rex', categoryId: 7n }, { scope: 'till', key: 'first', at: new Date() }],
  ],
  ['pets', ['createPet', 'Rex', 7n, null]],
])('a group of writes in which one finds damage in %s is not committed at all', (table, write) => {
  zeroTable(table)
  const committer = new Committer(file)
  const { record } = issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date() })
  const { failures } = committer.commit([['createKey', record], write])
  expect([...(failures?.values() ?? [])].map(({ kind }) => kind)).toEqual(['damaged', 'damaged'])
  committer.close()
  using database = new Database(file, { readonly: true })
  expect(database.query('SELECT name FROM api_keys').all()).toEqual([])
})

test('a file that is damaged at the start is refused, and stays byte for byte as it was', async () => {
  {
    using database = new Database(file)
    // As a file that the version before has left: a migration would change it.
    database.run('PRAGMA user_version = 2')
    database.run('PRAGMA wal_checkpoint(TRUNCATE)')
  }
  zeroAnimals()
  const before = readFileSync(file)
  for (const args of [['serve', '--port', '0'], ['keys', 'list'], ['export']]) {
    const { exitCode, stderr } = await petstore(args, { cwd: folder.path, env })
    expect([args, exitCode, stderr]).toEqual([
      args,
      1,
      'petstore: Cannot open the store data/petstore.db: the file is damaged; restore a backup (SQLITE_CORRUPT)\n',
    ])
  }
  expect(readFileSync(file).equals(before)).toBe(true)
})

test('damage that an export finds in a file too large to be checked at the start is reported in one line', async () => {
  {
    using database = new Database(file)
    database.run(`CREATE TABLE padding (bytes BLOB)`)
    database.run('INSERT INTO padding VALUES (zeroblob(17000000))')
    database.run('PRAGMA wal_checkpoint(TRUNCATE)')
  }
  zeroAnimals()
  const { exitCode, stderr } = await petstore(['export'], { cwd: folder.path })
  expect(exitCode).toBe(1)
  expect(stderr).toContain('petstore: The store is damaged (SQLite: SQLITE_CORRUPT): restore a backup\n')
  expect(stderr).not.toMatch(/\n\s+at /)
})
