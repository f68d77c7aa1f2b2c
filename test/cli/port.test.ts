import { expect, setDefaultTimeout, test } from 'bun:test'
import { connect } from 'node:net'
import { petstore, startServer, temporaryFolder, testMsMax, until } from '../support/process.ts'

setDefaultTimeout(testMsMax)

const key = 'a-key-for-shared-ports-0123456789'
const body = '{"name":"Rex","categoryId":7}'

test.each([
  ['a server', []],
  ['servers that share it', ['--reuse-port']],
])('a port that %s uses is refused, and the first server continues', async (_, flags) => {
  using folder = temporaryFolder()
  const env = { PETSTORE_API_KEY: key }
  await using server = await startServer({
    cwd: folder.path,
    env,
    args: ['serve', '--port', '0', ...flags],
  })
  const { port } = new URL(server.url)
  const second = await petstore(['serve', '--port', port, '--database-url', 'sqlite:second.db'], {
    cwd: folder.path,
    env,
  })
  expect(second).toMatchObject({ exitCode: 1, stdout: '' })
  expect(second.stderr).toMatch(/^petstore: Cannot listen on 127\.0\.0\.1:\d+: .*\n$/)
  expect((await server.fetch('/pets', key)).status).toBe(200)
})

/** A POST that the server has accepted and whose body is missing. */
async function acceptedPost(port: string): Promise<{ finish(): Promise<string> }> {
  const socket = connect(Number(port), '127.0.0.1')
  let received = ''
  socket.on('data', chunk => {
    received += chunk
  })
  const head = `Host: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n`
  socket.write(`POST /v1/pets HTTP/1.1\r\n${head}\r\n`)
  await until('100 Continue', () => received.startsWith('HTTP/1.1 100') || undefined)
  return {
    async finish() {
      socket.write(body)
      return await until('the response', () => /HTTP\/1\.1 (20\d)[\s\S]*}$/.exec(received)?.[1])
    },
  }
}

test.skipIf(process.platform !== 'linux')(
  'two instances share a port; one that stops answers every request that it has accepted',
  async () => {
    using folder = temporaryFolder()
    const env = { PETSTORE_API_KEY: key, PETSTORE_REUSE_PORT: 'true' }
    await using first = await startServer({ cwd: folder.path, env })
    const { port } = new URL(first.url)
    await using second = await startServer({ cwd: folder.path, env, args: ['serve', '--port', port] })

    // With 64 connections the chance that one instance gets none of them is 2^-63.
    const posts = await Promise.all(Array.from({ length: 64 }, () => acceptedPost(port)))
    const stopping = first.stop('SIGTERM')
    const statuses = await Promise.all(posts.map(post => post.finish()))
    expect(new Set(statuses)).toEqual(new Set(['201']))

    const stopped = await stopping
    expect(stopped.exitCode).toBe(0)
    for (let i = 0; i < 20; i++) expect((await second.fetch('/pets', key)).status).toBe(200)
    const pets = (await (await second.fetch('/pets?limit=100', key)).json()) as unknown[]
    expect(pets).toHaveLength(64)
    const servedBy = ({ stderr }: { stderr: string }) => stderr.split('"operation":"createPet"').length - 1
    const [byFirst, bySecond] = [servedBy(stopped), servedBy(await second.stop('SIGTERM'))]
    expect(byFirst).toBeGreaterThan(0)
    expect(bySecond).toBeGreaterThan(0)
    expect(byFirst + bySecond).toBe(64)
  },
)
