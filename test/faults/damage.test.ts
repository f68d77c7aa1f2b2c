import { Database } from 'bun:sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueApiKey } from '../../src/api-key.ts'
import { identify } from '../../src/store/sqlite/schema.ts'
import { Committer, type Write } from '../../src/store/sqlite/writer-thread.ts'
import { animalLines } from '../support/load.ts'
import { loggedBy, petstore, type Server, startServer, temporaryFolder, until } from '../support/process.ts'

const advice = 'stop the servers, move the file away with its -wal and -shm files, and restore a backup'

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

async function statusesOf(server: Server): Promise<readonly number[]> {
  const requests = [[`/pets/${animals}`], ['/pets?limit=100'], ['/pets', rex]] as const
  const responses = await Promise.all(requests.map(([path, init]) => server.fetch(path, key, init)))
  return responses.map(({ status }) => status)
}

const healthOf = async ({ url }: Server) => (await fetch(new URL('/healthz', url))).status

/** The pages with the animals become zeros; the file's header and its schema stay. */
const zeroAnimals = () => writeFileSync(file, readFileSync(file).fill(0, 16 * 4096))

function zeroTable(name: string): void {
  using database = new Database(file)
  const [[page] = []] = database.query('SELECT rootpage FROM sqlite_schema WHERE name = ?').values(name)
  database.close()
  writeFileSync(file, readFileSync(file).fill(0, (Number(page) - 1) * 4096, Number(page) * 4096))
}

/** The damage is found by this request; all later responses come from a store that knows of it. */
async function expectUnavailable(server: Server, path: string, init?: typeof rex): Promise<void> {
  const response = await server.fetch(path, key, init)
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, null])
  expect(await response.json()).toMatchObject({ code: 'store_damaged' })
  for (let i = 0; i < 3; i++) expect(await statusesOf(server)).toEqual([503, 503, 503])
  // The result of the check at the start is used for a moment.
  await until('/healthz to notice the damage', async () => (await healthOf(server)) === 503 || undefined)
  const stopped = await server.stop('SIGTERM')
  const damage = `error The store ${file} is damaged (SQLite: SQLITE_CORRUPT); ${advice}`
  expect(loggedBy(stopped)).toEqual([damage, 'info Stopping'])
}

test('a backup that is copied over the file of a running server: 503 for all, and a restore by the book helps', async () => {
  await using server = await startServer({ cwd: folder.path, env })
  expect((await server.fetch('/pets', key)).status).toBe(200)
  copyFileSync(backup, file)
  await expectUnavailable(server, `/pets/${animals}`)
  expect(readFileSync(file).equals(readFileSync(backup))).toBe(true)

  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  expect(await petstore(['restore', '--yes', 'backup.db'], { cwd: folder.path })).toMatchObject({ exitCode: 0 })
  await using restored = await startServer({ cwd: folder.path, env })
  expect([...(await statusesOf(restored)), await healthOf(restored)]).toEqual([404, 200, 201, 200])
})

test('a stop does not move the write-ahead log into a damaged file', async () => {
  await using server = await startServer({ cwd: folder.path, env })
  expect((await server.fetch('/pets', key, rex)).status).toBe(201)
  zeroAnimals()
  const before = readFileSync(file)
  await expectUnavailable(server, '/pets/2500')
  expect(readFileSync(file).equals(before)).toBe(true)
})

test('damage that a creation finds makes the store unavailable, and the creation is not acknowledged', async () => {
  await using server = await startServer({ cwd: folder.path, env })
  zeroAnimals()
  await expectUnavailable(server, '/pets', rex)
})

const once = { scope: 'till', key: 'first', at: new Date() }
test.each<[string, Write]>([
  ['idempotency_keys', ['createPetOnce', { name: 'Rex', categoryId: 7n }, once]],
  ['pets', ['createPet', { name: 'Rex', categoryId: 7n }]],
])('a group of writes in which one finds damage in %s is not committed at all', (table, write) => {
  zeroTable(table)
  const committer = new Committer(file, identify(file))
  const { record } = issueApiKey({ name: 'till', permission: 'read-write', createdAt: new Date() })
  const committed = committer.commit([['createKey', record], write])
  const failures = committed === 'locked' ? undefined : committed.failures?.values()
  expect([...(failures ?? [])].map(({ kind }) => kind)).toEqual(['damaged', 'damaged'])
  committer.close()
  using database = new Database(file, { readonly: true })
  expect(database.query('SELECT name FROM api_keys').all()).toEqual([])
})

test('a file that is damaged at the start is refused, and stays byte for byte as it was', async () => {
  // Damage is reported before the version, which is not supported.
  {
    using store = new Database(file)
    store.run('PRAGMA user_version = 1000')
    store.run('PRAGMA wal_checkpoint(TRUNCATE)')
  }
  zeroAnimals()
  const before = readFileSync(file)
  const problem = `the file is damaged (quick_check); ${advice}`
  const stderr = `petstore: Cannot open the store data/petstore.db: ${problem}\n`
  for (const line of ['serve --port 0', 'keys list', 'export']) {
    expect(await petstore(line.split(' '), { cwd: folder.path, env }), line).toMatchObject({ exitCode: 1, stderr })
  }
  expect(readFileSync(file).equals(before)).toBe(true)
})
