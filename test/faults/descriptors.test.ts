import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { keepAliveClient, openCrowd } from '../support/connections.ts'
import { portOf, projectFolder, type Server, startServer, temporaryFolder, until } from '../support/process.ts'

const key = 'a-key-for-descriptors-0123456789'
const body = '{"name":"Rex","categoryId":7}'

let folder: ReturnType<typeof temporaryFolder>
let server: Server

beforeAll(async () => {
  folder = temporaryFolder()
  const command = `ulimit -n 256; exec "${join(projectFolder, 'bin/petstore')}" serve --port 0`
  const env = { PETSTORE_API_KEY: key }
  server = await startServer({ cwd: folder.path, env, command: ['sh', '-c', command] })
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

test('without file descriptors, requests on open connections are answered; with them again, all works', async () => {
  const port = portOf(server)
  const paths = ['/v1/pets', '/openapi.json', '/', '/docs', '/docs/swagger-ui.css', '/readyz']
  const clients = await Promise.all(
    [...paths, 'POST'].map(async path => ({ path, client: await keepAliveClient(port, key) })),
  )
  // A first request makes sure that the server has accepted each connection, and asks for nothing that it prepares.
  for (const { client } of clients) {
    expect(await client.send({ method: 'GET', path: '/livez' })).toMatchObject({ reply: { status: 200 } })
  }
  {
    using _ = await openCrowd(port, 400)
    await until('the descriptors to run out', async () => {
      const { exited } = Bun.spawn(['sh', '-c', `test "$(ls /proc/${server.pid}/fd | wc -l)" -ge 255`])
      return (await exited) === 0 || undefined
    })
    for (const { path, client } of clients) {
      const outcome = await client.send(
        path === 'POST' ? { method: 'POST', path: '/v1/pets', body } : { method: 'GET', path },
      )
      expect([path, outcome]).toEqual([path, expect.objectContaining({ kind: 'answered' })])
      const status = outcome.kind === 'answered' ? outcome.reply.status : 0
      expect([path, status]).toEqual([path, path === 'POST' ? 201 : 200])
    }
  }
  await until('connections to be accepted again', () => server.fetch('/pets', key).then(() => true))
  const origin = new URL(server.url).origin
  for (const path of paths) {
    const { status } = await fetch(origin + path, { headers: { authorization: `Bearer ${key}` } })
    expect([path, status]).toEqual([path, 200])
  }
  expect((await server.fetch('/pets', key, { method: 'POST', body })).status).toBe(201)
})
