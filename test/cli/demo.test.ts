import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { startServer, temporaryFolder } from '../support/process.ts'
import { pasteCurl } from './child.ts'

/** Temporary files go into the folder, and the variables of a real store are set. */
const surroundings = (cwd: string) => ({ cwd, env: { TMPDIR: cwd, DATABASE_URL: 'sqlite:real.db', PORT: '0' } })

test('a demo serves thirty animals of every status with a curl line to paste, and leaves nothing behind', async () => {
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

test('a demo takes a free port if it was given none and 8080 is in use', async () => {
  using folder = temporaryFolder()
  const given = { args: ['demo'], cwd: folder.path, env: { TMPDIR: folder.path } }
  // Another program may listen there already.
  await using _ = await startServer(given)
  await using server = await startServer(given)
  expect(server.stderr).toContain('8080')
  expect(server.port).not.toBe(8080)
})
