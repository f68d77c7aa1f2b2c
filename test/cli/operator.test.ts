import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { petstore, refusal, startServer, temporaryFolder } from '../support/process.ts'
import { pasteCurl } from './child.ts'

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

  test.each<[string, () => Response, string]>([
    ['answers 200', () => new Response('Welcome'), '200'],
    ['answers 503', () => new Response('Busy', { status: 503 }), '503'],
    ['redirects', () => Response.redirect('/healthz'), '302'],
    ['is a server that stops', () => new Response('draining\n', { status: 503 }), ''],
  ])('fails if the program on the port %s', async (_, fetch, answer) => {
    await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
    const another = `http://127.0.0.1:${other.port}/healthz responds with ${answer}: another program may use this port`
    const stderr = `petstore: ${answer ? another : 'The server is not healthy: draining'}\n`
    expect(await refusal(['health', '-p', `${other.port}`], { cwd: tmpdir(), env })).toBe(stderr)
  })
})

/** Listens on a port, unless another program does already. */
function occupy(port: number) {
  try {
    return Bun.listen({ port, hostname: '127.0.0.1', socket: { data() {} } })
  } catch {
    return undefined
  }
}

describe('demo', () => {
  /** Temporary files go into the folder, and the variables of a real store are set. */
  const surroundings = (cwd: string) => ({ cwd, env: { TMPDIR: cwd, DATABASE_URL: 'sqlite:real.db', PORT: '0' } })

  test('serves thirty animals of every status with a curl line to paste, and leaves nothing behind', async () => {
    using folder = temporaryFolder()
    await using server = await startServer({ args: ['demo'], ...surroundings(folder.path) })
    expect(readdirSync(folder.path)).toEqual([expect.stringMatching(/^petstore-demo-/)])
    const { stdout } = await pasteCurl(server, { cwd: folder.path })
    expect(JSON.parse(stdout)).toHaveLength(20)
    const [, key = ''] = /(pets_\w{36})/.exec(server.stdout) ?? []
    const pets = (await (await server.fetch('/pets?limit=100', key)).json()) as { id: number; status?: string }[]
    expect(pets.map(({ id }) => id)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1))
    expect(new Set(pets.map(({ status }) => status))).toEqual(new Set(['available', 'pending', 'sold', undefined]))
    expect((await server.stop('SIGINT')).exitCode).toBe(0)
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('leaves nothing behind if the port that it was given is in use', async () => {
    using folder = temporaryFolder()
    await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const problem = await refusal(['demo', '-p', `${other.port}`], surroundings(folder.path))
    expect(problem).toContain('the port is in use')
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('takes a free port if it was given none and 8080 is in use', async () => {
    using folder = temporaryFolder()
    using _ = occupy(8080)
    const env = { TMPDIR: folder.path }
    await using server = await startServer({ args: ['demo'], cwd: folder.path, env })
    expect(server.stderr).toBe('Port 8080 is in use: using a free port instead\n')
    expect(server.port).not.toBe(8080)
  })

  test('says so if it cannot create a temporary folder', async () => {
    const problem = await refusal(['demo'], { cwd: tmpdir(), env: { TMPDIR: '/nowhere' } })
    expect(problem).toMatch(/^petstore: Cannot create a folder in \/nowhere .*\n$/)
  })
})
