import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { refusal, startServer, temporaryFolder } from '../support/process.ts'
import { pasteCurl } from './child.ts'

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
    expect((await server.fetch('/pets/1', key, { method: 'PATCH', body: '{}' })).status).toBe(200)
    expect((await server.stop('SIGINT')).exitCode).toBe(0)
    expect(readdirSync(folder.path)).toEqual([])
  })

  test('leaves nothing behind if the port that it was given is in use, and says in one line why it cannot start', async () => {
    using folder = temporaryFolder()
    await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const problem = await refusal(['demo', '-p', `${other.port}`], surroundings(folder.path))
    expect(problem).toContain('the port is in use')
    expect(readdirSync(folder.path)).toEqual([])
    const env = { TMPDIR: '/dev/null' }
    expect(await refusal(['demo'], { cwd: folder.path, env })).toMatch(/^petstore: ENOTDIR[^\n]*\/dev\/null[^\n]*\n$/)
  })

  test('takes a free port if it was given none and 8080 is in use', async () => {
    using folder = temporaryFolder()
    // Another program may listen there already.
    await using _ = await startServer({ args: ['demo'], cwd: folder.path, env: { TMPDIR: folder.path } })
    const env = { TMPDIR: folder.path }
    await using server = await startServer({ args: ['demo'], cwd: folder.path, env })
    expect(server.stderr).toBe('Port 8080 is in use: using a free port instead\n')
    expect(server.port).not.toBe(8080)
  })
})
