import { describe, expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { petstore, refusal, startServer } from '../support/process.ts'
import { createStream } from '../support/stream.ts'

describe('health', () => {
  const proxy = 'http://127.0.0.1:9'
  const proxies = { HTTP_PROXY: proxy, http_proxy: proxy, ALL_PROXY: proxy, no_proxy: 'example.com' }
  const env = { HOST: '0.0.0.0', ...proxies }

  test('is ok for a server that is ready, although variables name a proxy, and fails when it has stopped', async () => {
    await using server = await startServer()
    const args = ['health', '--port', `${server.port}`]
    for (const check of ['healthz', 'readyz', 'livez']) {
      const ended = await petstore([...args, '--check', check], { cwd: server.cwd, env })
      expect(ended).toEqual({ exitCode: 0, stdout: 'ok\n', stderr: '' })
    }
    await server.stop('SIGTERM')
    const problem = await refusal(args, { cwd: server.cwd, env })
    expect(problem).toMatch(/^petstore: http:\/\/127\.0\.0\.1:\d+\/healthz does not answer \(ECONNREFUSED\): .*\n$/)
  })

  test('is read-only, with exit code 0, for a server that says so', async () => {
    await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('read-only\n') })
    const ended = await petstore(['health', '-p', `${other.port}`], { cwd: tmpdir(), env })
    expect(ended).toEqual({ exitCode: 0, stdout: 'read-only\n', stderr: '' })
  })

  test.each<[string, () => Response, string]>([
    ['answers 200', () => new Response('Welcome'), '200'],
    ['answers 503', () => new Response('Busy', { status: 503 }), '503'],
    ['answers without an end', () => new Response(createStream([2 ** 26], 'stalls')), '200'],
    ['redirects', () => Response.redirect('/healthz'), '302'],
    ['is a server that stops', () => new Response('draining\n', { status: 503 }), ''],
  ])('fails if the program on the port %s', async (_, fetch, answer) => {
    await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
    const another = `http://127.0.0.1:${other.port}/healthz responds with ${answer}: another program may use this port`
    const stderr = `petstore: ${answer ? another : 'The server is not healthy: draining'}\n`
    expect(await refusal(['health', '-p', `${other.port}`], { cwd: tmpdir(), env })).toBe(stderr)
  })
})
