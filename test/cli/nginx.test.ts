import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { conform } from '../../src/conform/run.ts'
import { KeepAliveClient } from '../support/connections.ts'
import { key as failureKey, Load, serveFrom } from '../support/load.ts'
import { configurationAt, documentedConfiguration, nginx, startNginx } from '../support/nginx.ts'
import {
  describeWithOwnPostgres,
  describeWithPostgres,
  newDatabase,
  sharedDatabase,
  startCluster,
} from '../support/postgres.ts'
import { freePort, projectFolder, run, startServer, temporaryFolder, until } from '../support/process.ts'

const key = 'a-key-from-outside-0123456789'

test('deploy/nginx.conf is the documented configuration for the instances of compose.yaml', () => {
  const head = '# From docs/operating.md and docs/scaling.md: UPDATE_DOCS=1 npx bun test test/cli/nginx.test.ts\n'
  const expected = `${head}${configurationAt('8080', 'petstore-1:8080', 'petstore-2:8080')}`
  const file = join(projectFolder, 'deploy/nginx.conf')
  if (process.env['UPDATE_DOCS']) writeFileSync(file, expected)
  expect(readFileSync(file, 'utf8')).toBe(expected)
})

test.skipIf(!nginx)(
  'the nginx configuration of the operating document passes every check but one, and the log has the address of the client',
  async () => {
    const port = freePort()
    const publicUrl = `http://127.0.0.1:${port}/v1`
    await using server = await startServer({
      env: { PETSTORE_API_KEY: key, PETSTORE_PUBLIC_URL: publicUrl, PETSTORE_TRUSTED_PROXIES: '127.0.0.1' },
    })
    await using _ = await startNginx(documentedConfiguration(port, new URL(server.url).host), port)
    const results = await conform({ baseUrl: publicUrl, key, readOnly: false }, { strict: true })
    const others = results.filter(({ finding }) => finding.outcome !== 'passed')
    // nginx assigns the ids of requests.
    expect(others.map(({ check }) => check.name)).toEqual(['X-Request-Id is the one that the client sent'])
    const list = async () => (await fetch(`${publicUrl}/pets`, { headers: { authorization: `Bearer ${key}` } })).status
    expect(new Set(await Promise.all(Array.from({ length: 100 }, list)))).toEqual(new Set([200]))

    const from = ['--interface', '127.0.0.2', '-H', 'X-Forwarded-For: 203.0.113.7']
    await run(['curl', '-s', ...from, `http://127.0.0.1:${port}/from-elsewhere`], { cwd: server.cwd })
    const line = await until('its line in the log', () => /^.*"\/from-elsewhere".*$/m.exec(server.stderr)?.[0])
    expect(JSON.parse(line)).toMatchObject({ status: 404, client: '127.0.0.2' })
  },
)

describeWithPostgres('several instances behind nginx', () => {
  test.skipIf(!nginx)('when one is killed, reads continue and new animals go to the other', async () => {
    await using database = await sharedDatabase()
    using folder = temporaryFolder()
    const surroundings = { cwd: folder.path, env: { PETSTORE_API_KEY: key, DATABASE_URL: database.url } }
    await using first = await startServer(surroundings)
    await using second = await startServer(surroundings)
    const port = freePort()
    const configuration = documentedConfiguration(port, new URL(first.url).host, new URL(second.url).host)
    await using _ = await startNginx(configuration, port)
    const headers = { authorization: `Bearer ${key}` }
    const statusOf = async (init: RequestInit = {}) =>
      (await fetch(`http://127.0.0.1:${port}/v1/pets`, { headers, ...init })).status
    const adding = { method: 'POST', body: '{"name":"Rex","categoryId":7}' }
    for (let i = 0; i < 20; i++) expect([await statusOf(adding), await statusOf()]).toEqual([201, 200])
    await first.stop('SIGKILL')
    for (let i = 0; i < 20; i++) expect(await statusOf()).toBe(200)
    expect(await statusOf(adding)).toBe(201)
  })
})

describeWithOwnPostgres('instances behind nginx, and PostgreSQL stops for a while', () => {
  test.skipIf(!nginx)('clients get 503 with our Error body meanwhile, and nothing else', async () => {
    await using cluster = await startCluster()
    const { url } = await newDatabase(cluster.url())
    await using first = await serveFrom(url)
    await using second = await serveFrom(url)
    const port = freePort()
    const [one = '', two = ''] = [first, second].map(({ server }) => new URL(server.url).host)
    await using _ = await startNginx(documentedConfiguration(port, one, two), port)
    const load = new Load(port, failureKey)
    await load.makesProgress(100)
    await cluster.stop('SIGQUIT')
    await Bun.sleep(3_000)
    await cluster.start()
    await load.makesProgress(100)
    await load.stop()
    expect(load.unavailable).toBeGreaterThan(16)
    using client = new KeepAliveClient(port, failureKey)
    await load.expectEachOnce(client)
  })
})
