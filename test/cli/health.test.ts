import { expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { petstore, refusal, startServer } from '../support/process.ts'
import { createStream } from '../support/stream.ts'

const proxy = 'http://127.0.0.1:9'
const proxies = { HTTP_PROXY: proxy, http_proxy: proxy, ALL_PROXY: proxy, no_proxy: 'example.com' }
const surroundings = { cwd: tmpdir(), env: { HOST: '0.0.0.0', ...proxies } }

test('health is ok or read-only, as the server says, although variables name a proxy, and fails when it has stopped', async () => {
  await using server = await startServer()
  const args = ['health', '--port', `${server.port}`]
  for (const check of ['healthz', 'readyz', 'livez']) {
    const ended = await petstore([...args, '--check', check], surroundings)
    expect(ended).toEqual({ exitCode: 0, stdout: 'ok\n', stderr: '' })
  }
  await server.stop('SIGTERM')
  expect(await refusal(args, surroundings)).toContain('ECONNREFUSED')

  await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('read-only\n') })
  const readOnly = await petstore(['health', '-p', `${other.port}`], surroundings)
  expect(readOnly).toMatchObject({ exitCode: 0, stdout: 'read-only\n' })
})

test.each<[string, () => Response, string]>([
  ['answers 200', () => new Response('Welcome'), '200'],
  ['answers 503', () => new Response('Busy', { status: 503 }), '503'],
  ['answers without an end', () => new Response(createStream([2 ** 26], 'stalls')), '200'],
  ['redirects', () => Response.redirect('/healthz'), '302'],
  ['is a server that stops', () => new Response('draining\n', { status: 503 }), 'draining'],
])('health fails if the program on the port %s', async (_, fetch, problem) => {
  await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
  expect(await refusal(['health', '-p', `${other.port}`], surroundings)).toContain(` ${problem}`)
})
