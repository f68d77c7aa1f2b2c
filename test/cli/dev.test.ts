import { expect, test } from 'bun:test'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { projectFolder, startServer, temporaryFolder } from '../support/process.ts'

test('npm run dev serves, and ends at Ctrl-C', async () => {
  using folder = temporaryFolder()
  const env = { PATH: `${join(projectFolder, 'node_modules/.bin')}:${process.env['PATH']}` }
  const command = ['sh', '-c', `${manifest.scripts.dev} --port 0 --database-url sqlite:${folder.path}/petstore.db`]
  await using dev = await startServer({ cwd: projectFolder, env, command })
  expect((await fetch(new URL('/livez', dev.url))).status).toBe(200)
  expect((await dev.stop('SIGINT')).exitCode).toBe(0)
})
