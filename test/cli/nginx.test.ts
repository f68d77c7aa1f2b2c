import { expect, setDefaultTimeout, test } from 'bun:test'
import { documentedConfiguration, nginx, startNginx } from '../support/nginx.ts'
import { describeWithPostgres, sharedDatabase } from '../support/postgres.ts'
import { freePort, startServer, temporaryFolder, testMsMax } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const key = 'a-key-from-outside-0123456789'

test.skipIf(!nginx)('the nginx configuration of the operating document serves every operation', async () => {
  using folder = temporaryFolder()
  const port = freePort()
  const publicUrl = `http://127.0.0.1:${port}/v1`
  const env = { PETSTORE_API_KEY: key, PETSTORE_PUBLIC_URL: publicUrl }
  await using server = await startServer({ cwd: folder.path, env })
  await using _ = await startNginx(documentedConfiguration(port, new URL(server.url).host), port)
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const ask = (address: string, init: RequestInit = {}) => fetch(address, { ...init, headers })
  const body = '{"name":"Rex","categoryId":9007199254740993}'
  const created = await ask(`${publicUrl}/pets`, { method: 'POST', body })
  expect(created.status).toBe(201)
  const location = created.headers.get('location') ?? ''
  expect(location).toStartWith(publicUrl)
  expect(await (await ask(location)).text()).toBe('{"id":1,"name":"Rex","categoryId":9007199254740993}')
  expect((await ask(`${publicUrl}/pets?limit=0`)).status).toBe(400)
  const tooLarge = await ask(`${publicUrl}/pets`, { method: 'POST', body: 'x'.repeat(100_000) })
  expect([tooLarge.status, JSON.parse(await tooLarge.text()).code]).toEqual([413, 'body_too_large'])
  const statuses = await Promise.all(Array.from({ length: 100 }, async () => (await ask(`${publicUrl}/pets`)).status))
  expect(new Set(statuses)).toEqual(new Set([200]))
})

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
