import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { KeepAliveClient, openCrowd } from '../support/connections.ts'
import { projectFolder, startServer, until } from '../support/process.ts'

const key = 'a-key-for-descriptors-0123456789'
const gets = '/v1/pets /openapi.json / /docs /docs/docs.css /readyz'.split(' ')
const requests = [
  ...gets.map(path => ({ method: 'GET', path }) as const),
  { method: 'POST', path: '/v1/pets', body: '{"name":"Rex","categoryId":7}' } as const,
]

test('without file descriptors, requests on open connections are answered; with them again, all works', async () => {
  const command = ['sh', '-c', `ulimit -n 256; exec "${join(projectFolder, 'bin/petstore')}" serve --port 0`]
  await using server = await startServer({ env: { PETSTORE_API_KEY: key }, command })
  const clients = requests.map(request => ({ request, client: new KeepAliveClient(server.port, key) }))
  // A first request makes sure that the server has accepted each connection, and asks for nothing that it prepares.
  for (const { client } of clients) {
    expect(await client.send({ method: 'GET', path: '/livez' })).toMatchObject({ reply: { status: 200 } })
  }
  const expectAllServed = async () => {
    for (const { request, client } of clients) {
      const status = request.method === 'POST' ? 201 : 200
      expect([request, await client.send(request)]).toMatchObject([request, { reply: { status } }])
    }
  }
  {
    using _ = await openCrowd(server.port, 400)
    await until('the descriptors to run out', async () => {
      const { exited } = Bun.spawn(['sh', '-c', `test "$(ls /proc/${server.pid}/fd | wc -l)" -ge 255`])
      return (await exited) === 0 || undefined
    })
    await expectAllServed()
  }
  for (const { client } of clients) client[Symbol.dispose]()
  await until('connections to be accepted again', () => server.fetch('/pets', key).then(() => true))
  await expectAllServed()
})
