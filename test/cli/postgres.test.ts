import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { temporaryFolder } from '../support/folder.ts'
import type { TestDatabase } from '../support/postgres.ts'
import {
  loggedBy,
  pasteCurl,
  petstore,
  projectFolder,
  startServer,
  testMsMax,
  until,
} from '../support/process.ts'
import { describeWithPostgres, sharedDatabase } from '../support/with-postgres.ts'

setDefaultTimeout(testMsMax)

const outsideKey = 'a-key-from-outside-0123456789'
const rex = { method: 'POST', body: '{"name":"Rex","categoryId":9223372036854775807}' }

/** What people may see of an address: host and database, but nobody's name or password. */
const placeOf = ({ url }: TestDatabase) => url.replace(/\/\/[^@]*@/, '//').replace(/\?.*/, '')

describeWithPostgres('petstore on PostgreSQL', () => {
  test('the first start makes the tables and shows a key that works when pasted; the second shows none', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: database.url } }
    await using first = await startServer(surroundings)
    const [, key = ''] =
      /^The first API key, shown only this once: (pets_[0-9A-Za-z]{36})$/m.exec(first.stdout) ?? []
    expect(await pasteCurl(first, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
    expect((await first.fetch('/pets', key, rex)).status).toBe(201)
    const ended = await first.stop('SIGTERM')
    expect(ended.exitCode).toBe(0)
    expect(loggedBy(ended)).toEqual(['info Stopping'])

    await using second = await startServer(surroundings)
    expect(second.stdout).not.toMatch(/first API key|pets_\w{36}/)
    expect(second.stdout).toContain('keys create --name')
    const response = await second.fetch('/pets', key)
    expect(await response.text()).toBe('[{"id":1,"name":"Rex","categoryId":9223372036854775807}]')
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('of four that start on an empty database at once, one shows a first key', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: database.url } }
    const servers = await Promise.all(Array.from({ length: 4 }, () => startServer(surroundings)))
    try {
      const shown = servers.flatMap(({ stdout }) => /pets_\w{36}/.exec(stdout)?.[0] ?? [])
      expect(shown).toHaveLength(1)
      for (const server of servers) expect((await server.fetch('/pets', shown[0] ?? '')).status).toBe(200)
    } finally {
      for (const server of servers) await server[Symbol.asyncDispose]()
    }
  })

  test('npm start names the place without user or password, and serves', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const url = database.url.replace(/\/\/([^:@]*)(?::[^@]*)?@/, '//$1:hunter2@')
    // Where the server was there already it wants the password that is its own.
    const DATABASE_URL = process.env['PETSTORE_TEST_POSTGRES_URL'] ? database.url : url
    const env = { PORT: '0', DATABASE_URL }
    await using server = await startServer({ command: ['npm', 'start'], cwd: projectFolder, env })
    expect(server.stdout).toContain(` serves ${server.url} from ${placeOf(database)}\n`)
    expect(await pasteCurl(server, { cwd: folder.path })).toMatchObject({ exitCode: 0, stdout: '[]' })
    const { stdout, stderr, exitCode } = await server.stopAll('SIGINT')
    expect(exitCode).toBe(0)
    expect(stdout + stderr).not.toMatch(/hunter2|postgres@/)
  })

  test('keys are made, listed and revoked, and a running server follows', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const surroundings = { cwd: folder.path, env: { DATABASE_URL: database.url } }
    const keys = (...args: string[]) => petstore(['keys', ...args], surroundings)
    const none = await keys('list')
    expect(none).toMatchObject({ exitCode: 1, stdout: '' })
    expect(none.stderr).toBe(
      `petstore: There is no store in ${placeOf(database)}: start the server once, or set DATABASE_URL\n`,
    )

    const made = await keys('create', '--name', 'till', '--expires', '90d')
    expect(made.exitCode).toBe(0)
    expect(made.stdout).toMatch(/^pets_[0-9A-Za-z]{36}\n$/)
    expect(made.stderr).toBe(
      `Created a new store at ${placeOf(database)}\nKey "till" (read-write) is in ${placeOf(database)}; it is shown only this once:\n`,
    )
    const key = made.stdout.trim()
    const reader = (await keys('create', '--name', 'screen', '--read-only')).stdout.trim()

    await using server = await startServer(surroundings)
    expect((await server.fetch('/pets', key, rex)).status).toBe(201)
    expect((await server.fetch('/pets', reader)).status).toBe(200)
    expect((await server.fetch('/pets', reader, rex)).status).toBe(403)

    const listed = await keys('list')
    expect(listed.stdout).toContain('till')
    expect(listed.stdout).toContain('read-only')
    expect(listed.stdout).not.toContain(key)

    expect((await keys('revoke', 'till')).exitCode).toBe(0)
    const status = () => server.fetch('/pets', key).then(answer => answer.status)
    await until('the key to be refused', async () => ((await status()) === 401 ? true : undefined), 5_000)
    const [till, screen] = JSON.parse((await keys('list', '--json')).stdout)
    expect(till).toMatchObject({ name: 'till', revokedAt: expect.any(String) })
    expect(screen).toMatchObject({ name: 'screen', access: 'read-only', revokedAt: null })
    expect((await keys('revoke', 'till')).exitCode).toBe(1)
  })

  test('backup is refused in one line that names what to use instead, and no file is made', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const ended = await petstore(['backup', 'copy.db', '--database-url', database.url], { cwd: folder.path })
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^petstore: Cannot back up PostgreSQL: [^\n]*pg_dump[^\n]*export[^\n]*\n$/)
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('replicas that cannot be reached are named, not the store', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const args = ['serve', '--port', '0', '--read-url', 'postgres://somebody:hunter2@127.0.0.1:1/pets']
    const ended = await petstore(args, { cwd: folder.path, env: { DATABASE_URL: database.url } })
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^petstore: [^\n]*127\.0\.0\.1:1\b[^\n]*\n$/)
    expect(ended.stderr).not.toContain('hunter2')
  })

  test('--read-url and --database-pool serve the same catalogue', async () => {
    using folder = temporaryFolder()
    await using database = await sharedDatabase()
    const env = { DATABASE_URL: database.url, PETSTORE_API_KEY: outsideKey }
    const args = ['serve', '--port', '0', '--read-url', database.url, '--database-pool', '1']
    await using server = await startServer({ cwd: folder.path, env, args })
    for (let i = 0; i < 5; i++) expect((await server.fetch('/pets', outsideKey, rex)).status).toBe(201)
    const all = await Promise.all(Array.from({ length: 50 }, () => server.fetch('/pets', outsideKey)))
    for (const answer of all) expect(await answer.json()).toHaveLength(5)
  })
})
