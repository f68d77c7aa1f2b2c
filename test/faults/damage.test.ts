import { Database } from 'bun:sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueApiKey } from '../../src/api-key.ts'
import { identify } from '../../src/store/sqlite/schema.ts'
import { Committer, type Write } from '../../src/store/sqlite/writer-thread.ts'
import { loggedBy, petstore, refusal, type Server, startServer, temporaryFolder, until } from '../support/process.ts'
import { animalLines } from './load.ts'

const key = 'a-key-for-damaged-files-0123456789'
const env = { PETSTORE_API_KEY: key }
const rex = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }
const animals = 5_000

/** A store with many animals, and a backup from when it had few. Each test works on a copy. */
let prepared: ReturnType<typeof temporaryFolder>
let folder: ReturnType<typeof temporaryFolder>
let file: string

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
})

afterEach(() => folder[Symbol.dispose]())

async function statusesOf(server: Server): Promise<readonly number[]> {
  const requests = [[`/pets/${animals}`], ['/pets?limit=100'], ['/pets', rex]] as const
  const responses = await Promise.all(requests.map(([path, init]) => server.fetch(path, key, init)))
  return responses.map(({ status }) => status)
}

const healthOf = async ({ url }: Server) => (await fetch(new URL('/healthz', url))).status

/** The file's header and its schema. The pages with the animals follow. */
const headBytes = 16 * 4096

/** The damage is found by this request; all later responses come from a store that knows of it. */
async function expectUnavailable(server: Server, path: string, init?: typeof rex): Promise<void> {
  const response = await server.fetch(path, key, init)
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, null])
  expect(await response.json()).toMatchObject({ code: 'store_damaged' })
  for (let i = 0; i < 3; i++) expect(await statusesOf(server)).toEqual([503, 503, 503])
  // The result of the check at the start is used for a moment.
  await until('/healthz to notice the damage', async () => (await healthOf(server)) === 503 || undefined)
  const stopped = await server.stop('SIGTERM')
  expect(loggedBy(stopped)).toEqual([expect.stringMatching(/^error .*SQLITE_CORRUPT/), 'info Stopping'])
}

test('a backup that is copied over the file of a running server: 503 for all, and a restore by the book helps', async () => {
  const backup = join(folder.path, 'backup.db')
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

test('a creation that finds damage is not acknowledged, and the stop does not move the write-ahead log into the file', async () => {
  await using server = await startServer({ cwd: folder.path, env })
  expect((await server.fetch('/pets/1', key, { method: 'PATCH', body: '{"name":"Mia"}' })).status).toBe(200)
  writeFileSync(file, readFileSync(file).fill(0, headBytes))
  const before = readFileSync(file)
  await expectUnavailable(server, '/pets', rex)
  expect(readFileSync(file).equals(before)).toBe(true)
})

const pet = { name: 'Rex', categoryId: 7n }
test.each<Write>([
  ['createPet', pet],
  ['createPetOnce', pet, { scope: 'till', key: 'first', at: new Date() }],
])('a group of writes in which %s finds damage is not committed at all', (...write) => {
  writeFileSync(file, readFileSync(file).fill(0, headBytes))
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
  writeFileSync(file, readFileSync(file).fill(0, headBytes))
  const before = readFileSync(file)
  for (const line of ['serve --port 0', 'keys list', 'export']) {
    expect(await refusal(line.split(' '), { cwd: folder.path, env }), line).toContain('quick_check')
  }
  expect(readFileSync(file).equals(before)).toBe(true)
})
